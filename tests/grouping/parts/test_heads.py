"""The head of a stream: which keys are hot, alike for all three groupings that ask."""

import numpy as np
import pytest

from unskew.grouping.base import Grouping, Int32s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import salts
from unskew.grouping.parts.two_choices import two_choices
from unskew.grouping.registry import create
from unskew.grouping.snapshot import Snapshot

HEADS = ["d_choices", "w_choices", "round_robin_head"]
MAX_KEY = 2**64 - 1


def zipf(z: float, keys: int, records: int, seed: int = 0) -> UInt64s:
    shares = np.arange(1, keys + 1) ** -z
    ranks = np.random.default_rng(seed).choice(keys, records, p=shares / shares.sum())
    return ranks.astype(np.uint64)


def loads_of(grouping: Grouping) -> list[int]:
    return grouping.state["loads"].tolist()


@pytest.mark.parametrize("name", HEADS)
def test_hot_keys_are_those_above_theta_hottest_first(name: str) -> None:
    grouping = create(name, partitions=10, seed=1)
    keys = np.repeat(np.arange(103, dtype=np.uint64), [4000, 2000, 1000] + [30] * 100)
    grouping.route(np.random.default_rng(1).permutation(keys))

    # theta = 1/50 of 10,000 records are 200.
    assert grouping.hot_keys().tolist() == [0, 1, 2]
    assert grouping.signals()["head_keys"] == 3.0
    assert grouping.signals()["head_share"] == pytest.approx(0.7)


@pytest.mark.parametrize("name", HEADS)
def test_distinct_keys_are_never_hot(name: str) -> None:
    grouping = create(name, partitions=100, seed=1)
    routes = grouping.route(np.arange(50_000, dtype=np.uint64))

    assert grouping.hot_keys().tolist() == []
    assert np.bincount(routes).max() <= 505


@pytest.mark.parametrize("name", HEADS)
def test_false_heads_are_few_where_all_keys_are_just_below_theta(name: str) -> None:
    def pairs(caution: float) -> int:
        grouping = create(name, partitions=20, seed=1, caution=caution)
        keys = np.random.default_rng(2).integers(0, 110, 60_000).astype(np.uint64)
        return int(np.unique(keys * np.uint64(20) + grouping.route(keys).astype(np.uint64)).size)

    if name != "d_choices":  # its d stays 2 here: a false head costs nothing
        assert pairs(caution=0.0) > 1000
    assert pairs(caution=3.0) <= 2 * 110 + 60


def test_without_caution_a_key_is_hot_from_theta_on() -> None:
    grouping = create("w_choices", partitions=10, theta=0.25, caution=0)
    grouping.route(np.array([1, 2, 3, 4, 1], np.uint64))
    assert grouping.hot_keys().tolist() == [1]

    grouping.route(np.array([5, 5, 6], np.uint64))
    assert grouping.hot_keys().tolist() == [1, 5]


@pytest.mark.parametrize("name", HEADS)
def test_head_follows_the_active_partitions(name: str) -> None:
    grouping = create(name, partitions=100, seed=1)
    grouping.route(zipf(1.0, 1000, 100_000))
    many = grouping.hot_keys().size
    grouping.set_active(range(10))

    assert grouping.hot_keys().size < many / 3
    assert set(grouping.route(zipf(1.0, 1000, 10_000)).tolist()) == set(range(10))


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("memory", ["batch", "stream"])
def test_restored_grouping_goes_on_alike(name: str, memory: str) -> None:
    keys = zipf(1.3, 2000, 60_000)
    ones = create(name, partitions=30, seed=4, memory=memory)
    ones.route(keys[:25_000])
    other = create(name, partitions=30, seed=4, memory=memory)
    other.restore(Snapshot.from_bytes(ones.snapshot().to_bytes()))
    for part in (keys[25_000:40_000], keys[40_000:]):
        assert ones.route(part).tolist() == other.route(part).tolist()
        assert ones.snapshot().checksum() == other.snapshot().checksum()
        for grouping in (ones, other):
            grouping.begin_batch()
            grouping.set_active(range(5, 25))


@pytest.mark.parametrize("name", [*HEADS, "partial_key"])
def test_cutting_the_stream_changes_no_route(name: str) -> None:
    keys = zipf(1.2, 500, 20_000)
    whole, cut = create(name, partitions=12, seed=1), create(name, partitions=12, seed=1)
    parts = np.split(keys, np.cumsum([0, 1, 1, 2, 97, 255, 256, 257, 5000, 3]))

    assert whole.route(keys).tolist() == np.concatenate([cut.route(p) for p in parts]).tolist()
    assert whole.snapshot().checksum() == cut.snapshot().checksum()


@pytest.mark.parametrize("name", HEADS)
def test_head_outlives_the_batch_and_loads_do_not(name: str) -> None:
    grouping = create(name, partitions=10, seed=1)
    grouping.route(zipf(2.0, 100, 10_000))
    hot = grouping.hot_keys().tolist()
    grouping.begin_batch()

    assert grouping.hot_keys().tolist() == hot
    assert loads_of(grouping) == [0] * 10


@pytest.mark.parametrize("name", [*HEADS, "partial_key"])
def test_state_keeps_its_size_whatever_comes(name: str) -> None:
    grouping = create(name, partitions=10, seed=1)
    sizes = {array: values.nbytes for array, values in grouping.state.items()}
    for start in range(0, 1_000_000, 100_000):
        grouping.route(np.arange(start, start + 100_000, dtype=np.uint64))

    assert {array: values.nbytes for array, values in grouping.state.items()} == sizes
    assert len(grouping.snapshot().to_bytes()) < 68 * 256 + 8 * 10 + 2000


@pytest.mark.parametrize("name", [*HEADS, "partial_key"])
@pytest.mark.parametrize("partitions", [1, 2, 3])
def test_extreme_keys_and_few_partitions(name: str, partitions: int) -> None:
    grouping = create(name, partitions=partitions, seed=1)
    keys = np.tile(np.array([0, MAX_KEY], np.uint64), 3000)
    loads = np.bincount(grouping.route(keys), minlength=partitions)

    assert grouping.route(np.empty(0, np.uint64)).size == 0
    assert loads.sum() == 6000
    assert loads.max() - loads.min() <= 5


@pytest.mark.parametrize("name", HEADS)
def test_more_hot_keys_than_counters_is_two_choices(name: str) -> None:
    grouping = create(name, partitions=10, seed=1, capacity=2)
    keys = np.tile(np.arange(20, dtype=np.uint64), 5000)
    routes = grouping.route(keys)

    assert grouping.hot_keys().tolist() == []
    assert routes.tolist() == create("partial_key", partitions=10, seed=1).route(keys).tolist()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"theta": -0.1}, "theta"),
        ({"theta": float("nan")}, "theta"),
        ({"theta": 1.5}, "theta"),
        ({"capacity": 0}, "capacity"),
        ({"caution": -1.0}, "caution"),
        ({"memory": "epoch"}, "memory"),
        ({"epsilom": 1.0}, "epsilom"),
    ],
)
@pytest.mark.parametrize("name", HEADS)
def test_bad_options_are_named(name: str, options: dict[str, object], field: str) -> None:
    with pytest.raises(GroupingError, match=rf"{name}\.{field}"):
        create(name, partitions=4, **options)


def partitions_of(keys: UInt64s, routes: Int32s) -> dict[int, set[int]]:
    partitions: dict[int, set[int]] = {}
    for key, route in zip(keys.tolist(), routes.tolist(), strict=True):
        partitions.setdefault(key, set()).add(route)
    return partitions


@pytest.mark.parametrize("name", HEADS)
def test_a_partition_that_leaves_moves_two_cold_keys_in_n(name: str) -> None:
    """Those with a candidate there, to one other partition each; others keep both candidates."""
    n, cold, hot = 20, range(1, 2001), 0
    keys = np.concatenate([np.zeros(9000, np.uint64), np.tile(np.array(cold, np.uint64), 12)])
    keys = np.random.default_rng(3).permutation(keys)
    everywhere, mask = np.arange(n, dtype=np.int32), np.ones(n, np.uint8)
    pairs = {key: set(two_choices(np.uint64(key), salts(1, 2), mask, everywhere)) for key in cold}
    grouping = create(name, partitions=n, seed=1)
    seen = []
    for active in (range(n), [p for p in range(n) if p != 4], range(n)):
        grouping.begin_batch()
        grouping.set_active(active)
        seen.append(partitions_of(keys, grouping.route(keys)))
    before, without, after = seen

    assert grouping.hot_keys().tolist() == [hot]
    assert all(before[key] <= pairs[key] and after[key] <= pairs[key] for key in cold)
    moved = [key for key in cold if not without[key] <= pairs[key]]
    there = [key for key in cold if 4 in pairs[key]]
    assert set(moved) <= set(there)
    assert all(len(without[key] - pairs[key]) <= 1 for key in there)
    assert len(there) / len(cold) == pytest.approx(2 / n, abs=0.02)
    assert 4 not in set().union(*without.values())
    if name != "d_choices":
        assert without[hot] == set(range(n)) - {4}
        assert after[hot] == set(range(n))


def batches_of(records: int, seed: int) -> UInt64s:
    weights = np.cumsum(1 / np.arange(1, 10_001))
    draws = np.random.default_rng(seed).random(records)
    return np.searchsorted(weights / weights[-1], draws).astype(np.uint64)


def with_a_new_key(keys: UInt64s, share: float) -> UInt64s:
    new = np.random.default_rng(9).random(keys.size) < share
    return np.where(new, np.uint64(10**9), keys)


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("batches", [1, 60])
def test_a_new_hot_key_is_spread_by_its_second_batch_however_old_the_job(
    name: str, batches: int
) -> None:
    grouping, records = create(name, partitions=20, seed=1), 50_000
    for batch in range(batches):
        grouping.begin_batch()
        grouping.route(batches_of(records, seed=batch))
    ratios = []
    for batch in range(2):
        grouping.begin_batch()
        keys = with_a_new_key(batches_of(records, seed=1000 + batch), share=0.3)
        loads = np.bincount(grouping.route(keys), minlength=20)
        ratios.append(loads.max() / loads.mean())

    assert ratios[0] < 1.25
    assert ratios[1] < 1.1


@pytest.mark.parametrize("name", HEADS)
@pytest.mark.parametrize("records_a_partition", [8, 16, 64, 500])
def test_the_coldest_key_that_needs_it_is_hot_within_two_batches_of_eight_records_a_partition(
    name: str, records_a_partition: int
) -> None:
    """Of a share of 2/n: every tenth record, at n = 20."""
    grouping, records = create(name, partitions=20, seed=1), 20 * records_a_partition
    for batch in range(30):
        grouping.begin_batch()
        grouping.route(batches_of(records, seed=batch))
    for batch in range(2):
        grouping.begin_batch()
        keys = batches_of(records, seed=1000 + batch)
        keys[::10] = 10**9
        grouping.route(keys)

    assert 10**9 in grouping.hot_keys().tolist()


@pytest.mark.parametrize("name", HEADS)
def test_the_papers_counts_never_fade_and_are_those_of_a_stream(name: str) -> None:
    routes = []
    for options in ({"memory": "stream"}, {"memory": "stream", "decay": 1.0}):
        grouping = create(name, partitions=20, seed=1, **options)
        for batch in range(5):
            grouping.begin_batch()
            routes.append(grouping.route(batches_of(5000, seed=batch)))
        assert grouping.state["seen"].tolist() == [25_000]
        assert grouping.state["counter_counts"].sum() == 25_000

    assert np.array_equal(np.concatenate(routes[:5]), np.concatenate(routes[5:]))


@pytest.mark.parametrize("name", HEADS)
def test_small_batches_are_remembered_until_keys_can_be_told_apart(name: str) -> None:
    grouping = create(name, partitions=20, seed=1)
    seen = []
    for batch in range(8):
        grouping.begin_batch()
        seen.append(int(grouping.state["seen"][0]))
        grouping.route(batches_of(300, seed=batch))

    # 10/theta = 50 n = 1000 records.
    assert seen == [0, 300, 600, 900, 1000, 1000, 1000, 1000]
