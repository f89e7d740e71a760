"""The writer of query results. One sink may use Spark's own writer; several share each batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from unskew.config.models.job import Job
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.spark_log import read_last_commit, read_newest_offset
from unskew.jobs.operators.base import KEY, WINDOW_BOUNDS
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.registry import make_sinks
from unskew.jobs.sinks.rejected_totals import RejectedTotals

_RANK = "rank_in_window"
_JAVA_ERROR = "py4j.protocol.Py4JJavaError"
_CAUSES_KEPT = 2
_LINE_KEPT = 300


def make_writer(results: DataFrame, job: Job, journal: Journal) -> DataStreamWriter:
    """The query's writer: everything but its trigger and start."""
    sinks = make_sinks(job)
    operator = make_operator(job.operator)
    top = operator.top
    alone = _has_one_writer(job)
    writer = sinks[0].stream(sinks[0].choose(results, job), job) if alone else None
    if writer is None:
        write_batch = _write_batch(job, top, results.sparkSession, journal)
        writer = results.writeStream.foreachBatch(write_batch)
    mode = job.merge.output if operator.merges else "append"
    writer = writer.queryName(job.name).outputMode(mode)
    return writer.option("checkpointLocation", job.checkpoint)


def read_last_written(job: Job) -> int:
    """The newest batch whose tasks do not run again; -1 before the first.

    It is the newest that the checkpoint committed; or the next, where a crash came between the
    commit of a sink that skips what it has and that of the checkpoint.
    """
    committed = read_last_commit(job)
    begun = committed + 1
    if read_newest_offset(job) < begun or not _has_one_writer(job):
        return committed
    return begun if make_sinks(job)[0].skips(begun, job) else committed


def _has_one_writer(job: Job) -> bool:
    """May the job's only sink use Spark's own writer?"""
    return len(job.sinks) == 1 and make_operator(job.operator).top is None


def keep_top_of_each_window(results: DataFrame, column: str, count: int) -> DataFrame:
    """Keep the `count` results of each window with the most of `column`; among equals, by key.

    Exact for one batch of a query in append mode: a window is emitted once, whole, in one batch.
    """
    order = (sf.col(column).desc(), sf.col(KEY))
    rank = sf.row_number().over(Window.partitionBy(*WINDOW_BOUNDS).orderBy(*order))
    return results.withColumn(_RANK, rank).where(sf.col(_RANK) <= count).drop(_RANK)


def _write_batch(
    job: Job, top: tuple[str, int] | None, session: SparkSession, journal: Journal
) -> Callable[[DataFrame, int], None]:
    sinks = make_sinks(job)
    compute = not all(sink.computes_every_row for sink in sinks)
    rejected = RejectedTotals(journal)

    @_short_java_errors()
    def write_batch(results: DataFrame, batch_id: int) -> None:
        written = results if top is None else keep_top_of_each_window(results, *top)
        cached = _forget_order(written).persist() if compute or len(sinks) > 1 else written
        try:
            if compute:
                # A look at a few rows computes no more partitions of the merge than have those; the
                # others would commit no state, and Spark fails a batch in which one does not.
                cached.count()
            batch = Batch(batch_id, job, session, check_owner=journal.check_owner)
            for sink in sinks:
                batch.check_owner()
                sink.write(sink.choose(cached, job), batch)
            rejected.keep(batch)
        finally:
            cached.unpersist()

    return write_batch


def _forget_order(results: DataFrame) -> DataFrame:
    """The same rows, without Spark's knowledge of their sort order.

    A merge that Spark sorts leaves results sorted by columns that they do not have any more, and
    `persist` fails on those.
    """
    return results.observe("results", sf.count(sf.lit(1)))


class BatchWriteError(Exception):
    """A batch's results could not be written."""


@contextmanager
def _short_java_errors() -> Iterator[None]:
    """Raise a Java exception without its trace.

    When a query is stopped Spark looks in the text of what was raised here for an interruption, by
    a pattern that needs several frames of the thread's stack a character.
    """
    try:
        yield
    except Py4JJavaError as error:
        raise BatchWriteError(shorten_java_error(str(error))) from None


def shorten_java_error(text: str) -> str:
    """The exception's own line and its last causes, of what py4j says of a Java exception."""
    call, *lines = text.splitlines()
    named = [line for line in lines if line.startswith((": ", "Caused by: "))]
    shown = [call, *named[:1], *named[1:][-_CAUSES_KEPT:]]
    return f"{_JAVA_ERROR}: " + "\n".join(line[:_LINE_KEPT] for line in shown)
