"""W-Choices and its rival, round robin for the head: figures 3, 7 and 8 of the paper."""

import numpy as np
import pytest

from unskew.grouping.base import UInt64s
from unskew.grouping.registry import create

SOURCES = 5


def zipf(z: float, records: int, keys: int = 10_000, seed: int = 0) -> UInt64s:
    upto = np.cumsum(np.arange(1, keys + 1) ** -z)
    draws = np.random.default_rng(seed).random(records) * upto[-1]
    return np.searchsorted(upto, draws, side="right").astype(np.uint64)


def loads(name: str, keys: UInt64s, partitions: int, **options: object) -> np.ndarray:
    total = np.zeros(partitions, np.int64)
    for source in range(SOURCES):
        grouping = create(
            name, partitions=partitions, source=source, sources=SOURCES, seed=1, **options
        )
        total += np.bincount(grouping.route(keys[source::SOURCES]), minlength=partitions)
    return total


def imbalance(name: str, keys: UInt64s, partitions: int, **options: object) -> float:
    total = loads(name, keys, partitions, **options)
    return float((total.max() - total.mean()) / total.sum())


def test_hot_record_goes_to_the_lowest_of_the_least_loaded() -> None:
    grouping = create("w_choices", partitions=6, seed=1)
    grouping.route(np.zeros(600, np.uint64))

    assert grouping.route(np.zeros(8, np.uint64)).tolist() == [0, 1, 2, 3, 4, 5, 0, 1]


def test_head_records_take_turns_in_round_robin_from_the_sources_own_place() -> None:
    for source, start in ((0, 0), (1, 2), (2, 4)):
        grouping = create("round_robin_head", partitions=6, source=source, sources=3, seed=1)
        routes = grouping.route(np.zeros(100, np.uint64))
        assert routes[4:12].tolist() == [(start + turn) % 6 for turn in range(8)]


def test_tail_key_stays_on_two_partitions() -> None:
    keys = zipf(1.4, 200_000)
    for name in ("w_choices", "round_robin_head"):
        grouping = create(name, partitions=50, seed=1)
        routes = grouping.route(keys)
        # Ranks from 200 on have less than a fifth of theta.
        assert max(np.unique(routes[keys == rank]).size for rank in range(200, 400)) == 2


@pytest.mark.parametrize("theta", [1 / 50, 1 / 100, 1 / 250, 1 / 400])
@pytest.mark.parametrize("z", [0.8, 1.4, 2.0])
def test_any_threshold_up_to_one_nth_balances_ideally(theta: float, z: float) -> None:
    assert imbalance("w_choices", zipf(z, 500_000), 50, theta=theta) < 2e-5


@pytest.mark.parametrize("z", [1.0, 1.4, 2.0])
def test_threshold_of_two_nths_leaves_imbalance(z: float) -> None:
    keys = zipf(z, 500_000)

    assert imbalance("w_choices", keys, 50, theta=2 / 50) <= imbalance("partial_key", keys, 50)
    assert imbalance("round_robin_head", keys, 50, theta=2 / 50) > 1e-4


@pytest.mark.parametrize("partitions", [50, 100])
def test_at_high_skew_round_robin_is_worse_and_partial_key_far_worse(partitions: int) -> None:
    keys = zipf(2.0, 500_000)
    of = {
        name: imbalance(name, keys, partitions)
        for name in ("w_choices", "round_robin_head", "partial_key")
    }

    assert of["w_choices"] < 2e-5
    assert of["round_robin_head"] > 10 * of["w_choices"]
    # The first key has 60.8 %: half of it on each of two partitions.
    assert of["partial_key"] == pytest.approx(0.304 - 1 / partitions, abs=0.01)


def test_head_fills_what_the_tail_leaves_uneven() -> None:
    keys = zipf(2.0, 500_000)
    even = loads("w_choices", keys, 5, theta=1 / 40)

    assert even.max() - even.min() <= 3 * SOURCES
    assert np.ptp(loads("round_robin_head", keys, 5, theta=1 / 40)) > 0
    assert np.ptp(loads("partial_key", keys, 5)) > 100_000


def test_returning_partition_takes_its_share_of_the_head_only() -> None:
    grouping = create("w_choices", partitions=4, seed=1, memory="stream")
    grouping.set_active([0, 1, 2])
    grouping.route(np.zeros(9000, np.uint64))
    grouping.set_active([0, 1, 2, 3])

    assert np.bincount(grouping.route(np.zeros(4000, np.uint64))).tolist() == [1000] * 4
