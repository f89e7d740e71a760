"""Key grouping: a hash of the key decides, for every source, and only whom it must do keys move."""

import numpy as np
import pytest

from unskew.grouping.registry import create

KEYS = np.arange(20_000, dtype=np.uint64)


def test_key_goes_where_its_hash_says_whatever_was_before_it() -> None:
    grouping = create("key", partitions=4, seed=1)

    assert grouping.route(np.array([7, 7, 8, 9], np.uint64)).tolist() == [2, 2, 2, 3]
    assert grouping.route(np.array([9, 8, 7], np.uint64)).tolist() == [3, 2, 2]


def test_every_source_and_every_batch_has_the_same_homes() -> None:
    first = create("key", partitions=7, seed=3).route(KEYS)
    other = create("key", partitions=7, seed=3, source=4, sources=5)

    for _ in range(2):
        other.begin_batch()
        assert np.array_equal(other.route(KEYS), first)


@pytest.mark.parametrize("partitions", [2, 7, 100])
def test_distinct_keys_spread_like_throws_of_a_die(partitions: int) -> None:
    counts = np.bincount(create("key", partitions=partitions).route(KEYS), minlength=partitions)
    expected = KEYS.size / partitions

    freedom = partitions - 1
    assert ((counts - expected) ** 2 / expected).sum() < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.parametrize("partitions", [2, 10, 100])
def test_hottest_key_is_a_load_that_no_number_of_partitions_divides(partitions: int) -> None:
    keys = np.concatenate([KEYS, np.zeros(KEYS.size, np.uint64)])

    assert np.bincount(create("key", partitions=partitions).route(keys)).max() >= KEYS.size


def test_only_the_keys_of_a_partition_that_left_move_and_they_return() -> None:
    grouping = create("key", partitions=5, seed=1)
    before = grouping.route(KEYS)

    grouping.set_active([0, 1, 3, 4])
    away = grouping.route(KEYS)
    grouping.set_active(range(5))

    assert np.array_equal(before != away, before == 2)
    moved = np.bincount(away[before == 2], minlength=5)
    assert moved[[0, 1, 3, 4]].min() > 0.22 * moved.sum()
    assert np.array_equal(grouping.route(KEYS), before)


def test_the_state_is_who_is_active_and_nothing_else() -> None:
    grouping = create("key", partitions=3)
    before = grouping.snapshot()
    grouping.route(KEYS)

    assert list(before.arrays) == ["active"]
    assert grouping.snapshot().checksum() == before.checksum()
    assert (grouping.hot_keys().tolist(), grouping.signals()) == ([], {})
