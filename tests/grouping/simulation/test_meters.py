"""What a simulation takes note of where it is asked to: heads, moves, hot keys, full knowledge."""

import numpy as np
import pytest

from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.simulation.meters import pair_loads
from unskew.grouping.simulation.meters.execution import FullKnowledge
from unskew.grouping.simulation.meters.hot_keys import HotKeyMeter
from unskew.grouping.simulation.meters.pair_loads import PairLoads
from unskew.grouping.simulation.meters.streams import simulate_streams
from unskew.grouping.simulation.reports import SimulationReport
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.traces import open_trace


def run(name: str, trace: str, **scenario: object) -> SimulationReport:
    return simulate(open_trace(trace), GroupingSpec.parse(name), Scenario(**scenario), lambda: 0.0)


def test_full_knowledge_takes_the_partition_that_is_done_first() -> None:
    rng = np.random.default_rng(4)
    arrivals, costs, speeds = np.arange(200) * 0.3, rng.random(200), np.array([1.0, 2.0, 0.5])
    ideal = FullKnowledge(3)

    ideal.serve(120, arrivals[:120], costs[:120], speeds)
    ideal.serve(80, arrivals[120:], costs[120:], speeds)

    free, latencies, busy = [0.0] * 3, [], 0.0
    for arrival, cost in zip(arrivals, costs, strict=True):
        done = [max(arrival, free[p]) + cost / speeds[p] for p in range(3)]
        chosen = int(np.argmin(done))
        free[chosen] = done[chosen]
        busy += cost / speeds[chosen]
        latencies.append(done[chosen] - arrival)
    assert ideal.mean_ms(200) == pytest.approx(1e3 * np.mean(latencies))
    assert ideal.utilisation == pytest.approx(busy / 3 / max(free))


def test_no_grouping_beats_full_knowledge_here() -> None:
    report = run(
        "shuffle", "posg-costs:records=20000", partitions=5, utilisation=0.9, full_knowledge=True
    )

    assert report.execution is not None
    known = report.execution.full_knowledge_mean_ms
    assert known is not None
    assert 0.2 < known / report.execution.latency_mean_ms < 0.9
    assert report.execution.latency_percentiles_ms == sorted(
        report.execution.latency_percentiles_ms
    )
    means = np.array(report.execution.latency_means_ms)
    assert means @ report.loads / 20_000 == pytest.approx(report.execution.latency_mean_ms)


def test_the_heads_part_of_loads_is_exact() -> None:
    report = run("shuffle", "country:r=50,records=20000", partitions=4, head_theta=0.4)

    assert report.head_loads is not None
    assert sum(report.head_loads) == pytest.approx(10_000, rel=0.05)
    assert report.keys_max_over_mean == 1.0  # every name is met by every partition
    assert all(head < load for head, load in zip(report.head_loads, report.loads, strict=True))
    assert run("shuffle", "country:records=99", partitions=4).head_loads is None


def test_keys_move_when_they_go_where_they_never_were() -> None:
    loads = PairLoads(3)
    loads.add(np.array([0, 0, 1, 2], np.int32), np.array([0, 1, 1, 2], np.int32))
    loads.mark(2)
    loads.add(np.array([0, 1, 1, 3], np.int32), np.array([1, 0, 2, 0], np.int32))

    assert loads.moved() == 1
    assert loads.count_head_records(np.array([3, 3, 1, 1], np.int64), 3).tolist() == [2, 3, 1]


def test_the_ring_moves_fewer_keys_than_hashes_modulo_n() -> None:
    settings = {"partitions": 16, "active": (15, 16), "active_from": (0, 20_000)}
    moved = [
        run(f"fish:placement={each}", "zipf:z=1,records=40000", keys_moved=True, **settings)
        for each in ("ring", "modulo")
    ]

    assert moved[0].keys_moved is not None
    assert moved[1].keys_moved is not None
    assert 0 < moved[0].keys_moved < 0.7 * moved[1].keys_moved


def test_pairs_that_are_too_many_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pair_loads, "CELLS_MAX", 5000)
    loads = PairLoads(4)

    with pytest.raises(ValueError, match="head_theta, keys_moved: more than"):
        loads.add(np.array([2000], np.int32), np.array([0], np.int32))


def test_delay_and_decline_are_from_point_to_point() -> None:
    counter = PairCounter(2)
    meter = HotKeyMeter(counter, 0.5)
    windows = [([1, 1, 2, 3], []), ([1, 1, 1, 4], [1]), ([5, 6, 7, 8], [1]), ([5, 6, 7, 9], [])]

    judged = []
    for number, (keys, treated) in enumerate(windows):
        counter.count(np.array(keys, np.uint64), np.zeros(4, np.int32))
        judged.append(meter.take(4 * (number + 1), 4, np.array(treated, np.uint64)))

    assert judged == [(1.0, 0.0), (1.0, 1.0), (0.0, 1.0), (1.0, 1.0)]
    assert (meter.delay_records, meter.decline_records) == (8.0, 8.0)


def test_a_burst_is_seen_and_forgotten() -> None:
    burst = "flash:share=0.5,begin=0.4,end=0.6,records=100000"
    settings = {"partitions": 10, "hot_share": 0.3, "points": 100}

    quick, never = (run(name, burst, **settings) for name in ("fish", "key"))

    assert quick.hot_delay_records in (1000, 2000)
    assert quick.hot_decline_records is not None
    assert quick.hot_decline_records < 20_000
    assert (never.hot_delay_records, never.hot_decline_records) == (None, None)


def test_a_sketch_is_judged_in_the_groupings_place() -> None:
    burst = "flash:share=0.5,begin=0.4,end=0.6,z=0,keys=1000,records=100000"
    settings = {"partitions": 10, "hot_share": 0.3, "points": 100}

    whole, ada, narrow = (
        run("key", burst, predictor=spec, **settings)
        for spec in ("count_min:share=0.3", "ada_count_min:share=0.3", "count_min:columns=1")
    )

    assert whole.hot_delay_records is None
    assert (ada.hot_delay_records, ada.hot_decline_records) == (2000, 1000)
    assert max(ada.over_time.window_hot_precision[40:60]) == 1.0
    assert max(narrow.over_time.window_hot_precision) < 0.01


def test_too_little_memory_costs_by_the_part_that_is_missing() -> None:
    def seconds(memory_pairs: int) -> float:
        settings = {"cost_us": 100.0, "memory_pairs": memory_pairs, "miss_us": 50.0}
        report = run("shuffle", "uniform:keys=1000,records=50000", partitions=4, **settings)
        assert report.execution is not None
        return report.execution.cost_mean_us

    assert seconds(4000) == pytest.approx(100.0)
    assert seconds(2000) == pytest.approx(125.0, rel=0.03)


def test_points_may_be_seconds_apart() -> None:
    report = run("key", "uniform:records=5000,records_per_second=1000", partitions=4,
                 point_seconds=1.5)  # fmt: skip

    assert report.over_time.records == [1500, 3000, 4500, 5000]
    assert len(report.over_time.window_imbalance) == 4


def test_what_some_streams_lack_is_left_out_of_the_mean() -> None:
    trace = "flash:share=0.5,records=4000"
    scenario = Scenario(partitions=4, streams=2, hot_share=0.3, points=4)

    report = simulate_streams(
        open_trace(trace), trace, GroupingSpec.parse("key"), scenario, lambda: 0.0
    )

    assert report.hot_delay_records is None
    assert report.keys_moved is None


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        ({"memory_pairs": 9}, "memory_pairs and miss_us: give both"),
        ({"keys_moved": True}, "keys_moved: only with active"),
        ({"predictor": "count_min"}, "predictor: only with hot_share"),
        ({"full_knowledge": True, "pending": 3}, "full_knowledge: not with pending"),
        ({"full_knowledge": True, "batch_records": 3}, "full_knowledge: not with batches"),
    ],
)
def test_settings_that_do_not_go_together_are_named(wrong: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Scenario(partitions=4, **wrong)


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"full_knowledge": True}, "full_knowledge: needs a cost"),
        ({"memory_pairs": 9, "miss_us": 1.0}, "memory_pairs: needs a cost"),
        ({"hot_share": 0.1, "predictor": "count_mean"}, "predictor: unknown"),
        ({"hot_share": 0.1, "predictor": "count_min:rows=0"}, "predictor count_min.rows"),
        ({"point_seconds": 1e-6}, "point_seconds: less than one record"),
        ({"point_seconds": 0.0001}, "point_seconds: at most 10000 points"),
    ],
)
def test_settings_that_the_trace_does_not_allow_are_named(
    settings: dict[str, object], problem: str
) -> None:
    with pytest.raises(SpecError, match=problem):
        run("key", "uniform:records=20000", partitions=4, **settings)
