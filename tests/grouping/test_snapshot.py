"""Snapshots as bytes: every array comes back, every damage is refused."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unskew.grouping import snapshot
from unskew.grouping.errors import SnapshotError
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.snapshot import Snapshot

ARRAYS = {
    "active": np.ones(3, np.uint8),
    "batches": np.array([5]),
    "seen": np.array([5]),
}
DATA = Snapshot("tally", 1, 3, 5, ARRAYS).to_bytes()
KINDS = ["u8", "i8", "f8", "u4", "i4", "f4", "u2", "i2", "u1", "i1"]


@given(
    st.dictionaries(
        st.text(max_size=5),
        st.tuples(st.sampled_from(KINDS), st.lists(st.integers(0, 4), min_size=1, max_size=3)),
        max_size=4,
    )
)
def test_arrays_of_every_kind_and_shape_go_through_bytes(arrays: dict[str, tuple]) -> None:
    made = {
        name: np.arange(np.prod(shape, dtype=int)).astype(kind).reshape(shape)
        for name, (kind, shape) in arrays.items()
    }

    read = Snapshot.from_bytes(Snapshot("any", 1, 2, 3, made).to_bytes()).arrays

    assert sorted(read) == sorted(made)
    for name, array in made.items():
        assert (read[name].dtype, read[name].shape) == (array.dtype, array.shape)
        assert read[name].tobytes() == array.tobytes()


def test_options_go_through_bytes_and_count_in_the_checksum() -> None:
    options = {"theta": 0.1 + 0.2, "memory": "batch", "limit": None, "near_home": False}
    made = Snapshot("any", 1, 2, 3, ARRAYS, options)

    assert Snapshot.from_bytes(made.to_bytes()).options == options
    assert made.checksum() != dataclasses.replace(made, options={}).checksum()


def test_every_truncation_is_refused() -> None:
    for size in range(len(DATA)):
        with pytest.raises(SnapshotError, match="cut short"):
            Snapshot.from_bytes(DATA[:size])


def test_every_flipped_bit_is_refused() -> None:
    for bit in range(8 * len(DATA)):
        damaged = bytearray(DATA)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError):
            Snapshot.from_bytes(bytes(damaged))


@pytest.mark.parametrize("data", [b"", b"UNSKEW\x00\x01", b"PK\x03\x04" * 50, b"\x80\x04N." * 20])
def test_other_files_are_no_snapshots(data: bytes) -> None:
    with pytest.raises(SnapshotError, match="not a snapshot of a grouping, or cut short"):
        Snapshot.from_bytes(data)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (("|u1", "|O8"), "unknown type '|O8'"),
        (('"arrays"', '"arroys"'), "'arrays' is missing"),
        (('"seed":5', '"seed":x'), "Expecting value"),
        (('"options":{}', '"options": 7'), "not iterable"),
        (("[1]]]", "[7]]]"), "the arrays end at byte"),
        (("[1]]]", "[0]]]"), "the arrays end at byte"),
        (("[1]]]", "[-1]]]"), "an array has the size -1"),
        (("[1]]]", "[0,1500000000000]]]"), "an array has the size 1500000000000"),
        (("[1]]]", "[true]]]"), "a whole number (got True)"),
        (('"batches"', '"seen"'), "two arrays have one name"),
        (('"seed":5', '"seed":"five"'), "a whole number (got 'five')"),
        (('"grouping":"tally"', '"grouping":["tally"]'), "a text (got ['tally'])"),
    ],
)
def test_header_that_makes_no_sense_is_refused_even_with_a_right_checksum(
    change: tuple[str, str], problem: str
) -> None:
    size = int.from_bytes(DATA[8:12], "little")
    assert json.loads(DATA[12 : 12 + size])["grouping"] == "tally"
    header = DATA[12 : 12 + size].replace(change[0].encode(), change[1].encode())
    assert header != DATA[12 : 12 + size]
    body = DATA[:8] + len(header).to_bytes(4, "little") + header + DATA[12 + size : -16]

    with pytest.raises(SnapshotError) as raised:
        Snapshot.from_bytes(body + snapshot.digest_of([body]))

    assert str(raised.value).startswith("snapshot: the header cannot be read: ")
    assert problem in str(raised.value)


@pytest.mark.parametrize("name", GROUPINGS)
def test_snapshot_without_an_active_partition_is_refused_and_changes_nothing(name: str) -> None:
    grouping = create(name, partitions=3)
    snapshot = grouping.snapshot()
    nobody = {**snapshot.arrays, "active": np.zeros(3, np.uint8)}

    with pytest.raises(SnapshotError) as raised:
        grouping.restore(dataclasses.replace(snapshot, arrays=nobody))

    assert str(raised.value) == "snapshot: active: at least one partition (got none)"
    assert grouping.active.tolist() == [0, 1, 2]
    assert grouping.snapshot().checksum() == snapshot.checksum()
