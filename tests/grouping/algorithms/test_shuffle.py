"""Shuffle grouping: whose turn it is, for one source, several, and after partitions left."""

import numpy as np
import pytest

from unskew.grouping.registry import create


def _keys(count: int) -> np.ndarray:
    return np.arange(count, dtype=np.uint64)


def test_partitions_take_turns_whatever_the_key() -> None:
    grouping = create("shuffle", partitions=3)
    same = np.zeros(4, np.uint64)

    assert grouping.route(same).tolist() == [0, 1, 2, 0]
    assert grouping.route(_keys(4)).tolist() == [1, 2, 0, 1]


@pytest.mark.parametrize("partitions", [1, 2, 7, 100, 1023, 1024, 1025, 10_000])
def test_loads_of_a_source_differ_by_at_most_one(partitions: int) -> None:
    grouping = create("shuffle", partitions=partitions, source=2, sources=5)
    twin = [(2 * partitions // 5 + i) % partitions for i in range(25_000)]

    routes = np.concatenate([grouping.route(_keys(size)) for size in (0, 1, 5000, 1023, 18_976)])

    assert routes.tolist() == twin
    assert np.ptp(np.bincount(routes, minlength=partitions)) <= 1


def test_sources_start_at_spread_offsets() -> None:
    def start(source: int, partitions: int, sources: int) -> int:
        return int(
            create("shuffle", partitions=partitions, source=source, sources=sources).route(
                _keys(1)
            )[0]
        )

    assert [start(source, 100, 5) for source in range(5)] == [0, 20, 40, 60, 80]
    assert [start(source, 2, 4) for source in range(4)] == [0, 0, 1, 1]


def test_few_records_of_many_sources_stay_balanced() -> None:
    routes = [
        create("shuffle", partitions=48, source=source, sources=48).route(_keys(10))
        for source in range(48)
    ]

    assert np.bincount(np.concatenate(routes), minlength=48).tolist() == [10] * 48


def test_the_turn_passes_over_partitions_that_are_away_and_back() -> None:
    grouping = create("shuffle", partitions=4)
    grouping.route(_keys(3))

    grouping.set_active([0, 2])
    assert grouping.route(_keys(3)).tolist() == [2, 0, 2]
    grouping.set_active(range(4))
    assert grouping.route(_keys(5)).tolist() == [0, 1, 2, 3, 0]


def test_restored_in_the_middle_of_a_turn_it_goes_on() -> None:
    grouping = create("shuffle", partitions=7)
    grouping.set_active([1, 3, 4])
    grouping.route(_keys(5))
    other = create("shuffle", partitions=7)

    other.restore(grouping.snapshot())

    assert other.route(_keys(9)).tolist() == grouping.route(_keys(9)).tolist()
