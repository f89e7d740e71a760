"""The results of a simulation, as numbers by name."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from unskew.grouping.base import Float64s, Int64s


@dataclass(frozen=True)
class Execution:
    """Figures of time: only where records have a cost."""

    execution_seconds: float
    """Seconds from the arrival of the first record until the last partition is done."""
    throughput_per_second: float
    latency_mean_ms: float
    latency_p50_ms: float
    latency_p95_ms: float
    latency_p99_ms: float
    latency_max_ms: float
    latency_mean_max_ms: float
    """The mean latency of the partition where it is the largest."""
    cost_mean_us: float
    busy_max_over_mean: float
    """Maximum over mean of the partitions' busy seconds: the balance of time, not of records."""
    utilisation: float
    """Busy seconds over the seconds there were."""
    latency_means_ms: list[float]
    """The mean latency of each partition's records."""
    latency_percentiles_ms: list[float]
    """The latency that 1 %, 2 %, ... 99 % of the records do not exceed."""
    full_knowledge_mean_ms: float | None = None
    """The mean latency if each record went where it is done first."""
    full_knowledge_utilisation: float | None = None
    """Busy seconds over the seconds there were then."""


@dataclass(frozen=True)
class Batches:
    """Figures within micro-batches (one batch, where the trace was not cut)."""

    count: int
    records: int
    """Records of a whole batch; the last may have fewer."""
    imbalance_mean: float
    imbalance_max: float
    max_over_mean_mean: float
    max_over_mean_max: float
    makespan_seconds_mean: float | None = None
    makespan_seconds_p50: float | None = None
    makespan_seconds_p99: float | None = None
    makespan_seconds_max: float | None = None


@dataclass
class OverTime:
    """The figures over time: of all records so far; `window_`: since the last point in time."""

    records: list[int] = field(default_factory=list)
    imbalance: list[float] = field(default_factory=list)
    max_over_mean: list[float] = field(default_factory=list)
    window_max_over_mean: list[float] = field(default_factory=list)
    window_imbalance: list[float] = field(default_factory=list)
    stddev: list[float] = field(default_factory=list)
    window_stddev: list[float] = field(default_factory=list)
    distinct_keys: list[int] = field(default_factory=list)
    head_share: list[float] = field(default_factory=list)
    pairs: list[int] = field(default_factory=list)
    replication: list[float] = field(default_factory=list)
    routing_records_per_second: list[float] = field(default_factory=list)
    window_hot_precision: list[float] = field(default_factory=list)
    """The part of the keys treated as hot by the first source that really was hot."""
    window_hot_recall: list[float] = field(default_factory=list)
    """The part of the really hot keys that the first source treats so."""
    signals: dict[str, list[float]] = field(default_factory=dict)
    """The first source's signals."""
    execution_seconds: list[float] = field(default_factory=list)
    """Until the last partition is done with the records so far."""
    throughput_per_second: list[float] = field(default_factory=list)
    window_latency_mean_ms: list[float] = field(default_factory=list)
    window_latency_p50_ms: list[float] = field(default_factory=list)
    window_latency_p99_ms: list[float] = field(default_factory=list)
    window_latency_least_ms: list[float] = field(default_factory=list)
    window_latency_most_ms: list[float] = field(default_factory=list)
    window_makespan_seconds_max: list[float] = field(default_factory=list)
    """The longest makespan of the batches with records in the window, as of the window's end."""


@dataclass(frozen=True)
class Streams:
    """Where the figures of several streams lie; the report's own are their means."""

    count: int
    least: dict[str, float]
    most: dict[str, float]


@dataclass(frozen=True)
class SimulationReport:
    """One grouping on one trace."""

    grouping: str
    options: dict[str, object]
    partitions: int
    sources: int
    records: int
    distinct_keys: int
    pairs: int
    """Distinct (key, partition) pairs."""
    replication: float
    """Pairs over distinct keys; the DistCost of Dynamic Key Grouping."""
    pairs_of_two: int
    """The sum over the keys of their records or 2, what is less: the papers' memory of PKG."""
    pairs_of_all: int
    """The sum over the keys of their records or n, what is less: the papers' memory of SG."""
    imbalance: float
    """(largest load - mean load) / records."""
    max_over_mean: float
    stddev: float
    """Standard deviation of the loads, in percent of all records."""
    head_keys: int
    """Keys with at least 1/(5 n) of the records."""
    head_share: float
    """The share of the records that the head keys have."""
    hot_keys: int
    """Keys that the first source treats as hot at the end."""
    loads: list[int]
    routing_seconds: float
    routing_records_per_second: float
    batches: Batches
    over_time: OverTime
    signals: dict[str, float]
    execution: Execution | None = None
    head_loads: list[int] | None = None
    """The records of the head in each partition, with `head_theta`."""
    keys_max_over_mean: float | None = None
    """The most keys of a partition over the mean, with `head_theta`."""
    keys_moved: int | None = None
    """Keys that went to a partition new to them after the last change of active partitions."""
    hot_delay_records: float | None = None
    """Records from where a key becomes really hot to the point from which on the first source
    treats it so, on average; with `hot_share`."""
    hot_decline_records: float | None = None
    """Records from where a key is no longer really hot to the point from which on the first source
    no longer treats it so."""
    streams: Streams | None = None
    """Where there were several."""

    def to_dict(self) -> dict[str, Any]:
        """Make a flat mapping for JSON, without the figures of time where there is no time."""
        figures = asdict(self)
        execution = figures.pop("execution") or {}
        figures["dist_cost"] = self.replication
        order = list(figures)
        order.insert(order.index("loads"), order.pop(order.index("dist_cost")))
        figures = {name: figures[name] for name in order}
        figures = {
            name: value for name, value in (figures | execution).items() if value is not None
        }
        for group in ("batches", "over_time"):
            figures[group] = {
                name: value for name, value in figures[group].items() if value not in (None, [], {})
            }
        return figures


def imbalance(loads: Int64s) -> float:
    """(largest - mean) / sum; 0 without load."""
    total = int(loads.sum())
    return (int(loads.max()) - total / loads.size) / total if total else 0.0


def max_over_mean(loads: Int64s | Float64s) -> float:
    """The largest over the mean; 1 without load."""
    mean = float(loads.mean())
    return float(loads.max()) / mean if mean > 0 else 1.0


def load_stddev(loads: Int64s) -> float:
    """The standard deviation of the loads in percent."""
    total = int(loads.sum())
    return float(np.std(loads * (100.0 / total))) if total else 0.0


def head_of(counts: Int64s, partitions: int, records: int) -> Int64s:
    """The records of the keys that have at least 1/(5 n) of all."""
    return counts[counts * (5 * partitions) >= records]


def summarise_batches(
    size: int, imbalances: list[float], ratios: list[float], makespans: list[float]
) -> Batches:
    """The batches' own figures as one."""
    spans = np.array(makespans)
    times: tuple[float, ...] = ()
    if makespans:
        median, high = np.percentile(spans, [50, 99])
        times = (float(spans.mean()), float(median), float(high), float(spans.max()))
    return Batches(
        len(imbalances),
        size,
        float(np.mean(imbalances)),
        max(imbalances),
        float(np.mean(ratios)),
        max(ratios),
        *times,
    )
