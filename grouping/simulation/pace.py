"""How fast records arrive, and how many are routed between two reports."""

import numpy as np

from unskew.grouping.simulation.scenario import BATCHES_MAX, POINTS_MAX, Scenario
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.traces import Trace

_FEEDBACK_SECONDS = 1.0


def resolve_arrivals(trace: Trace, scenario: Scenario) -> Scenario:
    """The scenario with a rate of arrivals where it gives a utilisation."""
    if scenario.utilisation is None:
        return scenario
    unit_us = scenario.cost_us or trace.unit_cost_us
    assert unit_us
    speeds = np.resize(scenario.speeds[0], scenario.partitions)
    # A trace without costs of its own need not be read for its mean.
    mean_seconds = (_mean_cost(trace) if trace.unit_cost_us else 1.0) * unit_us * 1e-6
    rate = scenario.utilisation * float(speeds.sum()) / mean_seconds
    return scenario.model_copy(update={"arrival_per_second": rate, "utilisation": None})


def check_costs(trace: Trace, scenario: Scenario) -> None:
    """Raise where the scenario asks for times, and records cost nothing."""
    if scenario.cost_us or trace.unit_cost_us:
        return
    if scenario.reports == "completed":
        raise SpecError("reports: completed needs a cost of records; cost_us gives one")
    if scenario.utilisation is not None:
        raise SpecError("utilisation: without a cost of records there is none; cost_us gives one")
    if scenario.pending is not None:
        raise SpecError("pending: records that cost nothing are never under way; cost_us helps")
    for name in ("full_knowledge", "memory_pairs"):
        if getattr(scenario, name):
            raise SpecError(f"{name}: needs a cost of records; cost_us gives one")


def _mean_cost(trace: Trace) -> float:
    total = sum(
        float(chunk.keys.size if chunk.costs is None else chunk.costs.sum())
        for chunk in trace.chunks()
    )
    return total / trace.records


def batch_size(trace: Trace, scenario: Scenario, wants_feedback: bool) -> int:
    """How many records are routed between two calls of `begin_batch`."""
    check_costs(trace, scenario)
    scenario = resolve_arrivals(trace, scenario)
    rate = scenario.arrival_per_second or trace.records_per_second
    option = "batch_records"
    size = scenario.batch_records or trace.records
    if scenario.batch_seconds is not None:
        option = "batch_seconds"
        size = int(scenario.batch_seconds * rate)
    elif scenario.feedback_records is not None and wants_feedback:
        option, size = "feedback_records", scenario.feedback_records
    elif not scenario.batched and wants_feedback and scenario.arrival_per_second is not None:
        option = "feedback_seconds"
        size = int((scenario.feedback_seconds or _FEEDBACK_SECONDS) * rate)
        if scenario.feedback_seconds is None:
            size = max(size, 1, -(-trace.records // BATCHES_MAX))
    if size < 1:
        raise SpecError(f"{option}: less than one record at {rate:g} records a second")
    if -(-trace.records // size) > BATCHES_MAX:
        raise SpecError(
            f"{option}: at most {BATCHES_MAX} parts (got {-(-trace.records // size)}"
            f" of {size} records)"
        )
    return min(size, trace.records)


def point_size(trace: Trace, scenario: Scenario) -> int:
    """How many records there are from one point over time to the next."""
    seconds = scenario.point_seconds
    if seconds is None:
        return -(-trace.records // scenario.points)
    scenario = resolve_arrivals(trace, scenario)
    rate = scenario.arrival_per_second or trace.records_per_second
    size = int(seconds * rate)
    if size < 1:
        raise SpecError(f"point_seconds: less than one record at {rate:g} records a second")
    if -(-trace.records // size) > POINTS_MAX:
        raise SpecError(
            f"point_seconds: at most {POINTS_MAX} points (got {-(-trace.records // size)}"
            f" of {size} records)"
        )
    return size
