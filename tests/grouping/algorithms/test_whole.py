"""`whole`: keys stay whole over all sources, and heavy ones go where there is room."""

import heapq
from statistics import median

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.base import Feedback, Int32s, UInt64s
from unskew.grouping.hashing import hash_partitions, mix64
from unskew.grouping.registry import create
from unskew.grouping.simulation.simulate import begin_all

HASHES = np.array([mix64(np.uint64(rank + 1)) for rank in range(10_000)], np.uint64)


def zipf(z: float, seed: int, records: int = 300_000, keys: int = 10_000) -> UInt64s:
    shares = np.arange(1, keys + 1, dtype=np.float64) ** -z
    ranks = np.random.default_rng(seed).choice(keys, records, p=shares / shares.sum())
    return HASHES[ranks]


def sources_of(count: int, partitions: int, **options: object) -> list:
    return [
        create("whole", partitions=partitions, source=source, sources=count, **options)
        for source in range(count)
    ]


def routed(routers: list, keys: UInt64s, feedback: Feedback | None = None) -> Int32s:
    """A batch, dealt round robin to the sources."""
    begin_all(routers, feedback)
    routes = np.empty(keys.size, np.int32)
    for source, router in enumerate(routers):
        routes[source :: len(routers)] = router.route(keys[source :: len(routers)])
    return routes


def longest_first(counts: np.ndarray, partitions: int) -> int:
    loads = [(0, p) for p in range(partitions)]
    for count in sorted(counts.tolist(), reverse=True):
        load, p = heapq.heappop(loads)
        heapq.heappush(loads, (load + count, p))
    return max(loads)[0]


def pairs(keys: UInt64s, routes: Int32s) -> int:
    return np.unique(np.stack([keys, routes.astype(np.uint64)]), axis=1).shape[1]


def test_the_first_batch_is_as_under_key() -> None:
    keys = zipf(0.8, 0)

    routes = routed(sources_of(3, 20), keys)

    assert np.array_equal(routes, hash_partitions(keys, 20, 0))


QUICK = {(1, 0.0, 20), (5, 0.8, 20), (48, 0.8, 60)}
CELLS = [
    (sources, z, partitions)
    for sources in (1, 5, 48)
    for z, partitions in ((0.0, 20), (0.5, 20), (0.8, 20), (0.8, 60), (0.0, 100), (0.5, 100))
]
ENOUGH = 20_000
"""Records a partition that leave 4 standard deviations of what chance does to a partition, as the
difference of two batches, at 0.04 of its part; `slack` is 0.01."""


@pytest.mark.parametrize(
    ("sources", "z", "partitions"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in CELLS],
)
def test_every_batch_after_the_first_is_near_the_least_that_whole_keys_allow(
    sources: int, z: float, partitions: int
) -> None:
    routers, records = sources_of(sources, partitions), ENOUGH * partitions
    routed(routers, zipf(z, 0, records))
    for seed in (1, 2, 3):
        keys = zipf(z, seed, records)
        routes = routed(routers, keys)
        counts = np.unique(keys, return_counts=True)[1]
        largest = np.bincount(routes, minlength=partitions).max()
        assert largest <= 1.05 * longest_first(counts, partitions)
        assert largest <= 1.05 * max(keys.size / partitions, counts.max())
        assert pairs(keys, routes) == counts.size


@settings(deadline=None, max_examples=20)  # the first example compiles the kernels
@given(st.integers(2, 60), st.integers(500, 5000), st.floats(0.0, 1.2), st.integers(0, 2**32))
def test_with_fewer_records_chance_takes_the_largest_load_no_further_than_its_measure(
    partitions: int, records_each: int, z: float, seed: int
) -> None:
    records = partitions * records_each
    routers = sources_of(3, partitions)
    for number in range(3):
        keys = zipf(z, seed + number, records, 2_000)
        largest = np.bincount(routed(routers, keys), minlength=partitions).max()
        counts = np.unique(keys, return_counts=True)[1]
        if number:
            chance = 4.5 * (2 * partitions / records) ** 0.5
            assert largest <= (1.01 + chance) * longest_first(counts, partitions)


def test_a_hash_is_far_from_that() -> None:
    keys = zipf(0.8, 1)

    loads = np.bincount(hash_partitions(keys, 20, 0), minlength=20)

    assert loads.max() > 1.4 * loads.mean()


def test_a_key_that_becomes_hot_is_moved_in_the_next_batch() -> None:
    routers = sources_of(4, 20)
    hot = np.full(12_000, 7, np.uint64)
    routed(routers, zipf(0.5, 0))
    for seed in (1, 2):
        keys = np.concatenate([zipf(0.5, seed), hot])
        loads = np.bincount(routed(routers, keys), minlength=20)
        over_mean = loads.max() / loads.mean()
        assert over_mean > 1.5 if seed == 1 else over_mean < 1.06


def test_keys_stay_where_they_are_while_the_stream_goes_on() -> None:
    routers = sources_of(3, 20)
    routed(routers, zipf(0.8, 0))
    first = routed(routers, zipf(0.8, 1))
    keys = zipf(0.8, 2)
    routes = routed(routers, keys)
    before = dict(zip(zipf(0.8, 1).tolist(), first.tolist(), strict=True))

    now = zip(keys.tolist(), routes.tolist(), strict=True)
    moved = sum(before.get(key, partition) != partition for key, partition in now)

    assert moved < 0.05 * keys.size
    assert routers[0].signals()["moves"] < 60


def test_bounded_moves_come_to_the_same_after_some_batches() -> None:
    routers = sources_of(3, 20, moves_max=20)
    largest = []
    for seed in range(12):
        loads = np.bincount(routed(routers, zipf(0.8, seed, 100_000)), minlength=20)
        largest.append(loads.max() / loads.mean())
        assert routers[0].signals()["moves"] <= 20

    assert largest[0] > 1.4
    assert largest[1] < largest[0]
    assert median(largest[-3:]) <= 1.05


def test_without_what_the_others_left_it_is_as_under_key() -> None:
    alone, keys = create("whole", partitions=20), zipf(0.8, 0)
    for _ in range(2):
        alone.begin_batch()
        assert np.array_equal(alone.route(keys), hash_partitions(keys, 20, 0))


def reports_of(keys: UInt64s, routes: Int32s, costs: np.ndarray, partitions: int) -> Feedback:
    """With rows of the 64 keys of each partition that took longest."""
    distinct, numbers, records = np.unique(keys, return_inverse=True, return_counts=True)
    seconds = np.bincount(numbers, costs)
    partition = np.empty(distinct.size, np.int32)
    partition[numbers] = routes
    order = np.lexsort((-seconds, partition))
    rank = np.arange(order.size) - np.searchsorted(partition[order], partition[order])
    rows = order[rank < 64]
    return Feedback(
        np.bincount(routes, minlength=partitions),
        np.bincount(routes, costs, partitions),
        partition[rows],
        distinct[rows],
        records[rows],
        seconds[rows],
    )


def test_seconds_are_balanced_where_keys_cost_differently() -> None:
    # Every tenth key costs twenty times as much.
    over_mean = {}
    for balance in ("records", "seconds"):
        routers, feedback = sources_of(3, 20, balance=balance), None
        for seed in range(4):
            keys = zipf(0.5, seed, records=100_000, keys=2000)
            costs = np.where(keys % np.uint64(10) == 0, 20e-5, 1e-5)
            routes = routed(routers, keys, feedback)
            feedback = reports_of(keys, routes, costs, 20)
        over_mean[balance] = feedback.busy_seconds.max() / feedback.busy_seconds.mean()

    assert over_mean["seconds"] < 1.1
    assert over_mean["records"] > 1.15


def test_pieces_of_a_share_change_no_bound_on_the_balance() -> None:
    routers = sources_of(3, 20, piece_records=10_000)
    for seed in range(3):
        loads = np.bincount(routed(routers, zipf(0.8, seed)), minlength=20)

    assert loads.max() <= 1.05 * loads.mean()


def test_hot_keys_are_the_counted_keys_that_left_their_bucket() -> None:
    routers = sources_of(2, 20)
    routed(routers, zipf(0.8, 0))
    keys = zipf(0.8, 1)
    routes = routed(routers, keys)
    hot = routers[0].hot_keys()

    assert 0 < hot.size <= 20
    assert routers[0].signals()["assigned_keys"] >= hot.size
    assert (np.unique(routes[np.isin(keys, hot)]).size) > 1
    counts = [np.count_nonzero(keys == key) for key in hot]
    assert counts[0] > 2 * counts[-1]


def test_expected_balance_is_what_comes() -> None:
    routers = sources_of(3, 20)
    for seed in range(3):
        loads = np.bincount(routed(routers, zipf(0.8, seed)), minlength=20)

    assert routers[0].signals()["expected_max_over_mean"] == pytest.approx(
        loads.max() / loads.mean(), rel=0.04
    )
