"""The scenarios of the papers' measurements: paces, closed loops, partitions that come and go."""

import heapq

import numpy as np
import pytest

from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.simulation.meters.partition_reports import CompletedReports
from unskew.grouping.simulation.meters.streams import simulate_streams
from unskew.grouping.simulation.queueing import ClosedLoop, Queues
from unskew.grouping.simulation.reports import SimulationReport
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.traces import open_trace


def run(name: str, trace: str, **scenario: object) -> SimulationReport:
    return simulate(open_trace(trace), GroupingSpec.parse(name), Scenario(**scenario), lambda: 0.0)


@pytest.mark.parametrize("trace", ["uniform:records=20000", "posg-costs:records=20000"])
def test_a_utilisation_is_met_whatever_records_cost(trace: str) -> None:
    report = run("shuffle", trace, partitions=5, cost_us=1000, utilisation=0.5)

    assert report.execution is not None
    assert report.execution.utilisation == pytest.approx(0.5, rel=0.03)


def test_only_what_is_done_is_reported_and_only_once() -> None:
    counter = PairCounter(3)
    keys = np.array([7, 8, 9, 7], np.uint64)
    routes = np.array([0, 1, 2, 0], np.int32)
    reports = CompletedReports(counter, 3)

    numbers = counter.count(keys, routes)
    reports.add(numbers, routes, np.array([1.0, 2, 3, 4]), np.array([5.0, 2, 9, 6]))
    first, second, third = reports.take(5.0), reports.take(6.5), reports.take(7.0)

    assert first.key_hashes.tolist() == [8, 7]
    assert first.busy_seconds.tolist() == [1.0, 2.0, 0.0]
    assert (second.key_hashes.tolist(), second.key_seconds.tolist()) == ([7], [4.0])
    assert third.records.tolist() == [0, 0, 0]


def test_posg_learns_of_records_only_when_they_are_done() -> None:
    trace = "posg-costs:records=4000"
    settings = {"partitions": 2, "utilisation": 1.0, "feedback_records": 64}

    routed = run("posg:window=256,tolerance=1", trace, **settings)
    completed = run("posg:window=256,tolerance=1", trace, reports="completed", **settings)

    assert routed.signals["matrices_received"] >= completed.signals["matrices_received"] >= 2


def serve_plainly(
    routes: list[int], costs: list[float], loop: ClosedLoop, partitions: int
) -> list[float]:
    """The closed loop with lists: the source that can send first sends."""
    waiting = [list(range(source, len(routes), loop.sources)) for source in range(loop.sources)]
    under_way: list[list[float]] = [[] for _ in range(loop.sources)]
    ready, free, latencies = [0.0] * loop.sources, [0.0] * partitions, [0.0] * len(routes)
    for _ in routes:
        at = {
            source: max(ready[source], heap[0] if len(heap) == loop.pending else 0.0)
            for source, heap in enumerate(under_way)
            if waiting[source]
        }
        source = min(at, key=lambda each: (at[each], each))
        record = waiting[source].pop(0)
        done = max(at[source], free[routes[record]]) + costs[record]
        free[routes[record]], latencies[record] = done, done - at[source]
        ready[source] = at[source] + loop.gap
        if len(under_way[source]) == loop.pending:
            heapq.heappop(under_way[source])
        heapq.heappush(under_way[source], done)
    return latencies


@pytest.mark.parametrize("loop", [ClosedLoop(3, 1), ClosedLoop(3, 4, 0.7), ClosedLoop(2, 50)])
def test_sources_wait_for_their_own_records(loop: ClosedLoop) -> None:
    rng = np.random.default_rng(3)
    routes, costs = rng.integers(0, 4, 60).astype(np.int32), rng.random(60)
    queues = Queues(4)

    queues.serve_closed(routes, costs, np.ones(4), loop)

    expected = serve_plainly(routes.tolist(), costs.tolist(), loop, 4)
    assert queues.totals.tolist() == pytest.approx([sum(expected), max(expected)])
    assert queues.latency_sums.sum() == pytest.approx(sum(expected))


def test_a_closed_loop_has_its_times_over_time() -> None:
    settings = {"partitions": 4, "sources": 2, "cost_us": 1000, "pending": 8, "points": 4}
    report = run("key", "half-skew:r=100,keys=204,records=8000", **settings)
    series, whole = report.over_time, report.execution

    assert whole is not None
    assert series.execution_seconds[-1] == pytest.approx(whole.execution_seconds)
    assert series.execution_seconds == sorted(series.execution_seconds)
    assert series.throughput_per_second[-1] == pytest.approx(whole.throughput_per_second)
    assert np.mean(series.window_latency_mean_ms) == pytest.approx(whole.latency_mean_ms)
    assert max(series.window_latency_most_ms) == pytest.approx(whole.latency_max_ms, rel=0.01)
    # All records of the second half are of one key: each waits for all others under way.
    assert series.window_latency_mean_ms[3] == pytest.approx(16, rel=0.01)
    assert series.window_latency_p50_ms[0] < series.window_latency_p50_ms[3]


def test_a_closed_loop_is_as_fast_as_its_sources_let_it_be() -> None:
    limited = run(
        "shuffle", "uniform:records=20000", partitions=10, sources=4, cost_us=100, pending=50,
        source_per_second=5000,
    )  # fmt: skip

    assert limited.execution is not None
    assert limited.execution.throughput_per_second == pytest.approx(20_000, rel=0.01)


def test_partitions_come_and_go_in_mid_run() -> None:
    settings = {"partitions": 4, "batch_records": None}

    fewer = run("key", "uniform:records=8000", active=(2,), active_from=(0,), **settings)
    joined = run("key", "uniform:records=8000", active=(2, 4), active_from=(0, 4000), **settings)

    assert fewer.loads[2:] == [0, 0]
    assert 700 < min(joined.loads[2:]) < 1300
    assert joined.pairs > fewer.pairs


def test_hot_keys_are_judged_by_exact_counts() -> None:
    report = run(
        "w_choices", "country:r=50,records=20000", partitions=10, hot_share=0.4, points=4
    )  # fmt: skip

    assert report.over_time.window_hot_recall == [1.0] * 4
    assert report.over_time.window_hot_precision == [1.0] * 4


def test_streams_have_a_mean_a_least_and_a_most() -> None:
    spec, trace = GroupingSpec.parse("partial_key"), "zipf:records=3000,seed=5"
    scenario = Scenario(partitions=8, streams=3, seed=2, cost_us=10)
    alone = [
        run("partial_key", f"zipf:records=3000,seed={5 + i}", partitions=8, seed=2 + i, cost_us=10)
        for i in range(3)
    ]

    report = simulate_streams(open_trace(trace), trace, spec, scenario, lambda: 0.0)

    pairs = [each.pairs for each in alone]
    assert report.pairs == pytest.approx(np.mean(pairs))
    assert report.streams is not None
    assert (report.streams.least["pairs"], report.streams.most["pairs"]) == (min(pairs), max(pairs))
    assert report.streams.most["execution_seconds"] == max(
        each.execution.execution_seconds for each in alone if each.execution
    )
    assert report.loads == pytest.approx(np.mean([each.loads for each in alone], axis=0))


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"reports": "completed"}, "reports: completed needs arrival_per_second or utilisation"),
        ({"utilisation": 1.0, "arrival_per_second": 5.0}, "utilisation and arrival_per_second"),
        ({"feedback_records": 9, "batch_records": 9}, "feedback_records: only without"),
        ({"pending": 5, "utilisation": 1.0}, "pending and utilisation: give one of them"),
        ({"source_per_second": 5.0}, "source_per_second: only with pending"),
        ({"active": (9,), "active_from": (0,)}, "active: at most all 4 partitions"),
        ({"active": (2, 3), "active_from": (5, 5)}, "active: the records they hold from must"),
    ],
)
def test_settings_that_contradict_each_other_are_named(
    wrong: dict[str, object], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        Scenario(partitions=4, **wrong)


@pytest.mark.parametrize("option", ["utilisation", "pending", "completed"])
def test_times_need_a_cost(option: str) -> None:
    more = {"pending": {"pending": 5}, "utilisation": {"utilisation": 1.0}}
    settings = more.get(option, {"reports": "completed", "arrival_per_second": 10.0})

    with pytest.raises(SpecError, match="cost"):
        run("key", "uniform:records=100", partitions=4, **settings)
