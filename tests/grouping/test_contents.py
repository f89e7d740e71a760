"""States whose arrays contradict each other: each is refused by the name of the array."""

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from unskew.grouping.base import Grouping
from unskew.grouping.contents import check_table
from unskew.grouping.errors import SnapshotError
from unskew.grouping.registry import create
from unskew.grouping.spark.agreed_file import read_agreed_before
from unskew.grouping.spark.journal import Journal

Array = NDArray[Any]
KEYS = (np.random.default_rng(1).zipf(1.3, 30_000) % 5_000).astype(np.uint64)
TIMES = np.arange(KEYS.size) * 1_000_000


def used(name: str) -> Grouping:
    grouping = create(name, partitions=5, sources=2)
    grouping.begin_batch()
    grouping.route(KEYS, TIMES)
    return grouping


def empty(array: Array) -> None:
    array[:] = -1 if array.min() < 0 else 0


def repeat(array: Array) -> None:
    array[1] = array[0]


def add_many(array: Array) -> None:
    array[0] += 10**9


@pytest.mark.parametrize(
    ("grouping", "name", "change"),
    [
        ("w_choices", "counter_used", add_many),
        ("w_choices", "counter_heap", repeat),
        ("w_choices", "counter_heap_counts", add_many),
        ("w_choices", "counter_errors", add_many),
        ("w_choices", "counter_keys", repeat),
        ("w_choices", "counter_table", empty),
        ("fish", "epoch", empty),
        ("fish", "candidates_min", empty),
        ("distribution_aware", "counter_heap", repeat),
        ("dstream", "synopsis_counts", add_many),
        ("dstream", "synopsis_bits", empty),
        ("dstream", "synopsis_keys", repeat),
        ("dstream", "synopsis_table", empty),
        ("dstream", "filter", add_many),
        ("dynamic_key", "sizes", add_many),
        ("dynamic_key", "widths", empty),
        ("dynamic_key", "keys", repeat),
        ("posg", "machine", add_many),
        ("level", "split_known", add_many),
        ("level", "costs_known", add_many),
        ("level", "speeds", empty),
        ("level", "shared_first", add_many),
        ("whole", "counted_known", add_many),
        ("whole", "assigned_known", add_many),
        ("whole", "costs_known", add_many),
    ],
)
def test_arrays_that_contradict_each_other_are_refused(
    grouping: str, name: str, change: Callable[[Array], None]
) -> None:
    snapshot = used(grouping).snapshot()
    other = create(grouping, partitions=5, sources=2)
    other.restore(snapshot)
    arrays = {key: array.copy() for key, array in snapshot.arrays.items()}
    change(arrays[name])
    with pytest.raises(SnapshotError, match=r"^snapshot: \w+: "):
        other.restore(dataclasses.replace(snapshot, arrays=arrays))


def test_a_key_that_its_table_does_not_lead_to_is_refused() -> None:
    homes = np.array([3, 3, 0])
    check_table("table", np.array([2, -1, -1, 1, 0, -1]), homes)
    check_table("table", np.array([1, 2, -1, -1, -1, 0]), np.array([5, 5, 5]))
    for slots in ([2, -1, -1, -1, 0, 1], [2, -1, 0, 1, -1, -1], [2, 2, -1, 1, 0, -1], [2, 1, 0]):
        with pytest.raises(SnapshotError, match="snapshot: table: "):
            check_table("table", np.array(slots), homes)


@pytest.mark.parametrize("name", ["source-00001.state", "sources.agreed"])
def test_sources_agree_on_no_file_of_wrong_content_and_name_it(tmp_path: Path, name: str) -> None:
    journal, router = Journal(str(tmp_path)), used("whole")
    for source in range(2):
        journal.write_state(0, source, router.snapshot())
    fresh = create("whole", partitions=5, sources=2)
    assert read_agreed_before(journal, 1, fresh)["counted_known"] > 0
    wrong = journal.read(0, name)
    assert wrong is not None
    wrong.arrays["counted_known"][:] = 10**6
    path = tmp_path / f"{0:012d}"
    (path / "sources.agreed").unlink()
    (path / name).write_bytes(wrong.to_bytes())
    with pytest.raises(SnapshotError, match=rf"{name}: snapshot: counted_known: at most 160;"):
        read_agreed_before(journal, 1, fresh)
