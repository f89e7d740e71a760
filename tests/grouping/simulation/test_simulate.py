"""The simulator against plain Python: who gets what, what it costs, and when it is done."""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import count

import numpy as np
import pytest

from unskew.grouping.algorithms.key import Key
from unskew.grouping.base import Chunk, Feedback, Grouping, GroupingParams, Int32s, Int64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, SimulationReport, simulate
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.traces import Trace, open_trace

SEEN: list[tuple[str, int, object]] = []


class Watcher(Key):
    """Key grouping that notes what it is given; `greedy` reads all before it answers."""

    name = "watcher"
    wants_feedback = True
    greedy = False

    @property
    def wants_timestamps(self) -> bool:
        return True

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        if self.greedy:
            chunks = list(chunks)
        for keys, timestamps in chunks:
            SEEN.append(("keys", self.setting.source, keys))
            SEEN.append(("timestamps", self.setting.source, timestamps))
            yield self.route(keys, timestamps)

    def _begin_batch(self, feedback: Feedback | None) -> None:
        SEEN.append(("batch", self.setting.source, feedback))


class Greedy(Watcher):
    name = "greedy"
    greedy = True


class StreamParams(GroupingParams):
    memory: str = "batch"


class Remembering(Grouping):
    """Notes the memory it was made with."""

    name = "remembering"
    Params = StreamParams

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = 0
        SEEN.append(("memory", self.setting.source, self.params.memory))


class Losing(Key):
    name = "losing"

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        return iter([])


class Astray(Key):
    name = "astray"

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        out[:] = self.setting.partitions


@pytest.fixture(autouse=True)
def _doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    SEEN.clear()
    for double in (Watcher, Greedy, Remembering, Losing, Astray):
        monkeypatch.setitem(GROUPINGS, double.name, double)


def seen(what: str, source: int = 0) -> list[object]:
    return [value for kind, by, value in SEEN if kind == what and by == source]


def run(name: str, trace: str | Trace, clock=None, **scenario: object) -> SimulationReport:
    opened = open_trace(trace) if isinstance(trace, str) else trace
    spec = GroupingSpec.parse(name)
    return simulate(opened, spec, Scenario(**scenario), clock or count().__next__)


def keys_of(trace: str) -> np.ndarray:
    return np.concatenate([chunk.keys for chunk in open_trace(trace).chunks()])


def test_loads_and_pairs_are_those_of_plain_counting() -> None:
    spec = "zipf:z=1.1,keys=500,records=20000"
    keys = keys_of(spec)
    routes = np.empty(keys.size, np.int32)
    for source in range(3):
        router = create("partial_key", partitions=7, source=source, sources=3, seed=5)
        router.begin_batch()
        routes[source::3] = router.route(keys[source::3].copy())

    report = run("partial_key", spec, partitions=7, sources=3, seed=5)

    loads = np.bincount(routes, minlength=7)
    pairs = set(zip(keys.tolist(), routes.tolist(), strict=True))
    assert report.loads == loads.tolist()
    assert report.pairs == len(pairs)
    assert report.distinct_keys == len(set(keys.tolist()))
    assert report.replication == pytest.approx(len(pairs) / len(set(keys.tolist())))
    assert report.imbalance == pytest.approx((loads.max() - loads.mean()) / 20_000)
    assert report.max_over_mean == pytest.approx(loads.max() / loads.mean())
    assert report.stddev == pytest.approx(np.std(loads / 200))
    frequent = [number for number in Counter(keys.tolist()).values() if number >= 20_000 / 35]
    assert (report.head_keys, report.head_share) == (
        len(frequent),
        pytest.approx(sum(frequent) / 20_000),
    )


@pytest.mark.parametrize("name", ["watcher", "greedy"])
def test_sources_take_records_round_robin(name: str) -> None:
    keys = keys_of("uniform:records=1000")

    report = run(name, "uniform:records=1000", partitions=4, sources=7, batch_records=300)

    shares = [np.concatenate(seen("keys", source)) for source in range(1, 7)]
    assert [share.tolist() for share in shares] == [keys[s::7].tolist() for s in range(1, 7)]
    assert report.loads == run("key", "uniform:records=1000", partitions=4).loads


def test_fewer_records_than_sources_are_routed_too() -> None:
    for name in ("watcher", "greedy"):
        report = run(name, "uniform:records=10", partitions=3, sources=64, batch_records=3)

        assert sum(report.loads) == 10


@pytest.mark.parametrize(
    ("scenario", "batches"),
    [
        ({}, 1),
        ({"batch_records": 300}, 4),
        ({"batch_seconds": 0.05}, 2),
        ({"arrival_per_second": 100.0}, 10),
        ({"arrival_per_second": 100.0, "feedback_seconds": 5.0}, 2),
    ],
)
def test_batches_begin_where_they_are_asked_for(scenario: dict[str, object], batches: int) -> None:
    run("watcher", "uniform:records=1000", partitions=4, sources=2, **scenario)

    # Source 0 is also the one that warms the kernels up.
    assert len(seen("batch", 1)) == batches


def test_feedback_tells_of_the_batch_before_exactly() -> None:
    keys = keys_of("posg-costs:records=1000")
    (chunk,) = open_trace("posg-costs:records=1000").chunks()

    run("watcher", "posg-costs:records=1000", partitions=3, sources=2, batch_records=400)

    first, second, third = seen("batch", 1)
    routes = create("key", partitions=3).route(keys)
    begin, end = 400, 800
    mine = slice(begin, end)
    assert first is None
    assert isinstance(second, Feedback)
    assert isinstance(third, Feedback)
    assert third.records.tolist() == np.bincount(routes[mine], minlength=3).tolist()
    seconds = chunk.costs[mine] * 1e-3
    assert third.busy_seconds == pytest.approx(np.bincount(routes[mine], seconds, minlength=3))
    rows = zip(third.key_partitions.tolist(), third.key_hashes.tolist(), strict=True)
    expected = Counter(zip(routes[mine].tolist(), keys[mine].tolist(), strict=True))
    assert dict(zip(rows, third.key_records.tolist(), strict=True)) == expected
    assert third.key_seconds.sum() == pytest.approx(seconds.sum())


def test_timestamps_are_stream_time() -> None:
    trace = "uniform:records=100,records_per_second=50.0"
    run("watcher", trace, partitions=2, sources=2, points=1)

    assert seen("timestamps", 1)[0].tolist() == list(range(20_000, 2_000_000, 40_000))


def test_memory_is_of_the_stream_unless_there_are_batches_or_it_was_chosen() -> None:
    run("remembering", "uniform:records=10", partitions=2)
    run("remembering", "uniform:records=10", partitions=2, batch_records=5)
    run("remembering:memory=batch", "uniform:records=10", partitions=2)

    assert list(dict.fromkeys(seen("memory"))) == ["stream", "batch"]
    assert seen("memory")[-1] == "batch"


@pytest.mark.parametrize(
    ("name", "message"),
    [("losing", "losing: 10 records were not routed"), ("astray", "partition that does not exist")],
)
def test_broken_grouping_is_found_out(name: str, message: str) -> None:
    with pytest.raises(GroupingError, match=message):
        run(name, "uniform:records=10", partitions=2, points=1)


def test_idle_partition_takes_only_the_cost() -> None:
    report = run("key", "zipf:records=1000", partitions=1, cost_us=5000.0, arrival_per_second=100.0)

    assert report.execution is not None
    assert report.execution.latency_mean_ms == pytest.approx(5.0)
    assert report.execution.latency_p99_ms == pytest.approx(5.0, rel=0.004)
    assert report.execution.execution_seconds == pytest.approx(9.99 + 0.005)
    assert report.execution.utilisation == pytest.approx(0.5, rel=0.01)


def test_overloaded_partition_queues() -> None:
    report = run(
        "key", "zipf:records=1000", partitions=1, cost_us=20_000.0, arrival_per_second=100.0
    )

    # Every record waits 10 ms longer than the one before.
    assert report.execution is not None
    assert report.execution.execution_seconds == pytest.approx(20.0)
    assert report.execution.latency_mean_ms == pytest.approx(20 + 10 * 999 / 2)
    assert report.execution.throughput_per_second == pytest.approx(50.0)


def test_batch_starts_when_it_is_complete_and_the_one_before_has_ended() -> None:
    report = run(
        "key",
        "zipf:records=20",
        partitions=1,
        cost_us=100_000.0,
        arrival_per_second=5.0,
        batch_records=10,
    )

    # Arrivals 0, 0.2, ... 3.8; the batches run 1.8 to 2.8 and 3.8 to 4.8.
    assert report.execution is not None
    assert report.execution.execution_seconds == pytest.approx(4.8)
    assert report.batches.makespan_seconds_max == pytest.approx(1.0)
    assert report.batches.count == 2
    assert report.execution.latency_mean_ms == pytest.approx(1000 * (1.8 + 0.1 - 0.1 * 4.5))


def test_slow_partition_takes_longer_from_the_record_on_that_it_is_slow() -> None:
    report = run(
        "shuffle",
        "zipf:records=400",
        partitions=2,
        cost_us=1000.0,
        speeds=((1.0,), (0.5, 1.0)),
        speeds_from=(0, 200),
    )

    assert report.execution is not None
    assert report.execution.execution_seconds == pytest.approx(0.1 + 0.2)
    assert report.execution.busy_max_over_mean == pytest.approx(0.3 / 0.25)


def test_without_costs_there_are_no_figures_of_time() -> None:
    figures = run("key", "zipf:records=100", partitions=2).to_dict()

    assert "execution_seconds" not in figures
    assert "window_latency_mean_ms" not in figures["over_time"]


def test_contract_of_the_json_object() -> None:
    figures = run("key", "zipf:records=100", partitions=2, cost_us=1.0).to_dict()

    assert set(figures) >= {
        *("grouping", "partitions", "sources", "records", "distinct_keys", "pairs"),
        *("replication", "imbalance", "max_over_mean", "loads", "routing_records_per_second"),
        *("execution_seconds", "throughput_per_second", "latency_mean_ms", "latency_p50_ms"),
        *("latency_p99_ms", "stddev", "dist_cost", "head_share", "batches", "over_time"),
    }


def test_points_over_time_end_with_the_final_figures() -> None:
    report = run("shuffle", "zipf:records=12345", partitions=5, points=7, cost_us=10.0)

    series = report.over_time
    assert series.records == [1764, 3528, 5292, 7056, 8820, 10584, 12345]
    assert series.pairs[-1] == report.pairs
    assert series.imbalance[-1] == report.imbalance
    assert series.pairs == sorted(series.pairs)
    assert series.stddev[-1] == report.stddev
    assert series.distinct_keys[-1] == report.distinct_keys
    assert series.head_share[-1] == report.head_share
    means = np.diff([0, *series.records]) * series.window_latency_mean_ms
    assert report.execution is not None
    assert series.execution_seconds[-1] == report.execution.execution_seconds
    assert series.throughput_per_second[-1] == report.execution.throughput_per_second
    assert series.window_makespan_seconds_max == []
    assert means.sum() / 12_345 == pytest.approx(report.execution.latency_mean_ms)


def test_points_over_time_are_those_of_the_records_so_far() -> None:
    spec = "zipf:z=1.1,keys=300,records=6000"
    keys = keys_of(spec)
    routes = create("key", partitions=4).route(keys)

    series = run("key", spec, partitions=4, points=3).over_time

    for point, records in enumerate((2000, 4000, 6000)):
        loads = np.bincount(routes[:records], minlength=4)
        counts = np.unique(keys[:records], return_counts=True)[1]
        assert series.distinct_keys[point] == counts.size
        assert series.stddev[point] == pytest.approx(np.std(loads) * 100 / records)
        share = counts[counts >= records / 20].sum() / records
        assert series.head_share[point] == pytest.approx(share)


def test_makespans_over_time_are_of_the_batches_in_the_window() -> None:
    report = run(
        "key",
        "zipf:records=40",
        partitions=1,
        cost_us=100_000.0,
        batch_records=20,
        points=8,
        speeds=((1.0,), (2.0,)),
        speeds_from=(0, 20),
    )

    # Five records a point, of 0.1 s in the first batch and 0.05 s in the second.
    series = report.over_time
    spans = [0.5, 1.0, 1.5, 2.0, 0.25, 0.5, 0.75, 1.0]
    assert series.window_makespan_seconds_max == pytest.approx(spans)
    assert series.execution_seconds == pytest.approx([0.5, 1, 1.5, 2, 2.25, 2.5, 2.75, 3])
    assert series.throughput_per_second[3] == pytest.approx(10)
    assert series.window_latency_p50_ms[:2] == pytest.approx([300, 800], rel=0.004)


def test_routing_rate_is_of_the_clock_that_was_given() -> None:
    # Every look at this clock takes a second: two for begin_batch, two for the one chunk, and the
    # two in between that prepare it are not routing.
    report = run("key", "uniform:records=100", partitions=2, points=1, clock=count().__next__)

    assert report.routing_seconds == 1 + 1 + 1 + 1 - 1
    assert report.routing_records_per_second == pytest.approx(100 / 3)


def test_imbalance_is_seen_within_batches() -> None:
    class Alternating(Key):
        name = "alternating"

        def _begin_batch(self, feedback: Feedback | None) -> None:
            self.state["active"][0] ^= 1

        def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
            out[:] = self.state["active"][0]

    GROUPINGS["alternating"] = Alternating
    try:
        report = run("alternating", "uniform:records=100", partitions=2, batch_records=50)
    finally:
        del GROUPINGS["alternating"]

    assert report.max_over_mean == 1.0
    assert report.batches.max_over_mean_mean == 2.0
    assert report.batches.imbalance_max == 0.5


@pytest.mark.parametrize(
    ("scenario", "problem"),
    [
        ({"batch_records": 1}, "batch_records: at most 100000 parts"),
        ({"batch_seconds": 1e-5}, "batch_seconds: less than one record at 10000 records a second"),
        (
            {"arrival_per_second": 10.0, "feedback_seconds": 0.01},
            "feedback_seconds: less than one record at 10 records a second",
        ),
    ],
)
def test_parts_that_make_no_sense_are_refused(scenario: dict[str, object], problem: str) -> None:
    with pytest.raises(SpecError, match=problem):
        run("watcher", "zipf:records=200000", partitions=2, **scenario)
