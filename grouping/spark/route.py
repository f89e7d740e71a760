"""Groupings in Spark: `route` gives a DataFrame its `partition_key` and repartitions it by that.

    from unskew import route

    routed = route(events, key="user_id", grouping="level", partitions=16, journal=path)
    routed.mapInArrow(my_operator, schema)

Only the key's 64-bit hash crosses into Python (and the time, where a grouping asks for it). In a
stream, a task starts from the state that its source left in the journal, and leaves the next; so a
retried or speculated task routes as the first attempt did. Without a journal every batch begins
anew: right for `key`, `shuffle` and `level`, a loss for groupings that learn over batches.

The records of one key in the same batch may meet in several partitions (that is the point), so what
comes after must be mergeable: partial results here, exact totals in a `groupBy(key)` behind it.
`docs/examples/route_before_your_own_operator.py` shows both, in a batch and in a stream.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from unskew.grouping.base import Chunk, Feedback, Grouping, Int32s, Int64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.registry import create
from unskew.grouping.spark.journal import KEPT_BATCHES, Journal, Routes, RoutingFigures
from unskew.grouping.spark.report import feedback_from_reports
from unskew.grouping.spark.warm_up import warm_up
from unskew.grouping.spark.workers_python import choose_workers_python

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
    """Measures what routing takes, for the journal; routes never depend on it."""
    purges: bool = False
    """Remove old batches from the journal, where there is no service that does."""

    # Spark reads the kind of a UDF from its annotations: hence one method a number of columns.
    def route_keys(self, chunks: Iterator[pa.Array]) -> Iterator[pa.Array]:
        """Route a task's rows by their hashes."""
        return self._route((_uint64s(hashes), None) for hashes in chunks)

    def route_timed(self, chunks: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        """Route a task's rows by their hashes and times."""
        return self._route((_uint64s(hashes), _int64s(times)) for hashes, times in chunks)

    def _route(self, chunks: Iterable[Chunk]) -> Iterator[pa.Array]:
        batch, source = task_position()
        watch, done = _Stopwatch(self.clock), Routes()
        router = self.grouping_for(batch, source)
        for routes in watch.inside(router.route_chunks(watch.outside(chunks))):
            done = done.plus(routes)
            yield pa.array(routes)
        if self.journal is not None:
            figures = None
            if self.clock is not None:
                figures = RoutingFigures(watch.seconds, router.hot_keys(), router.signals())
            self.journal.write_routing(batch, source, figures, done)
            self.journal.write_state(batch, source, router.snapshot())
            if self.purges and source == 0:
                self.journal.purge(batch - KEPT_BATCHES)

    def grouping_for(self, batch: int, source: int) -> Grouping:
        """The grouping of one source as the batches before this one left it."""
        sources = self.journal.newest_sources(batch) if self.journal else 0
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
        state = self.journal.state_before(batch, source)
        if state is not None and state.partitions == self.partitions:
            router.restore(state)
        router.begin_batch(self._feedback(batch, router))
        return router

    def _feedback(self, batch: int, router: Grouping) -> Feedback | None:
        if self.journal is None or not router.wants_feedback:
            return None
        return feedback_from_reports(self.journal.reports_before(batch), self.partitions)


class _Stopwatch:
    """Time spent in making routes, without the time spent in waiting for rows."""

    def __init__(self, clock: Callable[[], float] | None) -> None:
        self._clock = clock or float  # which is always 0.0
        self.seconds = 0.0

    def inside(self, routes: Iterable[Int32s]) -> Iterator[Int32s]:
        """Pass routes on; the time to make each is added."""
        return self._passed(iter(routes), 1)

    def outside(self, chunks: Iterable[Chunk]) -> Iterator[Chunk]:
        """Pass chunks on; waiting for each, which happens while a route is made, is subtracted."""
        return self._passed(iter(chunks), -1)

    def _passed(self, items: Iterator[_Item], sign: int) -> Iterator[_Item]:
        while True:
            started = self._clock()
            try:
                item = next(items)
            except StopIteration:
                return
            finally:
                self.seconds += sign * (self._clock() - started)
            yield item


def route(
    frame: DataFrame,
    *,
    key: str | Column,
    grouping: str = "level",
    partitions: int = 16,
    journal: str | Path | Journal | None = None,
    timestamp: str | Column | None = None,
    seed: int = 0,
    options: dict[str, Any] | None = None,
) -> DataFrame:
    """`frame` with the column `partition_key`, and each row in the partition of that number.

    `frame` may be a stream or not. Every row is routed once, moves once, and keeps its columns.

    key: the column, or its name, whose values are to be spread; of any type but a map.
    grouping: a name of `grouping.registry.GROUPINGS`, with its own `options`; a wrong one is a
        `GroupingError` at once.
    partitions: how many; at least as many as there are cores.
    journal: for a stream, a folder of its own (a path or a URI that all executors see), best beside
        the checkpoint: there each source's state goes on from batch to batch. The newest 20 batches
        are kept. To go on with another grouping, seed or options, name another folder.
        A query that is no stream needs none.
    timestamp: the records' time, where a grouping asks for it.
    seed: the same seed routes the same way.

    Groupings that learn from what partitions report (`posg`, `fish`) get no reports here, since
    those are written by a job's own partial stage; they route by what they see of the keys.
    """
    choose_workers_python(frame.sparkSession)
    opened = journal if isinstance(journal, Journal) or journal is None else Journal(str(journal))
    parallel = max(1, frame.sparkSession.sparkContext.defaultParallelism)
    settings = dict(options or {})
    router = Router(grouping, partitions, seed, parallel, settings, opened, purges=True)
    return route_hashes(frame, sf.xxhash64(_column(key)), router, timestamp)


def route_hashes(
    frame: DataFrame, hashes: Column, router: Router, timestamp: str | Column | None = None
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
        inputs.append(sf.unix_micros(_column(timestamp)))
        body = router.route_timed
    warm_up(probe)
    # Routing is deterministic. Without the mark a filter on the result makes Spark evaluate it
    # twice.
    udf: Any = arrow_udf(body, returnType="int")  # type: ignore[call-overload]
    routed = frame.withColumn(PARTITION_KEY, udf.asNondeterministic()(*inputs))
    return routed.repartitionById(router.partitions, sf.col(PARTITION_KEY))


def _column(column: str | Column) -> Column:
    return sf.col(column) if isinstance(column, str) else column


def task_position() -> tuple[int, int]:
    """The micro-batch and the partition of the running task; batch 0 outside a stream."""
    context = TaskContext.get()
    if context is None:
        return 0, 0
    return int(context.getLocalProperty(_BATCH_ID) or 0), context.partitionId()


def _uint64s(array: pa.Array) -> UInt64s:
    return _int64s(array).view(np.uint64)


def _int64s(array: pa.Array) -> Int64s:
    values: Int64s = array.to_numpy(zero_copy_only=False)
    return values
