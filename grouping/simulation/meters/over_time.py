"""Takes the points of the figures over time."""

import numpy as np

from unskew.grouping.base import Float64s, Grouping, Int64s
from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.simulation.meters.hot_keys import HotKeyMeter
from unskew.grouping.simulation.queueing import BINS, Queues, make_histogram, percentile
from unskew.grouping.simulation.reports import (
    OverTime,
    head_of,
    imbalance,
    load_stddev,
    max_over_mean,
)


class OverTimeMeter:
    """What has happened up to each point, and since the point before."""

    def __init__(
        self,
        loads: Int64s,
        counter: PairCounter,
        queues: Queues | None,
        hot_keys: HotKeyMeter | None = None,
    ) -> None:
        self.series = OverTime()
        self._loads = loads
        self._counter = counter
        self._queues = queues
        self._hot_keys = hot_keys
        self._last_loads = loads.copy()
        self._last_latencies = 0.0
        self._last_histogram = np.zeros(BINS, np.int64)
        self._makespan = 0.0

    def note_makespan(self, started: float) -> None:
        """Note how far a batch that began at `started` has come."""
        assert self._queues is not None
        self._makespan = max(self._makespan, float(self._queues.free_at.max()) - started)

    def take(self, records: int, routing_rate: float, router: Grouping) -> None:
        """Add a point; `router` is the first source's."""
        series, counter = self.series, self._counter
        new = records - (series.records[-1] if series.records else 0)
        window = self._loads - self._last_loads
        series.records.append(records)
        series.imbalance.append(imbalance(self._loads))
        series.max_over_mean.append(max_over_mean(self._loads))
        series.window_max_over_mean.append(max_over_mean(window))
        series.window_imbalance.append(imbalance(window))
        series.stddev.append(load_stddev(self._loads))
        series.window_stddev.append(load_stddev(window))
        series.distinct_keys.append(counter.keys)
        head = head_of(counter.counts, self._loads.size, records)
        series.head_share.append(float(head.sum() / records))
        series.pairs.append(counter.pairs)
        series.replication.append(counter.pairs / counter.keys)
        series.routing_records_per_second.append(routing_rate)
        self._last_loads = self._loads.copy()
        for name, value in router.signals().items():
            series.signals.setdefault(name, []).append(value)
        if self._hot_keys is not None:
            precision, recall = self._hot_keys.take(records, new, router.hot_keys())
            series.window_hot_precision.append(precision)
            series.window_hot_recall.append(recall)
        if self._queues is not None:
            self._take_times(self._queues, records, new)

    def add_closed(self, latencies: Float64s, done_at: Float64s) -> None:
        """Add the times of all points, once a closed loop has served the records to the end."""
        begin, seconds = 0, 0.0
        for end in self.series.records:
            window = latencies[begin:end]
            seconds = max(seconds, float(done_at[begin:end].max()))
            self._add_times(end, seconds, float(window.mean()), make_histogram(window))
            begin = end

    def _take_times(self, queues: Queues, records: int, new: int) -> None:
        sum_now = float(queues.totals[0])
        mean = (sum_now - self._last_latencies) / new
        window = queues.histogram - self._last_histogram
        self._add_times(records, float(queues.free_at.max()), mean, window)
        self._last_latencies, self._last_histogram = sum_now, queues.histogram.copy()
        if self._makespan:
            self.series.window_makespan_seconds_max.append(self._makespan)
            self._makespan = 0.0

    def _add_times(self, records: int, seconds: float, mean: float, window: Int64s) -> None:
        series = self.series
        series.execution_seconds.append(seconds)
        series.throughput_per_second.append(records / seconds if seconds > 0 else 0.0)
        series.window_latency_mean_ms.append(mean * 1e3)
        series.window_latency_least_ms.append(percentile(window, 0.0) * 1e3)
        series.window_latency_p50_ms.append(percentile(window, 0.5) * 1e3)
        series.window_latency_p99_ms.append(percentile(window, 0.99) * 1e3)
        series.window_latency_most_ms.append(percentile(window, 1.0) * 1e3)
