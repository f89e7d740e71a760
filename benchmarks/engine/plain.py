"""What there is without a grouping: the same job with a plain hash column, and hand-written Spark.

The hand-written queries are what the documentation of Spark leads to: no dead letters, no reports.
"""

import time
from collections.abc import Iterator, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

from unskew.config.models.job import Job
from unskew.config.models.source import KafkaSource
from unskew.grouping.spark.router import PARTITION_KEY
from unskew.jobs.engine.service import Service
from unskew.jobs.operators.base import KEY_HASH
from unskew.jobs.operators.paced import PacedOptions
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.query.source import make_kafka_options
from unskew.jobs.sinks.registry import make_sinks

SALTS = 16
# Of a shuffled one-word row, about.
_ROW_BYTES = 8


class HashedPipeline(Pipeline):
    """A job's own pipeline, with a plain hash column where the routing was."""

    def _partition(self, prepared: DataFrame) -> DataFrame:
        count = self.job.partitions
        partition = sf.pmod(sf.col(KEY_HASH), sf.lit(count)).cast("int")
        keyed = prepared.withColumn(PARTITION_KEY, partition)
        return keyed.repartitionById(count, sf.col(PARTITION_KEY)).drop(PARTITION_KEY)


class HashedService(Service):
    """A service with that pipeline."""

    def __init__(self, job: Job, spark: SparkSession) -> None:
        super().__init__(job, spark)
        self._pipeline = HashedPipeline(job, self.journal)


def group_by(spark: SparkSession, job: Job) -> None:
    """`groupBy(key).count()`, as anybody would write it."""
    keys = _keys(spark, job)
    _run(keys.groupBy("key").count(), job)


def aggregate_events(
    spark: SparkSession,
    job: Job,
    schema: str,
    key: str,
    aggregates: Mapping[str, str],
    *,
    checked: bool,
) -> None:
    """`groupBy(key).agg(...)` of JSON as anybody would write it, or without what does not decode.

    Spark counts records that are no JSON in the group of the key null, unless it is asked for them.
    """
    options = {"columnNameOfCorruptRecord": "corrupt"} if checked else {}
    schema = f"{schema}, corrupt STRING" if checked else schema
    parsed = sf.from_json(sf.col("value").cast("string"), schema, options)
    events = _read(spark, job).select(parsed.alias("event")).select("event.*")
    if checked:
        events = events.where(f"corrupt is null and {key} is not null")
    columns = [sf.expr(text).alias(name) for name, text in aggregates.items()]
    _run(events.groupBy(sf.col(key).alias("key")).agg(*columns), job)


def at_source(spark: SparkSession, job: Job) -> None:
    """The costly operator in the tasks that read, whose number is set by hand; then a sum."""
    keys = _keys(spark, job, minPartitions=str(job.partitions))
    _run(_worked(keys, job), job)


def repartition(spark: SparkSession, job: Job) -> None:
    """`repartition(key)`, then the costly operator, then a sum."""
    keys = _keys(spark, job).repartition(job.partitions, "key")
    _run(_worked(keys, job), job)


def salted(spark: SparkSession, job: Job) -> None:
    """The same with every key salted by hand."""
    _run_salted(_keys(spark, job), (sf.rand() * SALTS).cast("int"), job)


def salted_by_offset(spark: SparkSession, job: Job) -> None:
    """Salted by the record's offset, so that a retried task salts as the first attempt did."""
    salt = sf.pmod(sf.col("offset"), sf.lit(SALTS))
    _run_salted(_keys(spark, job, "offset"), salt, job)


def _run_salted(keys: DataFrame, salt: Column, job: Job) -> None:
    spread = keys.withColumn("salt", salt).repartition(job.partitions, "key", "salt")
    _run(_worked(spread.select("key"), job), job)


def rebalance(spark: SparkSession, job: Job) -> None:
    """`REBALANCE` in `foreachBatch`, where AQE may cut large partitions; totals of a batch only.

    Its target size is set to a partition's share of this topic's batches, which a user would have
    to know; by the default of 64 MB nothing here would be cut.
    """
    assert isinstance(job.source, KafkaSource)
    assert job.source.records_per_batch is not None
    share = job.source.records_per_batch * _ROW_BYTES // job.partitions
    spark.conf.set("spark.sql.adaptive.advisoryPartitionSizeInBytes", str(share))
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    (sink,) = make_sinks(job)
    (topic,) = sink.topics(job)

    def work(batch: DataFrame, _number: int) -> None:
        totals = _worked(batch.hint("rebalance", "key"), job)
        rows = totals.select(sf.col("key"), sf.to_json(sf.struct("*")).alias("value"))
        rows.write.format("kafka").options(**topic.client_options).save()

    writer = _keys(spark, job).writeStream.queryName(job.name).foreachBatch(work)
    writer = writer.option("checkpointLocation", job.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()


def with_state(spark: SparkSession, job: Job) -> None:
    """`groupBy(key).transformWithStateInPandas`: the operator called key by key."""
    keys = _keys(spark, job)
    counted = keys.groupBy("key").transformWithStateInPandas(
        _Counter(_options(job).cost.seconds),
        "key STRING, count BIGINT",
        outputMode="Update",
        timeMode="None",
    )
    _run(counted, job)


def _options(job: Job) -> PacedOptions:
    assert isinstance(job.operator, PacedOptions)
    return job.operator


def _worked(keys: DataFrame, job: Job) -> DataFrame:
    options = _options(job)
    cost, key_cost = options.cost.seconds, options.key_cost.seconds

    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        met: set[str] = set()
        for batch in batches:
            counted = (
                pa.table({"key": batch.column(0)}).group_by("key").aggregate([([], "count_all")])
            )
            before = len(met)
            if key_cost:
                met.update(counted["key"].to_pylist())
            time.sleep(batch.num_rows * cost + (len(met) - before) * key_cost)
            yield from counted.rename_columns(["key", "records"]).to_batches()

    partials = keys.mapInArrow(work, "key STRING, records BIGINT")
    return partials.groupBy("key").agg(sf.sum("records").alias("count"))


class _Counter(StatefulProcessor):
    """Counts a key's records, slowly."""

    def __init__(self, cost_seconds: float) -> None:
        self._cost = cost_seconds

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count BIGINT")

    def handleInputRows(  # noqa: N802 - Spark's name
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        records = sum(len(frame) for frame in rows)
        time.sleep(records * self._cost)
        held = self._count.get()
        before = held[0] if held else 0
        self._count.update((before + records,))
        yield pd.DataFrame({"key": [key[0]], "count": [before + records]})


def _keys(spark: SparkSession, job: Job, *columns: str, **options: str) -> DataFrame:
    """The records' keys, decoded as the job's operator does, and more of Kafka's columns."""
    operator = make_operator(job.operator)
    key = sf.expr(operator.key)
    text = _read(spark, job, **options).select(
        sf.col("value").cast("string").alias("value"), *columns
    )
    return text.select((sf.explode(key) if operator.explodes else key).alias("key"), *columns)


def _read(spark: SparkSession, job: Job, **options: str) -> DataFrame:
    assert isinstance(job.source, KafkaSource)
    settings = {**make_kafka_options(job.source, spark), **options}
    return spark.readStream.format("kafka").options(**settings).load()


def _run(totals: DataFrame, job: Job) -> None:
    (sink,) = make_sinks(job)
    (topic,) = sink.topics(job)
    rows = totals.select(
        sf.to_json(sf.struct("key")).alias("key"), sf.to_json(sf.struct("*")).alias("value")
    )
    writer = rows.writeStream.queryName(job.name).outputMode("update").format("kafka")
    writer = writer.options(**topic.client_options)
    writer = writer.option("checkpointLocation", job.checkpoint)
    writer.trigger(availableNow=True).start().awaitTermination()
