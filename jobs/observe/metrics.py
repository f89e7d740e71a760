"""The metrics: one table that defines them all, and the board that holds their values.

The board's page is replaced as a whole after each batch, so a scrape sees one batch or the next,
never half of each, and never waits for one.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS, WINDOW_ENDS
from unskew.jobs.observe.batch import BatchDone, Lag, lag_of
from unskew.jobs.observe.batch_stats import BatchStats, HotKey
from unskew.jobs.observe.health import STATES, Health
from unskew.jobs.observe.histograms import Buckets, Labels, added, cumulative, observation

PREFIX = "unskew_"
NAME_LENGTH_MAX = 80
BATCH_BOUNDS_SECONDS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 900.0)


@dataclass(frozen=True)
class Metric:
    """One metric: its name without prefix, its kind, what it says, and its own labels."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()

    @property
    def exported(self) -> str:
        """The name that Prometheus knows."""
        return f"{PREFIX}{self.name}_total" if self.kind == "counter" else f"{PREFIX}{self.name}"

    @property
    def all_labels(self) -> tuple[str, ...]:
        """Its labels; every metric says which query it is of."""
        return ("query", *self.labels)


_PARTITION = ("partition",)
METRICS = (
    Metric("query_info", "gauge", "Always 1; what the query runs.", ("grouping", "operator")),
    Metric("query_up", "gauge", "1 while the query runs and gives signs of life, otherwise 0."),
    Metric("query_state", "gauge", "1 for the state that the query is in.", ("state",)),
    Metric("query_start_timestamp_seconds", "gauge", "When this process began, as Unix time."),
    Metric("trigger_interval_seconds", "gauge", "The trigger's interval; none for available_now."),
    Metric(
        "last_batch_timestamp_seconds",
        "gauge",
        "When the last batch was done, also one without rows, as Unix time.",
    ),
    Metric("last_batch_number", "gauge", "The number of the last batch that had rows."),
    Metric("partitions", "gauge", "Partitions that records are routed to."),
    Metric(
        "batches",
        "counter",
        "Batches done. Those without rows, by which Spark moves the watermark on, count here, and"
        " change no other figure of the last batch.",
    ),
    Metric(
        "batch_seconds", "histogram", "How long batches with rows took, from trigger to commit."
    ),
    Metric("batch_part_seconds", "gauge", "How long each part of the last batch took.", ("part",)),
    Metric(
        "source_records",
        "counter",
        "Records read from the source, as Spark counts them, before keys are taken out of them: one"
        " may hold several words or tags. Of a task that ran twice, both runs may count.",
    ),
    Metric("batch_source_records", "gauge", "The same, in the last batch."),
    Metric("records", "counter", "Records done; with grouping none, as Spark counts its input."),
    Metric("batch_records", "gauge", "Records of the last batch."),
    Metric("partition_records", "counter", "Records done by a partition.", _PARTITION),
    Metric("partition_batch_records", "gauge", "Its records of the last batch.", _PARTITION),
    Metric(
        "partition_batch_under_key_records",
        "gauge",
        "Records that it would have had in the last batch under the grouping `key`.",
        _PARTITION,
    ),
    Metric("partition_busy_seconds", "counter", "Time a partition was at work.", _PARTITION),
    Metric("partition_batch_busy_seconds", "gauge", "The same, in the last batch.", _PARTITION),
    Metric(
        "partition_latency_seconds",
        "histogram",
        "From a record's timestamp in the queue to when its partition was done with it.",
        _PARTITION,
    ),
    Metric("partition_state_keys", "gauge", "Distinct keys it had in the last batch.", _PARTITION),
    Metric("partition_state_bytes", "gauge", "What its partial results took then.", _PARTITION),
    Metric("max_over_mean_ratio", "gauge", "Records of the fullest partition over the mean."),
    Metric(
        "under_key_max_over_mean_ratio",
        "gauge",
        "What max_over_mean_ratio would have been under the grouping `key`.",
    ),
    Metric("busy_max_over_mean_ratio", "gauge", "Time of the slowest partition over the mean."),
    Metric("replication_ratio", "gauge", "(Key, partition) pairs over distinct keys."),
    Metric("hot_keys", "gauge", "Keys that the grouping treats as hot, all sources together."),
    Metric(
        "hot_key_records",
        "gauge",
        "Records of the largest keys in the last batch, as many as metrics.hot_keys; by hash, or"
        " by name with metrics.hot_key_names.",
        ("key",),
    ),
    Metric("sources", "gauge", "Sources that routed the last batch."),
    Metric("routing_seconds", "counter", "Time spent in routing, all sources together."),
    Metric("batch_routing_seconds", "gauge", "The same, in the last batch."),
    Metric(
        "grouping_signal",
        "gauge",
        "The grouping's own figures after the last batch, mean and greatest over the sources.",
        ("signal", "over_sources"),
    ),
    Metric(
        "late_partials",
        "counter",
        "Results of a key and window in a batch, each of one record or many, that were dropped"
        " because the window was over.",
    ),
    Metric(
        "late_records",
        "counter",
        "Records dropped because all their windows were over, by the watermark of the batch before"
        " theirs, as Spark drops them; of sliding windows, a record with one still open is not"
        " late. There is no value where Spark computes the operator itself (grouping none)."
        f" The least they may be if a partition has records of more than {WINDOW_ENDS} windows that"
        " are over, in one batch.",
    ),
    Metric("dead_letters", "counter", "Records that could not be used, by reason.", ("reason",)),
    Metric(
        "kafka_lag_records",
        "gauge",
        "Records in Kafka that were not read when the last batch began.",
        ("topic", "kafka_partition"),
    ),
    Metric("merge_state_rows", "gauge", "Rows in the state of the merge."),
    Metric("merge_state_bytes", "gauge", "Memory of the state of the merge."),
    Metric(
        "merge_partition_state_rows",
        "gauge",
        "Rows of a state partition in the checkpoint, as of its newest snapshot.",
        ("merge_partition",),
    ),
    Metric(
        "merge_partition_state_bytes",
        "gauge",
        "What a restart would load of a state partition from the checkpoint.",
        ("merge_partition",),
    ),
    Metric("journal_bytes", "gauge", "Size of the journal."),
    Metric("journal_batches", "gauge", "Batches that the journal holds."),
    Metric(
        "journal_unreadable_files",
        "gauge",
        "States and reports that the next batch needs and cannot read; seen when one failed.",
    ),
)
BY_NAME: Mapping[str, Metric] = MappingProxyType({metric.name: metric for metric in METRICS})

Values = dict[str, dict[Labels, Any]]


class Board(Collector):
    """The values of all metrics of one query."""

    def __init__(
        self,
        query: str,
        health: Health,
        info: Labels = ("", ""),
        hot_keys: int = 10,
        trigger_seconds: float | None = None,
    ) -> None:
        self._query = query
        self._health = health
        self._hot_keys = hot_keys
        self._page: Values = {
            "query_info": {info: 1},
            "query_start_timestamp_seconds": {(): time.time()},
        }
        if trigger_seconds is not None:
            self._page["trigger_interval_seconds"] = {(): trigger_seconds}

    def registry(self) -> CollectorRegistry:
        """A registry with this board and nothing else."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""
        page = {**self._page, **_now(done)}
        counters: Values = {"batches": {(): 1}, "late_partials": {(): done.late_partials}}
        _add(page, counters)
        if done.has_rows:
            page |= _last(done, self._hot_keys)
            _add(page, _counted(done))
            # An empty batch is soon done: it would make the others look shorter than they are.
            took = observation(BATCH_BOUNDS_SECONDS, done.seconds)
            _observe(page, "batch_seconds", {(): took})
            if done.stats:
                _observe(page, "partition_latency_seconds", _latencies(done.stats))
        self._page = page

    def idle(self, lag: Lag) -> None:
        """The query looked for records and found none, or is behind by these."""
        self._page = {**self._page, "kafka_lag_records": _lag(lag)}

    def refused(self, counts: Mapping[str, int]) -> None:
        """Further dead letters, that no report counted."""
        page = dict(self._page)
        _add(page, {"dead_letters": {(reason,): count for reason, count in counts.items()}})
        self._page = page

    def unreadable(self, files: int) -> None:
        """So many files of the journal cannot be read: the next batch will fail."""
        self._page = {**self._page, "journal_unreadable_files": {(): files}}

    def value(self, name: str, *labels: str) -> Any:
        """One value, None if there is none (yet)."""
        return self._page.get(name, {}).get(labels)

    def collect(self) -> Iterator[Family]:
        """Every metric of the table, with the values it has."""
        state = self._health.state
        now: Values = {
            **self._page,
            "query_state": {(one,): int(one == state) for one in STATES},
            "query_up": {(): int(state == "running")},
        }
        for metric in METRICS:
            yield _family(metric, self._query, now.get(metric.name, {}))

    def describe(self) -> Iterator[Family]:
        """The same metrics without values."""
        return (_family(metric, self._query, {}) for metric in METRICS)


def _add(page: Values, counts: Values) -> None:
    for name, found in counts.items():
        sums = dict(page.get(name, {}))
        for labels, count in found.items():
            sums[labels] = sums.get(labels, 0) + count
        page[name] = sums


def _now(done: BatchDone) -> Values:
    """What is so after any batch."""
    return {
        "last_batch_timestamp_seconds": {(): time.time()},
        "kafka_lag_records": _lag(lag_of(done.progress)),
        "merge_state_rows": {(): done.merge_rows},
        "merge_state_bytes": {(): done.merge_bytes},
        "merge_partition_state_rows": {
            (str(one.partition),): one.rows for one in done.merge if one.rows is not None
        },
        "merge_partition_state_bytes": {(str(one.partition),): one.bytes for one in done.merge},
        "journal_bytes": {(): done.journal_bytes},
        "journal_batches": {(): done.journal_batches},
        "journal_unreadable_files": {(): 0},  # or the batch would not be done
    }


def _last(done: BatchDone, hot_keys: int) -> Values:
    """What is shown of the last batch with rows: all of one batch, so that figures agree."""
    return {
        "last_batch_number": {(): done.batch},
        "batch_part_seconds": {(part,): taken for part, taken in done.parts.items()},
        "batch_source_records": {(): done.source_records},
        "batch_records": {(): done.records},
        **_stats_values(done.stats, hot_keys),
        **_routing(done),
    }


def _stats_values(stats: BatchStats | None, hot_keys: int) -> Values:
    if stats is None:
        return {}
    return {
        "partitions": {(): stats.records.size},
        "max_over_mean_ratio": {(): stats.max_over_mean},
        "under_key_max_over_mean_ratio": {(): stats.under_key_max_over_mean},
        "busy_max_over_mean_ratio": {(): stats.busy_max_over_mean},
        "replication_ratio": {(): stats.replication},
        "partition_batch_records": _by_partition(stats.records),
        "partition_batch_under_key_records": _by_partition(stats.under_key),
        "partition_batch_busy_seconds": _by_partition(stats.busy_seconds),
        "partition_state_keys": _by_partition(stats.keys),
        "partition_state_bytes": _by_partition(stats.state_bytes),
        "hot_key_records": {(key_text(key),): key.records for key in stats.hot_keys[:hot_keys]},
    }


def _routing(done: BatchDone) -> Values:
    routing = done.routing
    if routing is None:
        return {}
    signals: dict[Labels, Any] = {
        (name, over): value
        for name, pair in routing.signals.items()
        for over, value in zip(("mean", "max"), pair, strict=True)
    }
    return {
        "sources": {(): routing.sources},
        "hot_keys": {(): routing.hot_keys},
        "batch_routing_seconds": {(): routing.seconds},
        "grouping_signal": signals,
    }


def _counted(done: BatchDone) -> Values:
    counts: Values = {
        "source_records": {(): done.source_records},
        "records": {(): done.records},
    }
    if done.stats is not None:
        counts["partition_records"] = _by_partition(done.stats.records)
        counts["partition_busy_seconds"] = _by_partition(done.stats.busy_seconds)
        counts["dead_letters"] = {(name,): count for name, count in done.stats.rejected.items()}
    if done.late_records is not None:
        counts["late_records"] = {(): done.late_records}
    if done.routing is not None:
        counts["routing_seconds"] = {(): done.routing.seconds}
    return counts


def _lag(lag: Lag) -> dict[Labels, Any]:
    return {(topic, partition): behind for (topic, partition), behind in lag.items()}


def _by_partition(values: Any) -> dict[Labels, Any]:
    return {(str(number),): value for number, value in enumerate(values.tolist())}


def key_text(key: HotKey) -> str:
    """A hot key as displays name it: its name where the job shows names, else its hash."""
    if key.name is None:
        return f"{key.hash:016x}"
    return key.name if len(key.name) <= NAME_LENGTH_MAX else f"{key.name[:NAME_LENGTH_MAX]}..."


def _latencies(stats: BatchStats) -> dict[Labels, Buckets]:
    parts = zip(stats.latency_counts.tolist(), stats.latency_seconds.tolist(), strict=True)
    return {
        (str(number),): Buckets(tuple(counts), seconds)
        for number, (counts, seconds) in enumerate(parts)
    }


def _observe(page: Values, name: str, found: Mapping[Labels, Buckets]) -> None:
    page[name] = added(page.get(name, {}), found)


def _family(metric: Metric, query: str, values: Mapping[Labels, Any]) -> Family:
    name, labels = f"{PREFIX}{metric.name}", metric.all_labels
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(name, metric.help, labels=labels)
        seconds = metric.name == "batch_seconds"
        bounds = BATCH_BOUNDS_SECONDS if seconds else LATENCY_BOUNDS_SECONDS
        for own, buckets in values.items():
            histogram.add_metric((query, *own), cumulative(bounds, buckets), buckets.sum)
        return histogram
    kinds: dict[str, Any] = {"gauge": GaugeMetricFamily, "counter": CounterMetricFamily}
    family: Family = kinds[metric.kind](name, metric.help, labels=labels)
    for own, value in values.items():
        family.add_metric((query, *own), value)  # type: ignore[attr-defined]
    return family
