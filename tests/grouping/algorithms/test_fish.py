"""FISH: the paper's facts, CHK against a twin, speeds, partitions that come and go, memory."""

import math

import numpy as np
import pytest

from unskew.grouping.algorithms.fish import Fish, FishParams
from unskew.grouping.base import Feedback, Setting
from unskew.grouping.errors import GroupingError
from unskew.grouping.parts.fish import ring
from unskew.grouping.registry import create


def fish(partitions, source=0, sources=1, seed=1, **params):
    return Fish(Setting(partitions, source, sources, seed), FishParams(**params))


def zipf(z, keys, records, seed):
    weights = np.arange(1, keys + 1) ** -z
    share = np.cumsum(weights / weights.sum())
    return np.searchsorted(share, np.random.default_rng(seed).random(records)).astype(np.uint64)


def drifting(z, records, seed, keys=100_000):
    """The paper's ZF: the last fifth follows the reversed ranking."""
    last = records // 5
    early = zipf(z, keys, records - last, seed)
    return np.concatenate([early, np.uint64(keys - 1) - zipf(z, keys, last, seed + 1)])


def report(seconds_per_record, records=100):
    n = len(seconds_per_record)
    return Feedback(np.full(n, records, np.int64), records * np.array(seconds_per_record))


def candidates_of(grouping, key, count):
    nodes, n = grouping._ring, grouping.setting.partitions
    out = np.empty(count, np.int32)
    count = ring.walk(
        nodes, ring.position(np.uint64(key), grouping._rule.salt), ring.new_marks(n), out
    )
    return out[:count].tolist()


def moving(partitions, backlog, **params):
    """A grouping with a hot key 7 (so all partitions are candidates) and these backlogs."""
    grouping = fish(partitions, memory="stream", interval_records=10**9, **params)
    grouping.route(np.full(10, 7, np.uint64))
    grouping.state["backlog"][:] = backlog
    return grouping


def test_figure_7_takes_the_shortest_wait_not_the_fewest_records():
    grouping = moving(4, [50, 40, 50, 30])
    grouping.begin_batch(report([1.0, 1.0, 2.0, 2.0]))
    waits = grouping.state["backlog"] * grouping.state["cost"]
    assert waits.tolist() == [50, 40, 100, 60]
    assert grouping.route(np.full(1, 7, np.uint64)).tolist() == [1]


def test_figure_7_without_speeds_takes_the_fewest_unserved():
    assert moving(4, [50, 40, 50, 30]).route(np.full(1, 7, np.uint64)).tolist() == [3]


def test_equation_1_takes_what_was_served_from_the_backlog():
    # P = 0.5 s a record, T = 10 s: 20 records are served an interval, three intervals pass.
    grouping = fish(2, memory="stream")
    grouping.begin_batch(report([0.5, 2.0]))
    second = 1_000_000
    grouping.route(np.full(1, 7, np.uint64), np.zeros(1, np.int64))
    grouping.state["backlog"][:] = [100, 100]
    grouping.route(np.full(1, 7, np.uint64), np.array([10 * second]))
    assert grouping.state["backlog"].sum() == 201
    grouping.route(np.full(1, 7, np.uint64), np.array([35 * second]))
    assert grouping.state["backlog"].tolist() == [101 - 60 + 1, 100 - 15]
    grouping.route(np.full(1, 7, np.uint64), np.array([10_000 * second]))
    assert grouping.state["backlog"].tolist() == [1, 0]


def test_a_source_counts_only_its_part_of_what_a_partition_serves():
    grouping = fish(1, source=2, sources=5, memory="stream")
    grouping.begin_batch(report([0.5]))
    grouping.route(np.full(1, 7, np.uint64), np.zeros(1, np.int64))
    grouping.state["backlog"][:] = 100
    grouping.route(np.full(1, 7, np.uint64), np.array([10_000_001]))
    assert grouping.state["backlog"].tolist() == [100 - 10 / 0.5 / 5 + 1]


def test_without_reports_an_interval_serves_as_many_as_came():
    grouping = fish(4, memory="stream")
    keys = np.full(400, 7, np.uint64)
    grouping.route(keys, np.zeros(400, np.int64))
    assert grouping.state["backlog"].tolist() == [100] * 4
    grouping.route(keys[:1], np.array([11_000_000]))
    assert sorted(grouping.state["backlog"].tolist()) == [0, 0, 0, 1]


def test_the_clock_by_records_serves_by_speed():
    grouping = fish(2, memory="stream", interval_records=30)
    grouping.begin_batch(report([1.0, 2.0]))
    grouping.route(np.full(30, 7, np.uint64))
    assert grouping.state["backlog"].tolist() == [20, 10]
    grouping.route(np.full(1, 7, np.uint64))
    assert grouping.state["backlog"].sum() == pytest.approx(1)


def test_earlier_times_change_nothing_and_extreme_ones_have_a_result():
    times = np.array([5, 1, -(2**63), 2**63 - 1, 0, -5], np.int64)
    grouping = fish(3, memory="stream")
    assert grouping.route(np.full(6, 7, np.uint64), times).max() < 3
    assert np.isfinite(grouping.state["backlog"]).all()
    grouping = fish(3, memory="stream")
    grouping.route(np.full(2, 7, np.uint64), times[2:4])
    assert times[3] - grouping.state["clock"][1] < 10_000_000


@pytest.mark.parametrize(
    ("params", "wanted"),
    [
        ({}, False),
        ({"memory": "stream"}, True),
        ({"memory": "stream", "interval_records": 9}, False),
    ],
)
def test_only_a_stream_with_a_clock_by_time_wants_times(params, wanted):
    assert fish(4, **params).wants_timestamps is wanted


class Twin:
    """Algorithms 1-3 in plain Python for one batch, counters enough for all keys."""

    def __init__(self, grouping):
        self.grouping, self.n = grouping, grouping.setting.partitions
        self.counts, self.remembered, self.backlog = {}, {}, [0] * self.n
        self.position, self.total, self.least = 0, 0.0, 2

    def hot(self, key):
        limit = 1 / (4 * self.n) * self.total
        return self.counts[key] > limit and self.counts[key] >= 2

    def route(self, key):
        if self.position == 50:
            hot = [self.counts[k] for k in self.counts if self.hot(k)]
            if hot:
                self.least = max(2, math.ceil(self.n * sum(hot) / self.total / len(hot)))
            self.counts = {k: c * 0.5 for k, c in self.counts.items()}
            self.total, self.position = self.total * 0.5, 0
        self.counts[key] = self.counts.get(key, 0) + 1
        self.position, self.total = self.position + 1, self.total + 1
        wanted = 2
        if self.hot(key):
            halvings = int(math.log2(max(self.counts.values()) / self.counts[key]))
            wanted = max(self.n >> halvings, self.least, self.remembered.get(key, 0))
            self.remembered[key] = wanted
        order = candidates_of(self.grouping, key, min(wanted, self.n))
        if wanted >= self.n:
            order = list(range(self.n))
        chosen = min(order, key=lambda p: self.backlog[p])
        self.backlog[chosen] += 1
        return chosen


@pytest.mark.parametrize("partitions", [1, 2, 3, 10, 23])
def test_routes_are_those_of_the_algorithms_in_plain_python(partitions):
    keys = zipf(1.1, 60, 3000, partitions)
    grouping = fish(partitions, epoch_records=50, alpha=0.5)
    twin = Twin(grouping)
    expected = [twin.route(key) for key in keys.tolist()]
    assert grouping.route(keys).tolist() == expected


@pytest.mark.parametrize(
    "params", [{}, {"memory": "stream"}, {"memory": "stream", "interval_records": 77}]
)
def test_cutting_and_restoring_change_no_route(params):
    keys = drifting(1.2, 20_000, 5, keys=500)
    times = np.sort(np.random.default_rng(3).integers(0, 300_000_000, keys.size))
    whole = fish(17, epoch_records=333, counters=64, **params)
    whole.begin_batch(report(np.linspace(0.001, 0.002, 17)))
    cut = fish(17, epoch_records=333, counters=64, **params)
    cut.begin_batch(report(np.linspace(0.001, 0.002, 17)))
    expected = whole.route(keys, times)
    routes = []
    for part in np.split(np.arange(keys.size), [1, 2, 500, 5000, 5001, 12_345]):
        fresh = fish(17, epoch_records=333, counters=64, **params)
        fresh.restore(cut.snapshot())
        cut = fresh
        routes.append(cut.route(keys[part], times[part]))
    assert np.array_equal(np.concatenate(routes), expected)
    assert cut.snapshot().checksum() == whole.snapshot().checksum()


def test_a_new_hot_key_spreads_within_one_epoch():
    cold = np.arange(10_000, dtype=np.uint64) + np.uint64(1000)
    grouping = fish(32)
    before = np.where(np.arange(10_000) % 2 == 0, np.uint64(1), cold)
    grouping.route(before)
    assert grouping.hot_keys().tolist() == [1]
    epoch = np.where(np.arange(1000) % 2 == 0, np.uint64(2), cold[:1000])
    routes = grouping.route(epoch)[::2]
    assert np.unique(routes).size == 32
    assert grouping.hot_keys()[0] == 2


def test_a_hot_key_of_before_has_two_candidates_again_after_a_few_epochs():
    grouping = fish(32)
    grouping.route(np.full(5000, 1, np.uint64))
    grouping.route(np.arange(2, 5502, dtype=np.uint64))
    assert 1 not in grouping.hot_keys().tolist()
    routes = [grouping.route(np.array([1, 10_000 + i], np.uint64))[0] for i in range(2)]
    assert set(routes) <= set(candidates_of(grouping, 1, 2))


def test_candidates_halve_with_the_frequency():
    # Of 16 records 8 are of key 1, 4 of key 2, 2 of key 3, and the rest cold.
    pattern = np.array([1, 2, 1, 3, 1, 2, 1, 100, 1, 2, 1, 3, 1, 2, 1, 101], np.uint64)
    grouping = fish(64)
    grouping.route(np.tile(pattern, 2000))
    counters = grouping.state["counter_keys"][:5].tolist()
    remembered = dict(zip(counters, grouping.state["candidates"][:5].tolist(), strict=True))
    assert remembered[1] == 64
    assert 32 <= remembered[2] <= 64
    assert 16 <= remembered[3] <= 32


def test_a_key_that_loses_its_counter_loses_its_candidates():
    grouping = fish(16, counters=4, epoch_records=100)
    grouping.route(np.full(1000, 1, np.uint64))
    assert grouping.state["candidates"].max() == 16
    grouping.route(np.repeat(np.arange(10, 2010, dtype=np.uint64), 1))
    assert np.uint64(1) not in grouping.state["counter_keys"]
    slot = int(np.argmin(grouping.state["counter_counts"]))
    assert grouping.state["candidates"][slot] < 16


def test_state_does_not_grow_with_the_keys():
    grouping = fish(100)
    sizes = {name: array.nbytes for name, array in grouping.state.items()}
    pool = grouping._lists.pool.nbytes
    for start in range(0, 300_000, 100_000):
        grouping.route(np.arange(start, start + 100_000, dtype=np.uint64))
        grouping.route(zipf(1.0, 100_000, 50_000, start) + np.uint64(start))
    assert {name: array.nbytes for name, array in grouping.state.items()} == sizes
    assert sum(sizes.values()) <= 76 * 1000 + 17 * 100 + 100
    assert grouping._lists.pool.nbytes == pool == 128 * 100 + 16 * 1000


def test_a_pool_that_runs_over_changes_no_route():
    keys = zipf(1.0, 200, 20_000, 3)
    roomy, tight = fish(40), fish(40)
    tight._lists = tight._lists._replace(pool=np.empty(40, np.int32))
    assert np.array_equal(tight.route(keys), roomy.route(keys))


def test_slow_partitions_get_as_much_less_as_they_are_slower():
    keys = zipf(1.4, 10_000, 100_000, 1)
    grouping = fish(8)
    grouping.begin_batch(report([0.001] * 4 + [0.002] * 4))
    loads = np.bincount(grouping.route(keys), minlength=8)
    assert loads[:4].sum() / loads[4:].sum() == pytest.approx(2, abs=0.02)
    seconds = loads * np.array([0.001] * 4 + [0.002] * 4)
    assert seconds.max() / seconds.mean() < 1.01


def test_reports_with_zeros_leave_what_was_known():
    grouping = fish(3)
    grouping.begin_batch(Feedback(np.array([10, 0, 10]), np.array([1.0, 0.0, 0.0])))
    assert grouping.state["cost"].tolist() == [0.1, 0, 0]
    assert grouping._cost.tolist() == [0.1, 0.1, 0.1]
    grouping.begin_batch(Feedback(np.zeros(3, np.int64), np.zeros(3)))
    assert grouping.state["cost"].tolist() == [0.1, 0, 0]


@pytest.mark.parametrize(("memory", "expected"), [("batch", 0), ("stream", 500)])
def test_a_batch_begins_with_idle_partitions_unless_it_is_a_stream(memory, expected):
    grouping = fish(4, memory=memory, interval_records=10**6)
    grouping.route(np.arange(500, dtype=np.uint64))
    grouping.begin_batch()
    assert grouping.state["backlog"].sum() == expected


def test_only_the_arcs_of_a_partition_that_leaves_move():
    keys = np.arange(3000, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    grouping = fish(20)
    before = [candidates_of(grouping, key, 2) for key in keys]
    grouping.set_active([p for p in range(20) if p != 3])
    after = [candidates_of(grouping, key, 2) for key in keys]
    for old, new in zip(before, after, strict=True):
        assert new[: 2 - (3 in old)] == [p for p in old if p != 3]
    share = np.mean([old != new for old, new in zip(before, after, strict=True)])
    assert 0.05 < share < 0.15
    assert 3 not in grouping.route(zipf(1.5, 1000, 20_000, 1)).tolist()
    grouping.set_active(range(20))
    assert [candidates_of(grouping, key, 2) for key in keys] == before


def test_hot_keys_spread_over_the_active_only():
    grouping = fish(10, memory="stream", interval_records=100)
    grouping.route(np.full(1000, 7, np.uint64))
    grouping.set_active([1, 4, 8])
    routes = grouping.route(np.full(999, 7, np.uint64))
    assert np.bincount(routes, minlength=10).tolist() == [0, 333, 0, 0, 333, 0, 0, 0, 333, 0]


def test_a_cold_key_stays_with_the_first_two_candidates_of_its_hot_set():
    grouping = fish(50)
    routes = np.concatenate([grouping.route(np.arange(2000, dtype=np.uint64)) for _ in range(3)])
    for key in range(0, 2000, 37):
        assert set(routes[key::2000].tolist()) <= set(candidates_of(grouping, key, 2))


def test_sources_begin_with_different_partitions():
    first = [
        fish(48, source, 48).route(np.full(50, 7, np.uint64))[3:].tolist() for source in range(48)
    ]
    assert len({tuple(routes) for routes in first}) == 48
    loads = np.bincount(np.concatenate(first), minlength=48)
    assert loads.max() - loads.mean() <= 3


@pytest.mark.parametrize("sources", [1, 5, 48])
def test_sources_do_not_spoil_the_balance(sources):
    keys = zipf(1.4, 10_000, 200_000, 7)
    loads = np.zeros(50, np.int64)
    for source in range(sources):
        routes = fish(50, source, sources).route(keys[source::sources])
        loads += np.bincount(routes, minlength=50)
    assert loads.max() / loads.mean() < 1.02


@pytest.mark.parametrize("partitions", [16, 128])
@pytest.mark.parametrize("z", [1.0, 1.4, 2.0])
def test_balance_and_pairs_on_the_papers_drifting_stream(partitions, z):
    keys = drifting(z, 400_000, 1)
    loads, pairs = np.zeros(partitions, np.int64), set()
    waits = np.zeros(partitions, np.int64)
    for source in range(5):
        share = keys[source::5]
        routes = fish(partitions, source, 5).route(share)
        loads += np.bincount(routes, minlength=partitions)
        waits += np.bincount(routes[-share.size // 5 :], minlength=partitions)
        pairs |= set((share.astype(np.int64) * partitions + routes).tolist())
    assert loads.max() / loads.mean() < 1.02
    assert waits.max() / waits.mean() < 1.1
    assert len(pairs) / np.unique(keys).size < 2.6


@pytest.mark.parametrize(
    "keys",
    [
        np.empty(0, np.uint64),
        np.array([0, 2**64 - 1, 0, 2**64 - 1], np.uint64),
        np.zeros(5000, np.uint64),
        np.arange(5000, dtype=np.uint64),
        np.arange(5000, dtype=np.uint64) % np.uint64(40),
    ],
    ids=["none", "extremes", "one key", "all distinct", "more hot keys than counters"],
)
@pytest.mark.parametrize("partitions", [1, 2, 30])
def test_any_keys_have_routes_in_range(keys, partitions):
    routes = fish(partitions, counters=8).route(keys)
    assert routes.size == keys.size
    assert not keys.size or (routes.min() >= 0 and routes.max() < partitions)


def test_candidates_min_and_threshold_may_be_given():
    grouping = fish(40, candidates_min=9, threshold=0.01)
    grouping.route(zipf(1.0, 1000, 20_000, 1))
    hot = grouping.signals()["hot_keys"]
    assert grouping.signals()["candidates_min"] == 9
    assert 0 < hot <= 100
    assert grouping.hot_keys().size == hot


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("alpha", -0.1),
        ("alpha", math.nan),
        ("epoch_records", 0),
        ("counters", 0),
        ("threshold", 0.0),
        ("candidates_min", 1),
        ("memory", "day"),
        ("interval_seconds", 0.0),
        ("virtual_nodes", 0),
    ],
)
def test_a_bad_option_is_named(field, value):
    with pytest.raises(GroupingError, match=rf"^fish\.{field}: "):
        create("fish", partitions=4, **{field: value})


def test_the_defaults_are_the_papers():
    params = FishParams()
    assert (params.epoch_records, params.alpha, params.counters) == (1000, 0.2, 1000)
    assert fish(20)._rule.threshold == 1 / 80
    assert params.interval_seconds == 10
