"""The routing UDF: how a DataFrame gets it, and what it does in a source's task."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from unskew.grouping.base import Chunk, Feedback, Grouping, Int32s, Int64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.parts.key_sizes import add_key_size
from unskew.grouping.registry import create
from unskew.grouping.spark.agreed_file import read_agreed_before
from unskew.grouping.spark.journal import KEPT_BATCHES, Journal
from unskew.grouping.spark.report import make_feedback
from unskew.grouping.spark.routing_file import Routes, RoutingStats
from unskew.grouping.spark.warm_up import start_workers, warm_up

PARTITION_KEY = "partition_key"
_BATCH_ID = "streaming.sql.batchId"
_Item = TypeVar("_Item")


@dataclass(frozen=True)
class Router:
    """The body of the routing UDF: one instance a query, one call a source task."""

    grouping: str
    partitions: int
    seed: int = 0
    sources: int = 1
    options: dict[str, Any] = field(default_factory=dict)
    journal: Journal | None = None
    clock: Callable[[], float] | None = None
    """A clock that measures the time of routing, for the journal; routes never depend on it."""
    purges: bool = False
    """Remove old batches from the journal, where there is no service that does."""
    others: bool = False
    """Other groupings may have routed batches before (`grouping: auto`)."""
    key_size: int = 0
    """Where sizes are balanced: what a key costs beside its records, shared by the sources."""

    # Spark reads the kind of a UDF from its annotations: hence one method a number of columns.
    def route_keys(self, chunks: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Route a task's rows by their hashes."""
        return self._route((_to_uint64s(hashes), None) for hashes in chunks)

    def route_with(self, chunks: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        """Route a task's rows by their hashes, and their times or sizes."""
        return self._route((_to_uint64s(hashes), _to_int64s(beside)) for hashes, beside in chunks)

    def _route(self, chunks: Iterable[Chunk]) -> Iterator[pa.Array]:
        batch, source = read_task_position()
        watch, done = _Stopwatch(self.clock), Routes()
        router = self.restore_grouping(batch, source)
        if self.key_size:
            chunks = add_key_size(chunks, self.key_size, router.setting.sources)
        for routes in watch.time_inside(router.route_chunks(watch.time_outside(chunks))):
            done = done.add(routes)
            yield pa.array(routes)
        if self.journal is not None:
            stats = None
            if self.clock is not None:
                stats = RoutingStats(watch.seconds, router.hot_keys(), router.signals())
            self.journal.write_routing(batch, source, stats, done)
            self.journal.write_state(batch, source, router.snapshot())
            if self.purges and source == 0:
                self.journal.purge(batch - KEPT_BATCHES)

    def load_kernels(self) -> None:
        """Load what a task needs, in the process of its worker."""
        warm_up(create(self.grouping, partitions=self.partitions, seed=self.seed, **self.options))

    def restore_grouping(self, batch: int, source: int) -> Grouping:
        """Restore the grouping of one source from what the batches before this one left."""
        sources = self.journal.count_newest_sources(batch) if self.journal else 0
        router = create(
            self.grouping,
            partitions=self.partitions,
            source=source,
            sources=max(sources or self.sources, source + 1),
            seed=self.seed,
            **self.options,
        )
        if self.journal is None:
            router.begin_batch()
            return router
        self.journal.restore_before(batch, source, router, others=self.others)
        agreed = read_agreed_before(self.journal, batch, router) if router.wants_agreement else None
        router.begin_batch(self._read_feedback(batch, router), agreed)
        return router

    def _read_feedback(self, batch: int, router: Grouping) -> Feedback | None:
        if self.journal is None or not router.wants_feedback:
            return None
        return make_feedback(self.journal.reports_before(batch), self.partitions)


def route_hashes(
    frame: DataFrame,
    hashes: Column,
    router: Router,
    timestamp: str | Column | None = None,
    size: str | Column | None = None,
) -> DataFrame:
    """Like `route`, for keys that are 64-bit hashes (BIGINT) already."""
    # Made once here so that a wrong option is an error now, not in a task.
    probe = create(
        router.grouping, partitions=router.partitions, seed=router.seed, **router.options
    )
    inputs = [hashes]
    body: Any = router.route_keys
    if probe.wants_timestamps:
        if timestamp is None:
            raise GroupingError(f"{router.grouping}: timestamp: missing, but needed by it")
        inputs.append(sf.unix_micros(make_column(timestamp)))
        body = router.route_with
    elif probe.wants_sizes:
        if size is None:
            raise GroupingError(f"{router.grouping}: size: missing, but needed by balance: bytes")
        inputs.append(sf.coalesce(make_column(size).cast("bigint"), sf.lit(0)))
        body = router.route_with
    warm_up(probe)
    if frame.isStreaming:
        start_workers(frame.sparkSession, router.load_kernels)
    # Routing is deterministic. Without the mark a filter on the result makes Spark evaluate it
    # twice.
    udf: Any = arrow_udf(body, returnType="int")  # type: ignore[call-overload]
    routed = frame.withColumn(PARTITION_KEY, udf.asNondeterministic()(*inputs))
    return routed.repartitionById(router.partitions, sf.col(PARTITION_KEY))


def make_column(given: str | Column) -> Column:
    """Make a column of one that may be given by its name."""
    return sf.col(given) if isinstance(given, str) else given


class _Stopwatch:
    """Time spent in making routes, without the time spent in waiting for rows."""

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock or (lambda: 0.0)  # without a clock no time is measured
        self.seconds = 0.0

    def time_inside(self, routes: Iterable[Int32s]) -> Iterator[Int32s]:
        """Pass routes on; the time to make each is added."""
        return self._pass_on(iter(routes), 1)

    def time_outside(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Pass chunks on; waiting for each, which happens while a route is made, is subtracted."""
        return self._pass_on(iter(chunks), -1)

    def _pass_on(self, items: Iterator[_Item], sign: int) -> Iterator[_Item]:
        while True:
            started = self._clock()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self.seconds += sign * (self._clock() - started)
            yield item


def read_task_position() -> tuple[int, int]:
    """Read the micro-batch and the partition of the running task; batch 0 outside a stream."""
    context = TaskContext.get()
    if context is None:
        return 0, 0
    return int(context.getLocalProperty(_BATCH_ID) or 0), context.partitionId()


def _to_uint64s(array: pa.Array) -> UInt64s:
    return _to_int64s(array).view(np.uint64)


def _to_int64s(array: pa.Array) -> Int64s:
    values: Int64s = array.to_numpy(zero_copy_only=False)
    return values
