"""The writer of query results. One sink may use Spark's own writer; several share each batch."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from unskew.config.models.job import Job
from unskew.jobs.operators.base import KEY, RESULT_KEY
from unskew.jobs.operators.registry import operator_for
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.registry import sinks_of
from unskew.jobs.sinks.untaken import UntakenTotals

_RANK = "rank_in_window"


def make_writer(results: DataFrame, job: Job) -> DataStreamWriter:
    """The query's writer: everything but its trigger and start."""
    sinks = sinks_of(job)
    operator = operator_for(job.operator)
    top = operator.top
    writer = sinks[0].stream(results, job) if len(sinks) == 1 and top is None else None
    if writer is None:
        writer = results.writeStream.foreachBatch(_write_batch(job, top, results.sparkSession))
    mode = job.merge.output if operator.merges else "append"
    writer = writer.queryName(job.name).outputMode(mode)
    return writer.option("checkpointLocation", job.checkpoint)


def top_of_each_window(results: DataFrame, column: str, count: int) -> DataFrame:
    """The `count` results of each window with the most of `column`; of equals the first by key.

    Exact for one batch of a query in append mode: a window is emitted once, whole, in one batch.
    """
    order = (sf.col(column).desc(), sf.col(KEY))
    rank = sf.row_number().over(Window.partitionBy(*RESULT_KEY[:-1]).orderBy(*order))
    return results.withColumn(_RANK, rank).where(sf.col(_RANK) <= count).drop(_RANK)


def _write_batch(
    job: Job, top: tuple[str, int] | None, session: SparkSession
) -> Callable[[DataFrame, int], None]:
    sinks = sinks_of(job)
    compute = not all(sink.computes_every_row for sink in sinks)
    untaken = UntakenTotals(job)

    def write_batch(results: DataFrame, batch_id: int) -> None:
        written = results if top is None else top_of_each_window(results, *top)
        kept = written.persist() if compute or len(sinks) > 1 else written
        try:
            if compute:
                # A look at a few rows computes no more partitions of the merge than have those; the
                # others would commit no state, and Spark fails a batch in which one does not.
                kept.count()
            batch = Batch(batch_id, job, session)
            for sink in sinks:
                sink.write(kept, batch)
            untaken.keep(batch)
        finally:
            kept.unpersist()

    return write_batch
