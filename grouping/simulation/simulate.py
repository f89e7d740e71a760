"""The simulator: routes a trace with one grouping and measures balance, state and time.

Sources take the records round robin and route them; partitions work on them first in, first out.
Without micro-batches the trace is one batch, and a grouping that wants feedback gets the reports at
an interval of stream time when records arrive at a rate. (A grouping's `memory` is then `stream`
unless it was chosen, because partitions are not idle at those moments.) With micro-batches a batch
starts when its records are there and the one before has ended, as Spark's do, and reports are those
of the batch before.

Records are routed in pieces that end at the points of the figures over time, so that what a
grouping tells of itself there is of the records so far.

Departures: a report tells of the records that were routed since the last one, also of those that
still wait in a queue, unless the scenario asks for reports of completed records; sources route in
no time, their speed is measured apart with `clock`.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from unskew.grouping.base import Feedback, Float64s, Grouping, Int32s, Int64s
from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.simulation.meters.execution import FullKnowledge, summarise_times
from unskew.grouping.simulation.meters.hot_keys import HotKeyMeter
from unskew.grouping.simulation.meters.over_time import OverTimeMeter
from unskew.grouping.simulation.meters.pair_loads import PairLoads
from unskew.grouping.simulation.meters.partition_reports import (
    CompletedReports,
    PartitionReports,
    RoutedReports,
)
from unskew.grouping.simulation.meters.predictors import make_predictor
from unskew.grouping.simulation.pace import batch_size, check_costs, point_size, resolve_arrivals
from unskew.grouping.simulation.queueing import ClosedLoop, Queues
from unskew.grouping.simulation.reports import (
    SimulationReport,
    head_of,
    imbalance,
    load_stddev,
    max_over_mean,
    summarise_batches,
)
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.shares import Clock, Cursor, Piece, Segment, seconds_of
from unskew.grouping.simulation.specs import check_name, check_options, parse_spec
from unskew.grouping.simulation.streams.traces import Trace

Progress = Callable[[int, float], None]
"""Called with the records so far and their max over mean."""

_WARM_UP_KEYS = 1000
_UNIT_SECONDS = 1e-6
"""The cost of every record in reports where none was given."""


@dataclass(frozen=True)
class GroupingSpec:
    """A grouping with its options, not yet for any number of partitions."""

    name: str
    options: dict[str, object] = field(default_factory=dict)

    @classmethod
    def parse(cls, text: str) -> "GroupingSpec":
        """Parse `name` or `name:option=value,option=value`."""
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


def make_up_feedback(partitions: int) -> Feedback:
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
        check_costs(trace, scenario)
        scenario = resolve_arrivals(trace, scenario)
        self._trace = trace
        self._spec = spec
        self._scenario = scenario
        self._clock = clock
        self._routers = [spec.create(scenario, source) for source in range(scenario.sources)]
        self._batch_records = batch_size(trace, scenario, self._routers[0].wants_feedback)
        unit_us = scenario.cost_us or trace.unit_cost_us
        self._unit_seconds = unit_us * 1e-6 if unit_us else _UNIT_SECONDS
        self._queues = Queues(scenario.partitions) if unit_us else None
        self._closed: list[tuple[Int32s, Float64s]] = []
        self._speeds = [np.resize(speeds, scenario.partitions) for speeds in scenario.speeds]
        self._counter = PairCounter(scenario.partitions)
        self._loads = np.zeros(scenario.partitions, np.int64)
        self._step = point_size(trace, scenario)
        self._hot_keys = self._judge_hot_keys()
        opened = self._queues if scenario.pending is None else None
        self._over_time = OverTimeMeter(self._loads, self._counter, opened, self._hot_keys)
        by_pair = scenario.head_theta is not None or scenario.keys_moved
        self._pair_loads = PairLoads(scenario.partitions) if by_pair else None
        self._ideal = FullKnowledge(scenario.partitions) if scenario.full_knowledge else None
        completed = scenario.reports == "completed"
        make_reports = CompletedReports if completed else RoutedReports
        self._reports: PartitionReports = make_reports(self._counter, scenario.partitions)
        self._routing_seconds = 0.0
        self._imbalances: list[float] = []
        self._ratios: list[float] = []
        self._makespans: list[float] = []

    def _judge_hot_keys(self) -> HotKeyMeter | None:
        scenario, predictor = self._scenario, None
        if scenario.hot_share is None:
            return None
        if scenario.predictor is not None:
            predictor = make_predictor(scenario.predictor, scenario.seed)
        return HotKeyMeter(self._counter, scenario.hot_share, predictor)

    def run(self, progress: Progress | None) -> SimulationReport:
        self._warm_up()
        cursor = Cursor(self._trace.chunks(), self._step)
        feedback = None
        for start, stop in pairwise(self._bounds()):
            self._activate(start)
            began = self._clock()
            begin_all(self._routers, feedback)
            self._routing_seconds += self._clock() - began
            feedback = self._run_batch(cursor, start, stop, progress)
        self._close_loop()
        return self._report()

    def _close_loop(self) -> None:
        if self._queues is None or self._scenario.pending is None:
            return
        rate = self._scenario.source_per_second
        routes, costs = (np.concatenate(parts) for parts in zip(*self._closed, strict=True))
        loop = ClosedLoop(self._scenario.sources, self._scenario.pending, 1 / rate if rate else 0.0)
        self._over_time.add_closed(*self._queues.serve_closed(routes, costs, self._speeds[0], loop))

    def _bounds(self) -> list[int]:
        # A batch ends early where partitions come or go.
        records = self._trace.records
        changes = (at for at in self._scenario.active_from if at < records)
        return sorted({*range(0, records, self._batch_records), *changes, records})

    def _activate(self, start: int) -> None:
        for at, number in zip(self._scenario.active_from, self._scenario.active, strict=True):
            if at == start:
                for router in self._routers:
                    router.set_active(range(number))
                if self._pair_loads is not None:
                    self._pair_loads.mark(self._counter.keys)

    def _warm_up(self) -> None:
        # Kernels are compiled or loaded on their first call, which is not the rate of routing.
        router = self._spec.create(self._scenario, 0)
        keys = next(self._trace.chunks()).keys[:_WARM_UP_KEYS]
        times = self._timestamps(0, keys.size) if router.wants_timestamps else None
        for feedback in (None, make_up_feedback(self._scenario.partitions)):
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
        reports = self._reports if wanted else None
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
        return reports.take(self._arrives_at(stop)) if reports is not None else None

    def _begin_queues(self, stop: int) -> float:
        if self._queues is None or not self._scenario.batched:
            return 0.0
        return self._queues.begin_batch(self._arrives_at(stop - 1))

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
        reports: PartitionReports | None,
    ) -> None:
        cut = slice(begin - piece.start, end - piece.start)
        routes = routes[cut]
        costs = piece.chunk.costs
        numbers = self._counter.count(piece.chunk.keys[cut], routes)
        seconds = seconds_of(None if costs is None else costs[cut], self._unit_seconds)
        seconds = seconds + self._miss_seconds()
        stage = int(np.searchsorted(self._scenario.speeds_from, begin, side="right")) - 1
        self._loads += np.bincount(routes, minlength=self._loads.size)
        if self._pair_loads is not None:
            self._pair_loads.add(numbers, routes)
        if self._hot_keys is not None:
            self._hot_keys.add(piece.chunk.keys[cut])
        done = np.empty(0)
        if self._scenario.pending is not None:
            self._closed.append((routes, np.broadcast_to(seconds, routes.shape)))
        elif self._queues is not None:
            arrivals = self._arrivals(begin, end, started)
            speeds = self._speeds[stage]
            done = arrivals + self._queues.serve(routes, arrivals, seconds, speeds)
            if self._ideal is not None:
                self._ideal.serve(routes.size, arrivals, seconds, speeds)
            if self._scenario.batched:
                self._over_time.note_makespan(started)
        if reports is not None:
            reports.add(numbers, routes, seconds / self._speeds[stage][routes], done)
        if end % self._step == 0 or end == self._trace.records:
            rate = _per_second(piece.stop, self._routing_seconds)
            self._over_time.take(end, rate, self._routers[0])

    def _miss_seconds(self) -> float:
        held, cost_us = self._scenario.memory_pairs, self._scenario.miss_us
        if held is None or cost_us is None:
            return 0.0
        return max(0.0, 1 - held / self._counter.pairs) * cost_us * 1e-6

    def _arrives_at(self, record: int) -> float:
        rate = self._scenario.arrival_per_second
        return record / rate if rate else 0.0

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
            pairs_of_two=int(np.minimum(counter.counts, 2).sum()),
            pairs_of_all=int(np.minimum(counter.counts, loads.size).sum()),
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
            execution=summarise_times(self._queues, loads, self._ideal) if self._queues else None,
            **self._asked(),
        )

    def _asked(self) -> dict[str, Any]:
        """The figures that only a scenario's own option gives."""
        figures: dict[str, Any] = {}
        if self._hot_keys is not None:
            figures["hot_delay_records"] = self._hot_keys.delay_records
            figures["hot_decline_records"] = self._hot_keys.decline_records
        pairs, theta = self._pair_loads, self._scenario.head_theta
        if pairs is not None and theta is not None:
            head = pairs.count_head_records(self._counter.counts, theta * self._trace.records)
            figures["head_loads"] = head.tolist()
            figures["keys_max_over_mean"] = pairs.keys_max_over_mean()
        if pairs is not None and self._scenario.keys_moved:
            figures["keys_moved"] = pairs.moved()
        return figures

    def _whole_makespan(self) -> list[float]:
        return [] if self._queues is None else [float(self._queues.free_at.max())]


def begin_all(routers: Sequence[Grouping], feedback: Feedback | None) -> None:
    """Let a batch begin for all sources, with what they agree on by the one before."""
    agreed = None
    if routers[0].wants_agreement:
        agreed = routers[0].agree([router.state for router in routers])
    for router in routers:
        router.begin_batch(feedback, agreed)


def _per_second(records: int, seconds: float) -> float:
    return records / seconds if seconds > 0 else 0.0
