"""The simulator: routes a trace with one grouping and measures balance, state and time.

Sources take the records round robin and route them; partitions work on them first in, first out.
Without micro-batches the trace is one batch, and a grouping that wants feedback gets the reports at
an interval of stream time when records arrive at a rate. (A grouping's `memory` is then `stream`
unless it was chosen, because partitions are not idle at those moments.) With micro-batches a batch
starts when its records are there and the one before has ended, as Spark's do, and reports are those
of the batch before.

Departures: a report tells of the records that were routed since the last one, also of those that
still wait in a queue; sources route in no time, their speed is measured apart with `clock`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from unskew.grouping.base import Feedback, Float64s, Grouping, Int32s, Int64s
from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.simulation.queueing import BINS, Queues, percentile
from unskew.grouping.simulation.reports import (
    Execution,
    OverTime,
    SimulationReport,
    head_of,
    imbalance,
    load_stddev,
    max_over_mean,
    summarise_batches,
)
from unskew.grouping.simulation.scenario import BATCHES_MAX, Scenario
from unskew.grouping.simulation.shares import Clock, Cursor, Piece, Segment, seconds_of
from unskew.grouping.simulation.specs import SpecError, check_name, check_options, parse_spec
from unskew.grouping.simulation.traces import Trace

Progress = Callable[[int, float], None]
"""Called with the records so far and their max over mean."""

_WARM_UP_KEYS = 1000
_FEEDBACK_SECONDS = 1.0
_UNIT_SECONDS = 1e-6
"""The cost of every record in reports where none was given."""


@dataclass(frozen=True)
class GroupingSpec:
    """A grouping with its options, not yet for any number of partitions."""

    name: str
    options: dict[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "GroupingSpec":
        """From `name` or `name:option=value,option=value`."""
        name = text.partition(":")[0].strip()
        check_name("grouping", name, GROUPINGS)
        spec = cls(*parse_spec("grouping", text))
        check_options(f"grouping {name}", GROUPINGS[name].Params, spec.options)
        return spec

    def create(self, scenario: Scenario, source: int) -> Grouping:
        """The router of one source."""
        options = self.options
        if not scenario.batched and "memory" in GROUPINGS[self.name].Params.model_fields:
            options = {"memory": "stream", **options}
        return create(
            self.name,
            partitions=scenario.partitions,
            source=source,
            sources=scenario.sources,
            seed=scenario.seed,
            **options,
        )


def simulate(
    trace: Trace,
    spec: GroupingSpec,
    scenario: Scenario,
    clock: Clock,
    progress: Progress | None = None,
) -> SimulationReport:
    """Route all of `trace` and report. `clock` gives seconds, for the routing rate only."""
    return _Simulation(trace, spec, scenario, clock).run(progress)


def _make_up_feedback(partitions: int) -> Feedback:
    """Reports in which each partition had one key."""
    ones, numbers = np.ones(partitions, np.int64), np.arange(partitions)
    return Feedback(
        ones,
        ones.astype(np.float64),
        numbers.astype(np.int32),
        numbers.astype(np.uint64),
        ones,
        ones.astype(np.float64),
    )


class _Simulation:
    def __init__(self, trace: Trace, spec: GroupingSpec, scenario: Scenario, clock: Clock) -> None:
        self._trace = trace
        self._spec = spec
        self._scenario = scenario
        self._clock = clock
        self._routers = [spec.create(scenario, source) for source in range(scenario.sources)]
        self._batch_records = batch_size(trace, scenario, self._routers[0].wants_feedback)
        unit_us = scenario.cost_us or trace.unit_cost_us
        self._unit_seconds = unit_us * 1e-6 if unit_us else _UNIT_SECONDS
        self._queues = Queues(scenario.partitions) if unit_us else None
        self._speeds = [np.resize(speeds, scenario.partitions) for speeds in scenario.speeds]
        self._counter = PairCounter(scenario.partitions)
        self._loads = np.zeros(scenario.partitions, np.int64)
        self._step = -(-trace.records // scenario.points)
        self._over_time = _OverTimeMeter(self._loads, self._counter, self._queues)
        self._routing_seconds = 0.0
        self._imbalances: list[float] = []
        self._ratios: list[float] = []
        self._makespans: list[float] = []

    def run(self, progress: Progress | None) -> SimulationReport:
        self._warm_up()
        cursor = Cursor(self._trace.chunks())
        feedback = None
        for start in range(0, self._trace.records, self._batch_records):
            stop = min(start + self._batch_records, self._trace.records)
            began = self._clock()
            begin_all(self._routers, feedback)
            self._routing_seconds += self._clock() - began
            feedback = self._run_batch(cursor, start, stop, progress)
        return self._report()

    def _warm_up(self) -> None:
        # Kernels are compiled or loaded on their first call, which is not the rate of routing.
        router = self._spec.create(self._scenario, 0)
        keys = next(self._trace.chunks()).keys[:_WARM_UP_KEYS]
        times = self._timestamps(0, keys.size) if router.wants_timestamps else None
        for feedback in (None, _make_up_feedback(self._scenario.partitions)):
            if feedback is None or router.wants_feedback:
                router.begin_batch(feedback)
                for _ in router.route_chunks([(keys, times)]):
                    pass

    def _run_batch(
        self, cursor: Cursor, start: int, stop: int, progress: Progress | None
    ) -> Feedback | None:
        before = self._loads.copy()
        started = self._begin_queues(stop)
        segment = Segment(cursor, stop, self._routers, self._timestamps, self._clock)
        wanted = self._routers[0].wants_feedback and stop < self._trace.records
        reports = _Reports(self._counter, self._scenario.partitions) if wanted else None
        routed_before = self._routing_seconds
        for piece, routes in segment.route():
            self._routing_seconds = routed_before + segment.routing_seconds
            for begin, end in self._slices(piece):
                self._measure(piece, routes, begin, end, started, reports)
            if progress is not None:
                progress(piece.stop, max_over_mean(self._loads))
        if self._scenario.batched or stop - start == self._trace.records:
            self._imbalances.append(imbalance(self._loads - before))
            self._ratios.append(max_over_mean(self._loads - before))
            if self._queues is not None:
                self._makespans.append(float(self._queues.free_at.max()) - started)
        return reports.feedback() if reports is not None else None

    def _begin_queues(self, stop: int) -> float:
        if self._queues is None or not self._scenario.batched:
            return 0.0
        rate = self._scenario.arrival_per_second
        return self._queues.begin_batch((stop - 1) / rate if rate else 0.0)

    def _slices(self, piece: Piece) -> Iterator[tuple[int, int]]:
        # Cut where a point over time is due, and where the partitions' speeds change.
        first = -(-(piece.start + 1) // self._step) * self._step
        cuts = {*range(first, piece.stop, self._step), piece.stop}
        cuts |= {at for at in self._scenario.speeds_from if piece.start < at < piece.stop}
        begin = piece.start
        for end in sorted(cuts):
            yield begin, end
            begin = end

    def _measure(
        self,
        piece: Piece,
        routes: Int32s,
        begin: int,
        end: int,
        started: float,
        reports: "_Reports | None",
    ) -> None:
        cut = slice(begin - piece.start, end - piece.start)
        routes = routes[cut]
        costs = piece.chunk.costs
        seconds = seconds_of(None if costs is None else costs[cut], self._unit_seconds)
        stage = int(np.searchsorted(self._scenario.speeds_from, begin, side="right")) - 1
        numbers = self._counter.count(piece.chunk.keys[cut], routes)
        self._loads += np.bincount(routes, minlength=self._loads.size)
        if self._queues is not None:
            self._queues.serve(
                routes, self._arrivals(begin, end, started), seconds, self._speeds[stage]
            )
            if self._scenario.batched:
                self._over_time.note_makespan(started)
        if reports is not None:
            reports.add(numbers, routes, seconds / self._speeds[stage][routes])
        if end % self._step == 0 or end == self._trace.records:
            rate = _per_second(piece.stop, self._routing_seconds)
            self._over_time.take(end, rate)

    def _arrivals(self, begin: int, end: int, started: float) -> Float64s:
        rate = self._scenario.arrival_per_second
        return np.arange(begin, end) / rate if rate else np.array([started])

    def _timestamps(self, start: int, stop: int) -> Int64s:
        rate = self._scenario.arrival_per_second or self._trace.records_per_second
        return (np.arange(start, stop) * (1e6 / rate)).astype(np.int64)

    def _report(self) -> SimulationReport:
        loads, counter, records = self._loads, self._counter, self._trace.records
        head = head_of(counter.counts, loads.size, records)
        return SimulationReport(
            grouping=self._spec.name,
            options=self._spec.options,
            partitions=self._scenario.partitions,
            sources=self._scenario.sources,
            records=records,
            distinct_keys=counter.keys,
            pairs=counter.pairs,
            replication=counter.pairs / counter.keys,
            imbalance=imbalance(loads),
            max_over_mean=max_over_mean(loads),
            stddev=load_stddev(loads),
            head_keys=int(head.size),
            head_share=float(head.sum() / records),
            hot_keys=int(self._routers[0].hot_keys().size),
            loads=[int(load) for load in loads],
            routing_seconds=self._routing_seconds,
            routing_records_per_second=_per_second(records, self._routing_seconds),
            batches=summarise_batches(
                self._batch_records if self._scenario.batched else records,
                self._imbalances or [imbalance(loads)],
                self._ratios or [max_over_mean(loads)],
                self._makespans or self._whole_makespan(),
            ),
            over_time=self._over_time.series,
            signals=self._routers[0].signals(),
            execution=self._execution(),
        )

    def _whole_makespan(self) -> list[float]:
        return [] if self._queues is None else [float(self._queues.free_at.max())]

    def _execution(self) -> Execution | None:
        queues = self._queues
        if queues is None:
            return None
        records = self._trace.records
        seconds = float(queues.free_at.max())
        return Execution(
            execution_seconds=seconds,
            throughput_per_second=records / seconds,
            latency_mean_ms=float(queues.totals[0]) / records * 1e3,
            latency_p50_ms=percentile(queues.histogram, 0.5) * 1e3,
            latency_p99_ms=percentile(queues.histogram, 0.99) * 1e3,
            latency_max_ms=float(queues.totals[1]) * 1e3,
            cost_mean_us=float(queues.busy.sum()) / records * 1e6,
            busy_max_over_mean=max_over_mean(queues.busy),
            utilisation=float(queues.busy.mean()) / seconds,
        )


def begin_all(routers: Sequence[Grouping], feedback: Feedback | None) -> None:
    """Let a batch begin for all sources, with what they agree on by the one before."""
    agreed = None
    if routers[0].wants_agreement:
        agreed = routers[0].agree([router.state for router in routers])
    for router in routers:
        router.begin_batch(feedback, agreed)


def batch_size(trace: Trace, scenario: Scenario, wants_feedback: bool) -> int:
    """How many records are routed between two calls of `begin_batch`."""
    rate = scenario.arrival_per_second or trace.records_per_second
    what = "batch_records"
    size = scenario.batch_records or trace.records
    if scenario.batch_seconds is not None:
        what = "batch_seconds"
        size = int(scenario.batch_seconds * rate)
    elif not scenario.batched and wants_feedback and scenario.arrival_per_second is not None:
        what = "feedback_seconds"
        size = int((scenario.feedback_seconds or _FEEDBACK_SECONDS) * rate)
        if scenario.feedback_seconds is None:
            size = max(size, 1, -(-trace.records // BATCHES_MAX))
    if size < 1:
        raise SpecError(f"{what}: less than one record at {rate:g} records a second")
    if -(-trace.records // size) > BATCHES_MAX:
        raise SpecError(
            f"{what}: at most {BATCHES_MAX} parts (got {-(-trace.records // size)}"
            f" of {size} records)"
        )
    return min(size, trace.records)


def _per_second(records: int, seconds: float) -> float:
    return records / seconds if seconds > 0 else 0.0


class _Reports:
    """The partitions' reports of the records of a batch."""

    def __init__(self, counter: PairCounter, partitions: int) -> None:
        self._counter = counter
        self._partitions = partitions
        self._pairs: list[Int64s] = []
        self._seconds: list[Float64s] = []

    def add(self, numbers: Int32s, routes: Int32s, seconds: Float64s) -> None:
        self._pairs.append(numbers.astype(np.int64) * self._partitions + routes)
        self._seconds.append(seconds)

    def feedback(self) -> Feedback:
        pairs, rows, records = np.unique(
            np.concatenate(self._pairs), return_inverse=True, return_counts=True
        )
        seconds = np.bincount(rows, np.concatenate(self._seconds)).astype(np.float64)
        numbers, partitions = np.divmod(pairs, self._partitions)
        size = self._partitions
        return Feedback(
            records=np.bincount(partitions, records, minlength=size).astype(np.int64),
            busy_seconds=np.bincount(partitions, seconds, minlength=size).astype(np.float64),
            key_partitions=partitions.astype(np.int32),
            key_hashes=self._counter.hashes(numbers),
            key_records=records.astype(np.int64),
            key_seconds=seconds,
        )


class _OverTimeMeter:
    """Takes the points of the figures over time."""

    def __init__(self, loads: Int64s, counter: PairCounter, queues: Queues | None) -> None:
        self.series = OverTime()
        self._loads = loads
        self._counter = counter
        self._queues = queues
        self._last_loads = loads.copy()
        self._last_latencies = 0.0
        self._last_histogram = np.zeros(BINS, np.int64)
        self._makespan = 0.0

    def note_makespan(self, started: float) -> None:
        """Note how far a batch that began at `started` has come."""
        assert self._queues is not None
        self._makespan = max(self._makespan, float(self._queues.free_at.max()) - started)

    def take(self, records: int, routing_rate: float) -> None:
        series, counter = self.series, self._counter
        new = records - (series.records[-1] if series.records else 0)
        series.records.append(records)
        series.imbalance.append(imbalance(self._loads))
        series.max_over_mean.append(max_over_mean(self._loads))
        series.window_max_over_mean.append(max_over_mean(self._loads - self._last_loads))
        series.stddev.append(load_stddev(self._loads))
        series.distinct_keys.append(counter.keys)
        head = head_of(counter.counts, self._loads.size, records)
        series.head_share.append(float(head.sum() / records))
        series.pairs.append(counter.pairs)
        series.replication.append(counter.pairs / counter.keys)
        series.routing_records_per_second.append(routing_rate)
        self._last_loads = self._loads.copy()
        if self._queues is not None:
            self._take_times(self._queues, records, new)

    def _take_times(self, queues: Queues, records: int, new: int) -> None:
        series, seconds = self.series, float(queues.free_at.max())
        series.execution_seconds.append(seconds)
        series.throughput_per_second.append(_per_second(records, seconds))
        sum_now = float(queues.totals[0])
        series.window_latency_mean_ms.append((sum_now - self._last_latencies) / new * 1e3)
        window = queues.histogram - self._last_histogram
        series.window_latency_p50_ms.append(percentile(window, 0.5) * 1e3)
        series.window_latency_p99_ms.append(percentile(window, 0.99) * 1e3)
        self._last_latencies, self._last_histogram = sum_now, queues.histogram.copy()
        if self._makespan:
            series.window_makespan_seconds_max.append(self._makespan)
            self._makespan = 0.0
