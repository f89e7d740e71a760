"""The contract itself: settings, arguments, options, feedback and snapshots, good and bad."""

import dataclasses

import numpy as np
import pytest

from unskew.grouping.base import (
    Feedback,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.errors import GroupingError, SnapshotError
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.snapshot import Snapshot

KEYS = np.array([0, 1, 2**64 - 1, 7, 7], np.uint64)


class Tally(Grouping):
    """A double whose arrays are easy to look at: it counts, and remembers each batch's size."""

    name = "tally"
    Params = GroupingParams
    growing = frozenset({"batches"})

    def __init__(self, setting: Setting, params: GroupingParams) -> None:
        super().__init__(setting, params)
        self.state["seen"] = np.zeros(1, np.int64)
        self.state["batches"] = np.empty(0, np.int64)
        self.fed: list[Feedback | None] = []

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = self.active[0]
        self.state["seen"] += keys.size

    def _begin_batch(self, feedback: Feedback | None) -> None:
        self.fed.append(feedback)
        self.state["batches"] = np.append(self.state["batches"], self.state["seen"])


def _tally(partitions: int = 3, seed: int = 5) -> Tally:
    return Tally(Setting(partitions, seed=seed), GroupingParams())


def _counted() -> Tally:
    tally = _tally()
    tally.route(KEYS)
    tally.begin_batch()
    return tally


def _changed(snapshot: Snapshot, **arrays: np.ndarray) -> Snapshot:
    return dataclasses.replace(snapshot, arrays={**snapshot.arrays, **arrays})


@pytest.mark.parametrize(
    ("given_setting", "problem"),
    [
        ({"partitions": 0}, "partitions: from 1 to 10000 (got 0)"),
        ({"partitions": -1}, "partitions: from 1 to 10000 (got -1)"),
        ({"partitions": 10**6}, "partitions: from 1 to 10000 (got 1000000)"),
        ({"partitions": True}, "partitions: a whole number (got True)"),
        ({"partitions": 4.0}, "partitions: a whole number (got 4.0)"),
        ({"partitions": float("nan")}, "partitions: a whole number (got nan)"),
        ({"partitions": "4"}, "partitions: a whole number (got '4')"),
        ({"partitions": None}, "partitions: a whole number (got None)"),
        ({"partitions": 4, "sources": 0}, "sources: from 1 to 10000 (got 0)"),
        ({"partitions": 4, "source": 3, "sources": 3}, "source: from 0 to 2 (got 3)"),
        ({"partitions": 4, "source": -1}, "source: from 0 to 0 (got -1)"),
        ({"partitions": 4, "seed": -1}, "seed: from 0 to 9223372036854775807 (got -1)"),
        (
            {"partitions": 4, "seed": 2**63},
            "seed: from 0 to 9223372036854775807 (got 9223372036854775808)",
        ),
        ({"partitions": 4, "seed": False}, "seed: a whole number (got False)"),
    ],
)
def test_setting_out_of_bounds_is_named(given_setting: dict[str, int], problem: str) -> None:
    with pytest.raises(GroupingError) as raised:
        Setting(**given_setting)

    assert str(raised.value) == problem


def test_setting_takes_its_bounds_and_numpys_numbers() -> None:
    assert Setting(10_000, 9_999, 10_000, 2**63 - 1).partitions == 10_000
    assert create("key", partitions=int(np.int64(3))).route(KEYS).max() <= 2
    numpys = create("key", partitions=np.int64(3), seed=np.int64(1))
    plain = create("key", partitions=3, seed=1)
    assert numpys.setting == plain.setting
    assert numpys.route(KEYS).tolist() == plain.route(KEYS).tolist()
    assert numpys.snapshot().checksum() == plain.snapshot().checksum()


def test_unknown_grouping_is_answered_with_the_known_ones() -> None:
    with pytest.raises(GroupingError) as raised:
        create("keys", partitions=2)

    assert str(raised.value) == f"grouping: one of {', '.join(GROUPINGS)} (got 'keys')"


@pytest.mark.parametrize(
    ("params", "problem"),
    [
        ({"expected_key": 100}, 'expected_key: unknown option; did you mean "expected_keys"?'),
        ({"expected_keys": 9}, "expected_keys: at least 10 (got 9)"),
        ({"expected_keys": 100.5}, "expected_keys: a whole number (got 100.5)"),
        ({"expected_keys": True}, "expected_keys: a whole number (got true)"),
        ({"decay": float("nan")}, "decay: a finite number (got nan)"),
        ({"decay": -0.1}, "decay: at least 0 (got -0.1)"),
        ({"decay": "0.1"}, 'decay: a number (got "0.1"); remove the quotes'),
        ({"memory": "weekly"}, 'memory: one of batch, stream (got "weekly")'),
    ],
)
def test_wrong_option_is_named(params: dict[str, object], problem: str) -> None:
    with pytest.raises(GroupingError) as raised:
        create("dynamic_key", partitions=2, **params)

    assert str(raised.value) == f"dynamic_key.{problem}"


def test_options_that_do_not_go_together_are_named_without_noise() -> None:
    with pytest.raises(GroupingError) as raised:
        create("dynamic_key", partitions=2, expected_keys=1000, baby_keys_max=64)

    assert str(raised.value) == "dynamic_key: baby_keys_max: at least expected_keys, 1000 (got 64)"


def test_every_wrong_option_is_reported_at_once() -> None:
    with pytest.raises(GroupingError, match=r"dynamic_key\.decay: .*; dynamic_key\.memory: "):
        create("dynamic_key", partitions=2, decay=2.0, memory=7)


@pytest.mark.parametrize(
    ("keys", "got"),
    [
        (KEYS.astype(np.int64), "int64, 1-d"),
        (KEYS.astype(">u8"), ">u8, 1-d"),
        (KEYS.astype(np.float64), "float64, 1-d"),
        (KEYS.reshape(1, 5), "uint64, 2-d"),
        (np.uint64(7), "<class 'numpy.uint64'>"),
        ([1, 2], "<class 'list'>"),
        (None, "<class 'NoneType'>"),
    ],
)
def test_keys_of_another_type_or_shape_are_refused(keys: object, got: str) -> None:
    with pytest.raises(GroupingError) as raised:
        create("key", partitions=2).route(keys)  # type: ignore[arg-type]

    assert str(raised.value) == f"keys: a one-dimensional array of uint64 (got {got})"


@pytest.mark.parametrize(
    ("timestamps", "problem"),
    [
        (None, "dynamic_key: timestamps: missing, and this grouping needs them"),
        (np.zeros(4, np.int64), "dynamic_key: timestamps: as many as keys, 5 (got 4)"),
        (np.zeros(5), "timestamps: a one-dimensional array of int64 (got float64, 1-d)"),
        (
            np.zeros(5, "datetime64[us]"),
            "timestamps: a one-dimensional array of int64 (got datetime64[us], 1-d)",
        ),
    ],
)
def test_bad_timestamps_are_refused_where_they_are_needed(timestamps: object, problem: str) -> None:
    with pytest.raises(GroupingError) as raised:
        create("dynamic_key", partitions=2).route(KEYS, timestamps)  # type: ignore[arg-type]

    assert str(raised.value) == problem


def test_timestamps_are_ignored_where_they_are_not_needed() -> None:
    assert create("key", partitions=2).route(KEYS, np.zeros(1, np.int64)).size == 5


def test_refused_arguments_change_nothing() -> None:
    grouping = create("dynamic_key", partitions=2)
    before = grouping.snapshot().checksum()

    with pytest.raises(GroupingError):
        grouping.route(KEYS)

    assert grouping.snapshot().checksum() == before


def test_empty_and_strided_and_read_only_keys_are_routed() -> None:
    grouping = create("key", partitions=100)
    wide = np.arange(10, dtype=np.uint64)
    wide.flags.writeable = False

    assert grouping.route(np.empty(0, np.uint64)).dtype == np.int32
    assert grouping.route(wide[::2]).tolist() == grouping.route(wide).tolist()[::2]
    assert grouping.route(wide[::-1]).tolist() == grouping.route(wide).tolist()[::-1]


@pytest.mark.parametrize(
    ("partitions", "problem"),
    [
        ([], "active: at least one partition must stay"),
        ([0, 3], "active: from 0 to 2 (got 3)"),
        ([-1, 0], "active: from 0 to 2 (got -1)"),
        ([0.0], "active: a whole number (got 0.0)"),
        ([True], "active: a whole number (got True)"),
        ([0, 1.5, 2], "active: a whole number (got 1.5)"),
        ([0, "1", 2], "active: a whole number (got '1')"),
        ([2, None], "active: a whole number (got None)"),
        (5, "active: several whole numbers (got 5)"),
        (None, "active: several whole numbers (got None)"),
    ],
)
def test_bad_active_set_is_refused_and_changes_nothing(partitions: list[int], problem: str) -> None:
    tally = _tally()

    with pytest.raises(GroupingError) as raised:
        tally.set_active(partitions)

    assert str(raised.value) == problem
    assert tally.active.tolist() == [0, 1, 2]
    assert tally.state["active"].tolist() == [1, 1, 1]


def test_active_set_may_repeat_and_be_in_any_order_and_is_in_the_snapshot() -> None:
    tally, other = _tally(), _tally()
    tally.set_active([2, 1, 2])

    other.restore(tally.snapshot())

    assert other.active.tolist() == [1, 2]
    assert other.route(KEYS).tolist() == [1] * 5


@pytest.mark.parametrize("partition_sets", [range(1, 3), (1, 2), np.array([2, 1])])
def test_active_set_may_be_any_sequence(partition_sets: object) -> None:
    tally = _tally()
    tally.set_active(partition_sets)  # type: ignore[arg-type]

    assert tally.active.tolist() == [1, 2]


def test_good_feedback_reaches_the_grouping_also_with_zeros_only() -> None:
    tally = _tally()
    zeros = np.zeros(3, np.int64)
    feedback = [
        Feedback(zeros + 1, np.ones(3)),
        Feedback(zeros, np.zeros(3)),
        Feedback(zeros, zeros),
        None,
    ]

    for item in feedback:
        tally.begin_batch(item)

    assert tally.fed == feedback


def test_bad_feedback_changes_nothing() -> None:
    tally = _tally()

    with pytest.raises(GroupingError, match=r"^feedback\.records: 3 values \(got 2\)$"):
        tally.begin_batch(Feedback(np.array([1, 2]), np.zeros(3)))

    assert tally.fed == []


def test_snapshot_goes_through_bytes_unchanged() -> None:
    snapshot = _counted().snapshot()
    restored = _tally()

    read = Snapshot.from_bytes(snapshot.to_bytes())
    restored.restore(read)

    assert (read.grouping, read.version, read.partitions, read.seed) == ("tally", 1, 3, 5)
    assert {name: array.tolist() for name, array in read.arrays.items()} == {
        "active": [1, 1, 1],
        "batches": [5],
        "seen": [5],
    }
    assert read.checksum() == snapshot.checksum() == restored.snapshot().checksum()


def test_checksum_tells_states_apart_and_knows_equal_ones() -> None:
    first, same, other = _counted(), _counted(), _counted()
    other.route(KEYS)

    assert first.snapshot().checksum() == same.snapshot().checksum()
    assert first.snapshot().checksum() != other.snapshot().checksum()


def test_snapshots_share_no_memory_with_a_grouping() -> None:
    tally = _counted()
    snapshot = tally.snapshot()
    other = _tally()
    other.restore(snapshot)

    tally.route(KEYS)
    other.route(KEYS)
    other.route(KEYS)

    assert snapshot.arrays["seen"].tolist() == [5]
    assert (tally.state["seen"][0], other.state["seen"][0]) == (10, 15)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"grouping": "key"}, "snapshot: grouping: expected 'tally' (got 'key')"),
        ({"version": 2}, "snapshot: version: expected 1 (got 2)"),
        ({"partitions": 4}, "snapshot: partitions: expected 3 (got 4)"),
        ({"seed": 6}, "snapshot: seed: expected 5 (got 6)"),
        (
            {"arrays": {"active": np.ones(3, np.uint8)}},
            "snapshot: arrays: expected ['active', 'batches', 'seen'] (got ['active'])",
        ),
    ],
)
def test_snapshot_of_something_else_is_refused(change: dict[str, object], problem: str) -> None:
    tally = _tally()

    with pytest.raises(SnapshotError) as raised:
        tally.restore(dataclasses.replace(_counted().snapshot(), **change))

    assert str(raised.value) == problem
    assert tally.state["seen"].tolist() == [0]


@pytest.mark.parametrize(
    ("arrays", "problem"),
    [
        ({"seen": np.zeros(1, np.int32)}, "snapshot: seen: type int64 (got int32)"),
        ({"seen": np.zeros(2, np.int64)}, "snapshot: seen: shape (1,) (got (2,))"),
        ({"seen": np.zeros((1, 1), np.int64)}, "snapshot: seen: shape (1,) (got (1, 1))"),
        ({"active": np.ones(4, np.uint8)}, "snapshot: active: shape (3,) (got (4,))"),
        ({"batches": np.zeros((2, 2), np.int64)}, "snapshot: batches: shape (0,) (got (2, 2))"),
    ],
)
def test_snapshot_with_an_array_of_another_type_or_size_is_refused(
    arrays: dict[str, np.ndarray], problem: str
) -> None:
    tally = _tally()

    with pytest.raises(SnapshotError) as raised:
        tally.restore(_changed(_counted().snapshot(), **arrays))

    assert str(raised.value) == problem
    assert tally.state["seen"].tolist() == [0]


def test_snapshot_made_with_other_options_is_refused_though_the_shapes_agree() -> None:
    donor = create("dstream", partitions=3, false_positive_rate=0.02)
    donor.route(KEYS)
    grouping = create("dstream", partitions=3, false_positive_rate=0.01)
    before = grouping.snapshot()
    assert {n: a.shape for n, a in donor.state.items()} == {
        n: a.shape for n, a in grouping.state.items()
    }

    with pytest.raises(SnapshotError) as raised:
        grouping.restore(Snapshot.from_bytes(donor.snapshot().to_bytes()))

    problem = "snapshot: options: false_positive_rate: expected 0.01 (got 0.02)"
    assert str(raised.value) == problem
    assert grouping.snapshot().checksum() == before.checksum()


def test_growing_array_may_have_any_length() -> None:
    tally = _tally()

    tally.restore(_changed(_counted().snapshot(), batches=np.arange(9)))

    assert tally.state["batches"].size == 9


def test_chunks_route_like_one_array() -> None:
    whole, cut = create("shuffle", partitions=3), create("shuffle", partitions=3)
    chunks = [(KEYS[:2], None), (KEYS[2:2], None), (KEYS[2:], None)]

    parts = list(cut.route_chunks(chunks))

    assert [part.size for part in parts] == [2, 0, 3]
    assert np.concatenate(parts).tolist() == whole.route(KEYS).tolist()
