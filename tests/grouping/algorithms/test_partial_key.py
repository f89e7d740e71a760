"""Partial key grouping: two choices, the less loaded, and what that can and cannot balance."""

import numpy as np
import pytest

from unskew.grouping.base import UInt64s
from unskew.grouping.hashing import salts
from unskew.grouping.parts.two_choices import find_least_loaded, two_choices
from unskew.grouping.registry import create


def draws(share: float, records: int, seed: int = 0) -> UInt64s:
    """One key of this share, all others once."""
    rng = np.random.default_rng(seed)
    keys = np.arange(1, records + 1, dtype=np.uint64)
    keys[rng.random(records) < share] = 0
    return keys


@pytest.mark.parametrize("partitions", [2, 3, 5, 100, 1000])
def test_choices_of_a_key_are_two_different_partitions(partitions: int) -> None:
    mask = np.ones(partitions, np.uint8)
    active = np.arange(partitions, dtype=np.int32)
    firsts = np.zeros(partitions)
    for key in range(2000):
        first, second = two_choices(np.uint64(key), salts(7, 2), mask, active)
        assert first != second
        firsts[first] += 1
    assert partitions > 10 or firsts.min() > 0.7 * 2000 / partitions


def test_record_goes_to_the_less_loaded_and_ties_to_the_first() -> None:
    grouping = create("partial_key", partitions=10, seed=3)
    mask, active = grouping.state["active"], grouping.active
    keys = np.random.default_rng(1).integers(0, 50, 1000).astype(np.uint64)
    loads, expected = [0] * 10, []
    for key in keys:
        first, second = two_choices(key, salts(3, 2), mask, active)
        partition = int(first if loads[first] <= loads[second] else second)
        loads[partition] += 1
        expected.append(partition)

    assert grouping.route(keys).tolist() == expected
    assert grouping.state["loads"].tolist() == loads


def test_one_key_alternates_between_its_two() -> None:
    routes = create("partial_key", partitions=50, seed=1).route(np.zeros(1000, np.uint64))

    assert np.bincount(routes)[np.unique(routes)].tolist() == [500, 500]


def test_key_above_two_fair_shares_costs_the_papers_bound() -> None:
    routes = create("partial_key", partitions=10, seed=1).route(draws(0.6, 100_000))
    loads = np.bincount(routes, minlength=10) / 100_000

    # p1/2 - 1/n = 0.3 - 0.1, and nothing else goes to these two.
    assert loads.max() - 0.1 == pytest.approx(0.2, abs=0.005)


def test_key_below_a_fifth_of_a_fair_share_costs_nothing() -> None:
    routes = create("partial_key", partitions=10, seed=1).route(draws(0.02, 100_000))

    assert np.bincount(routes).max() - 10_000 <= 5


def test_loads_are_forgotten_with_the_batch_unless_asked_to_stay() -> None:
    first, second = np.zeros(3, np.uint64), np.zeros(4, np.uint64)
    for memory, starts_with in (("batch", 0), ("stream", 1)):
        grouping = create("partial_key", partitions=2, seed=1, memory=memory)
        begun = grouping.route(first)
        grouping.begin_batch()
        assert grouping.route(second)[0] == begun[starts_with]


def test_partition_that_leaves_moves_only_its_own_keys() -> None:
    mask = np.ones(20, np.uint8)
    active = np.arange(20, dtype=np.int32)
    keys = np.arange(3000, dtype=np.uint64)
    before = [two_choices(key, salts(1, 2), mask, active) for key in keys]
    mask[4] = 0
    active = np.flatnonzero(mask).astype(np.int32)
    after = [two_choices(key, salts(1, 2), mask, active) for key in keys]

    moved = [key for key in range(3000) if before[key] != after[key]]
    assert moved == [key for key in range(3000) if 4 in before[key]]
    assert all(4 not in pair and pair[0] != pair[1] for pair in after)


def test_where_few_of_many_are_active_a_new_one_only_takes_places() -> None:
    keys = np.arange(3000, dtype=np.uint64)
    pairs = []
    for few in ([3, 50, 51], [3, 50, 51, 70]):
        mask = np.zeros(1000, np.uint8)
        mask[few] = 1
        active = np.array(few, np.int32)
        pairs.append([two_choices(key, salts(1, 2), mask, active) for key in keys])

    for before, after in zip(*pairs, strict=True):
        assert after[0] != after[1]
        assert set(after) <= {*before, 70}
    came = [after for after in pairs[1] if 70 in after]
    assert len(came) / 3000 == pytest.approx(2 / 4, abs=0.03)


def test_partition_that_comes_back_is_not_flooded() -> None:
    grouping = create("partial_key", partitions=4, seed=1, memory="stream")
    grouping.set_active([0, 1, 2])
    grouping.route(np.arange(9000, dtype=np.uint64))
    grouping.set_active([0, 1, 2, 3])
    routes = grouping.route(np.arange(9000, 13_000, dtype=np.uint64))

    assert np.bincount(routes)[3] == pytest.approx(1000, abs=20)


@pytest.mark.parametrize("active", [[7], [2, 7], [0, 4, 9]])
def test_few_active_partitions_get_everything(active: list[int]) -> None:
    grouping = create("partial_key", partitions=1000, seed=1)
    grouping.set_active(active)
    loads = np.bincount(grouping.route(np.arange(6000, dtype=np.uint64)), minlength=1000)

    assert np.flatnonzero(loads).tolist() == active
    assert loads[active].max() - loads[active].min() <= 2


def test_least_loaded_is_what_a_scan_finds() -> None:
    rng = np.random.default_rng(5)
    active = np.array([0, 1, 3, 4, 8], np.int32)
    loads, least = np.zeros(10, np.int64), np.zeros(2, np.int64)
    for _ in range(5000):
        if rng.random() < 0.4:
            expected = min(active, key=lambda partition: (loads[partition], partition))
            chosen = find_least_loaded(loads, active, least)
            assert chosen == expected
        else:
            chosen = active[rng.integers(0, 5) * rng.integers(0, 2)]
        loads[chosen] += 1
