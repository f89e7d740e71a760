"""The board: the values of all figures that Prometheus reads.

The values are replaced as a whole after each batch, so that a scrape sees those of one batch or of
the next, never a mixture, and does not wait for a batch.
"""

import time
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

from unskew.config.models.job import Job
from unskew.jobs.observe.batches.batch import BatchDone, Lag
from unskew.jobs.observe.figure import (
    OTHERS,
    PREFIX,
    Buckets,
    Figure,
    Labels,
    split_by_labels,
    take_value,
)
from unskew.jobs.observe.figures import FIGURES
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import STATES, Health, read_trigger_seconds

Values = Mapping[str, Mapping[Labels, Any]]


def make_board(job: Job, health: Health) -> "Board":
    """Make the board of a job, before its first batch."""
    info = (job.grouping.type, job.operator.type)
    return Board(job.name, health, info, job.metrics.hot_keys, read_trigger_seconds(job))


class Board(Collector, Follower):
    """The values of one query's figures, by figure and labels."""

    def __init__(
        self,
        query: str,
        health: Health,
        info: Labels = ("", ""),
        hot_keys: int = 10,
        trigger_seconds: float | None = None,
        figures: tuple[Figure, ...] = FIGURES,
    ) -> None:
        self._query = query
        self._health = health
        self._hot_keys = hot_keys
        self._figures = {figure.name: figure for figure in figures if figure.kind}
        self._series: dict[str, set[Labels]] = {}
        self._values: Values = {
            "build_info": {(version("unskew"),): 1},
            "query_info": {info: 1},
            "query_start_timestamp_seconds": {(): time.time()},
        }
        if trigger_seconds is not None:
            self._set(trigger_interval_seconds=trigger_seconds)

    def make_registry(self) -> CollectorRegistry:
        """Make a registry with this board and nothing else."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return registry

    def on_batch_done(self, done: BatchDone) -> None:
        """Take the values of a batch; one without rows changes a few figures only."""
        shown = done.limit_hot_keys(self._hot_keys, names=True)
        values = dict(self._values)
        for figure in self._figures.values():
            if done.has_rows or figure.empty_batches:
                value = take_value(figure, shown)
                if value is not None:
                    if figure.series_max:
                        value = self._bound_series(figure, split_by_labels(value))
                    values[figure.name] = _update(figure, values.get(figure.name, {}), value)
        self._values = values

    def _bound_series(self, figure: Figure, parts: Mapping[Labels, Any]) -> Mapping[Labels, Any]:
        """The parts that have a series or may still get one, and the sum of the others."""
        known = self._series.setdefault(figure.name, set())
        bounded: dict[Labels, Any] = {}
        for labels, part in parts.items():
            if labels not in known and len(known) >= figure.series_max:
                others = (OTHERS,) * len(labels)
                bounded[others] = bounded.get(others, 0) + part
            else:
                known.add(labels)
                bounded[labels] = part
        return bounded

    def on_idle_poll(self, lag: Lag) -> None:
        """Show how far the query is behind, which may be nothing."""
        self._set(kafka_lag_records=lag)

    def on_records_rejected(self, counts: Mapping[str, int]) -> None:
        """Count dead letters that no report counts."""
        figure = self._figures["dead_letters"]
        before = self._values.get(figure.name, {})
        self._values = {**self._values, figure.name: _update(figure, before, counts)}

    def on_journal_unreadable(self, files: int) -> None:
        """Show how many files of the journal cannot be read: the next batch will fail."""
        self._set(journal_unreadable_files=files)

    def _set(self, **values: Any) -> None:
        self._values = {
            **self._values,
            **{name: split_by_labels(value) for name, value in values.items()},
        }

    def read_values(self) -> tuple[Values, str]:
        """The values, another object after each change, and the state: all of `collect`."""
        return self._values, self._health.state

    def collect(self) -> Iterator[Family]:
        """Give every figure with the values it has, as Prometheus's client asks for them."""
        state = self._health.state
        values: Values = {
            **self._values,
            "query_state": {(name,): int(name == state) for name in STATES},
            "query_up": {(): int(state == "running")},
        }
        for figure in self._figures.values():
            yield _make_family(figure, self._query, values.get(figure.name, {}))

    def describe(self) -> Iterator[Family]:
        """Give every figure without values."""
        return (_make_family(figure, self._query, {}) for figure in self._figures.values())


def _update(figure: Figure, before: Mapping[Labels, Any], value: Any) -> Mapping[Labels, Any]:
    """A figure's values after one more batch: a gauge's are replaced, all others add up."""
    parts = split_by_labels(value)
    if figure.kind == "gauge":
        return parts
    after = dict(before)
    for labels, part in parts.items():
        if figure.kind == "counter":
            after[labels] = after.get(labels, 0) + part
        else:
            buckets = part if isinstance(part, Buckets) else Buckets.make(figure.bounds, part)
            after[labels] = after[labels].add(buckets) if labels in after else buckets
    return after


def _make_family(figure: Figure, query: str, values: Mapping[Labels, Any]) -> Family:
    name, labels = f"{PREFIX}{figure.name}", figure.all_labels
    if figure.kind == "histogram":
        histogram = HistogramMetricFamily(name, figure.help, labels=labels)
        for own, buckets in values.items():
            histogram.add_metric((query, *own), buckets.accumulate(figure.bounds), buckets.sum)
        return histogram
    make: Any = CounterMetricFamily if figure.kind == "counter" else GaugeMetricFamily
    family: Family = make(name, figure.help, labels=labels)
    for own, value in values.items():
        family.add_metric((query, *own), value)  # type: ignore[attr-defined]
    return family
