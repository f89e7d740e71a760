"""Several streams of one law: an experiment with one seed after the other, and what they share."""

from collections.abc import Sequence
from dataclasses import asdict, fields, is_dataclass, replace
from typing import Any

from unskew.grouping.simulation.reports import SimulationReport, Streams
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.shares import Clock
from unskew.grouping.simulation.simulate import GroupingSpec, Progress, simulate
from unskew.grouping.simulation.streams.traces import Trace, open_trace


def simulate_streams(
    trace: Trace,
    trace_spec: str,
    spec: GroupingSpec,
    scenario: Scenario,
    clock: Clock,
    progress: Progress | None = None,
) -> SimulationReport:
    """Simulate as many streams as the scenario says; the mean of each figure, its least and most.

    `trace` is the first; stream i has the trace's seed and the groupings' seed plus i.
    """
    reports = []
    for later in range(scenario.streams):
        seeded = scenario.model_copy(update={"seed": scenario.seed + later})
        stream = open_trace(trace_spec, later) if later else trace
        reports.append(simulate(stream, spec, seeded, clock, progress))
    return reports[0] if len(reports) == 1 else summarise(reports)


def summarise(reports: Sequence[SimulationReport]) -> SimulationReport:
    """The means, with the least and the most of each number."""
    numbers = [_numbers(asdict(report)) for report in reports]
    names = [name for name in numbers[0] if all(name in each for each in numbers)]
    streams = Streams(
        count=len(reports),
        least={name: min(each[name] for each in numbers) for name in names},
        most={name: max(each[name] for each in numbers) for name in names},
    )
    mean: SimulationReport = _mean(reports)
    return replace(mean, streams=streams)


def _numbers(figures: dict[str, Any], before: str = "") -> dict[str, float]:
    """All that is a number, those of `batches` and `signals` with their name before."""
    numbers: dict[str, float] = {}
    for name, value in figures.items():
        if isinstance(value, dict) and name != "options":
            numbers |= _numbers(value, "" if name == "execution" else f"{name}.")
        elif isinstance(value, int | float):
            numbers[before + name] = value
    return numbers


def _mean(values: Sequence[Any]) -> Any:
    """Average numbers, and all else part by part; words are the first.

    What some streams do not have is left out.
    """
    values = [value for value in values if value is not None]
    if not values:
        return None
    first = values[0]
    if isinstance(first, int | float):
        return sum(values) / len(values)
    if isinstance(first, list):
        return [_mean(each) for each in zip(*values, strict=True)]
    if isinstance(first, dict):
        return {name: _mean([each[name] for each in values]) for name in first}
    if is_dataclass(first) and not isinstance(first, type):
        names = (each.name for each in fields(first))
        means = {name: _mean([getattr(each, name) for each in values]) for name in names}
        return replace(first, **means)
    return first
