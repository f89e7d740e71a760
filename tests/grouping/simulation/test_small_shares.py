"""Many sources with about a record a partition each: what they round must add up evenly."""

import pytest

from unskew.grouping.simulation.reports import SimulationReport
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.traces import open_trace

BATCHES = 10
SCENARIO = Scenario(partitions=100, sources=48, batch_records=5000, points=BATCHES)


def run(grouping: str, z: float, keys: int = 10_000) -> SimulationReport:
    trace = open_trace(f"zipf:z={z},keys={keys},records={5000 * BATCHES}")
    return simulate(trace, GroupingSpec(grouping), SCENARIO, lambda: 0.0)


@pytest.mark.parametrize("z", [0.0, 0.8, 1.4, 2.0])
def test_level_stays_level(z: float) -> None:
    assert run("level", z).batches.max_over_mean_max <= 1.05


def test_hot_keys_of_many_sources_fill_all_partitions_alike() -> None:
    report = run("w_choices", z=1.0, keys=20)

    # The first batches find the hot keys.
    assert max(report.over_time.window_max_over_mean[-4:]) <= 1.2


@pytest.mark.parametrize(("grouping", "largest"), [("w_choices", 1.5), ("d_choices", 1.6)])
def test_only_the_tail_of_two_choices_is_uneven(grouping: str, largest: float) -> None:
    assert max(run(grouping, z=1.4).over_time.window_max_over_mean[-4:]) <= largest
