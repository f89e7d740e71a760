"""Where totals go. One sink uses Spark's own writer; several share each batch's result."""

from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter

from unskew.config.models.job import Job
from unskew.config.models.sink import ConsoleSink, FilesSink, KafkaSink, MemorySink, PostgresSink
from unskew.config.models.source import KafkaSource
from unskew.jobs.kafka.options import connection_options
from unskew.jobs.operators.base import KEY, RESULT_KEY
from unskew.jobs.operators.registry import operator_for
from unskew.jobs.sinks.postgres import upsert

_PLACE = "place_in_window"
# Bounds of windows are part of a Kafka key: it must be the same in a session of another zone.
_IN_UTC = {"timeZone": "UTC"}


def write(results: DataFrame, job: Job) -> DataStreamWriter:
    """The query's writer: everything but its start."""
    sinks = job.sinks
    top = operator_for(job.operator).top
    writer = results.writeStream.queryName(job.name).outputMode(job.merge.output)
    writer = writer.option("checkpointLocation", job.checkpoint)
    if len(sinks) == 1 and isinstance(sinks[0], KafkaSink) and top is None:
        keyed = kafka_rows(results).writeStream.queryName(job.name).outputMode(job.merge.output)
        keyed = keyed.option("checkpointLocation", job.checkpoint)
        return keyed.format("kafka").options(**kafka_sink_options(sinks[0], job))
    return writer.foreachBatch(_to_all(job, top, results.sparkSession))


def kafka_rows(results: DataFrame) -> DataFrame:
    """Results as Kafka records, keyed by window and key: a compacted topic keeps the last total."""
    place = [name for name in RESULT_KEY if name in results.columns]
    return results.select(
        sf.to_json(sf.struct(*place), _IN_UTC).alias("key"),
        sf.to_json(sf.struct("*"), _IN_UTC).alias("value"),
    )


def kafka_sink_options(sink: Any, job: Job) -> dict[str, str]:
    """The connector's options for a sink or for dead letters in Kafka."""
    servers, options = sink.bootstrap_servers, sink.options
    if isinstance(job.source, KafkaSource):
        shared = servers in (None, job.source.bootstrap_servers)
        options = options or (job.source.options if shared else {})
        servers = servers or job.source.bootstrap_servers
    return {"topic": sink.topic, **connection_options(servers, options)}


def top_of_each_window(results: DataFrame, column: str, count: int) -> DataFrame:
    """The `count` results of each window with the most of `column`; of equals the first by key.

    Exact for one batch of a query in append mode: a window is emitted once, whole, in one batch.
    """
    order = (sf.col(column).desc(), sf.col(KEY))
    place = sf.row_number().over(Window.partitionBy(*RESULT_KEY[:-1]).orderBy(*order))
    return results.withColumn(_PLACE, place).where(sf.col(_PLACE) <= count).drop(_PLACE)


def _to_all(
    job: Job, top: tuple[str, int] | None, home: SparkSession
) -> Callable[[DataFrame, int], None]:
    shown = any(isinstance(sink, ConsoleSink) for sink in job.sinks)

    def write_batch(results: DataFrame, batch: int) -> None:
        written = results if top is None else top_of_each_window(results, *top)
        kept = written.persist() if shown or len(job.sinks) > 1 else written
        try:
            if shown:
                # A look at a few rows computes no more partitions of the merge than have those; the
                # others would commit no state, and Spark fails a batch in which one does not.
                kept.count()
            for sink in job.sinks:
                if isinstance(sink, MemorySink):
                    _to_memory(kept, batch, sink, home)
                else:
                    write_one(kept, batch, sink, job)
        finally:
            kept.unpersist()

    return write_batch


def write_one(results: DataFrame, batch: int, sink: Any, job: Job) -> None:
    """Write one batch's results to one sink; a replay of the batch changes nothing."""
    if isinstance(sink, KafkaSink):
        kafka_rows(results).write.format("kafka").options(**kafka_sink_options(sink, job)).save()
    elif isinstance(sink, FilesSink):
        # A folder a batch: written again by a replay, it is replaced and not doubled.
        folder = f"{sink.path.rstrip('/')}/batch_id={batch}"
        results.write.mode("overwrite").format(sink.format).save(folder)
    elif isinstance(sink, PostgresSink):
        upsert(results, sink)
    else:
        assert isinstance(sink, ConsoleSink)
        print(f"batch {batch}")
        results.show(sink.rows, truncate=False)


def _to_memory(results: DataFrame, batch: int, sink: MemorySink, home: SparkSession) -> None:
    rows = results.withColumn("batch_id", sf.lit(batch)).toArrow()
    if batch and home.catalog.tableExists(sink.table):
        # As rows: a view of the view before would be planned through all batches, ever longer.
        before = home.table(sink.table).where(sf.col("batch_id") != batch).toArrow()
        rows = pa.concat_tables([before, rows], promote_options="default")
    # A batch's own session is a copy that ends with the query: the table belongs into the first.
    home.createDataFrame(rows).createOrReplaceTempView(sink.table)
