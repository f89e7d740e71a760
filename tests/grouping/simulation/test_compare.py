"""The order of groupings, and the verdict on whether any is needed."""

import time

from unskew.grouping.simulation.compare import ranked, verdict
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, SimulationReport, simulate
from unskew.grouping.simulation.streams.traces import open_trace


def reports(trace: str, *names: str, **scenario: object) -> list[SimulationReport]:
    opened, chosen = open_trace(trace), Scenario(**scenario)
    return [simulate(opened, GroupingSpec(name), chosen, time.perf_counter) for name in names]


def test_less_state_wins_where_times_are_as_good_as_equal() -> None:
    rows = reports(
        "zipf:z=1.0,keys=1000,records=50000", "shuffle", "key", "partial_key", partitions=4
    )

    assert [report.grouping for report in ranked(rows)] == ["partial_key", "shuffle", "key"]


def test_no_skew_needs_no_grouping() -> None:
    rows = reports("uniform:keys=100000,records=200000", "key", "shuffle", partitions=4)

    assert verdict(rows).startswith(
        "You do not need Unskew: with plain key grouping the fullest partition has 1.0"
    )


def test_spare_time_needs_no_grouping() -> None:
    rows = reports(
        "zipf:records=20000",
        "key",
        "shuffle",
        partitions=4,
        cost_us=1.0,
        arrival_per_second=100.0,
    )

    assert verdict(rows) == (
        "You do not need Unskew: no grouping is more than 10 % faster than plain key grouping here."
    )


def test_skew_is_worth_a_grouping_and_the_limits_are_said() -> None:
    rows = reports("zipf:z=2.0,records=50000", "key", "shuffle", partitions=10)

    line = verdict(rows)
    assert line.startswith("Use shuffle: its fullest partition has 1.00x its fair share, key")
    assert "Sums and counts gain nothing" in line


def test_time_is_what_counts_where_records_have_a_cost() -> None:
    rows = reports("zipf:z=2.0,records=50000", "key", "shuffle", partitions=10, cost_us=100.0)

    assert verdict(rows).startswith("Use shuffle: 0.5 s and a p99 latency of")
