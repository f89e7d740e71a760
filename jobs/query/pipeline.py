"""The pipeline, top to bottom: source, decode, prepare, route, partial, merge, finish."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from unskew.config.models.grouping import LocalGrouping, NoGrouping, read_grouping_options
from unskew.config.models.job import Job
from unskew.config.models.window import IntervalTrigger, NoWindow
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.router import PARTITION_KEY, Router, route_hashes
from unskew.jobs.checkpoint.spark_log import SourceRange
from unskew.jobs.operators.base import EVENT_TIME, KEY_HASH, PANE, RECORDS, Operator
from unskew.jobs.operators.registry import is_computed_by_spark, make_operator
from unskew.jobs.query import source
from unskew.jobs.query.bounds.batch_bytes import choose_batch_bytes
from unskew.jobs.query.decode import decode
from unskew.jobs.query.expressions import select_totals
from unskew.jobs.query.partial import PartialStage
from unskew.jobs.query.prepare import (
    ARRIVED,
    is_time_of_arrival,
    keep_accepted,
    keep_rejected,
    prepare,
)
from unskew.jobs.query.prepare_results import prepare_results
from unskew.jobs.query.prepare_rows import SIZE, prepare_rows, select_table_columns
from unskew.jobs.query.rejected import pack_rejected
from unskew.jobs.query.writer_stage import WriterStage

WINDOW = "window"
REJECTED_RECORDS = "rejected-records"
"""In Spark's progress of a query without a partial stage: how many records it rejected."""


@dataclass(frozen=True)
class Planned:
    """What a query is to write."""

    rows: DataFrame
    """The totals of each window and key, as the sinks take them; or the rows themselves."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Spark's settings that the query starts with."""


@dataclass(frozen=True)
class Pipeline:
    """One job's query, up to its sinks."""

    job: Job
    journal: Journal
    chosen: bool = False
    """Did `grouping: auto` choose the job's grouping? Other batches may have another."""

    def build_results(self, spark: SparkSession) -> Planned:
        """Everything up to what is written: totals or rows, and the settings of their query."""
        settings: Mapping[str, str] = {}
        prepared, operator = self._read_and_prepare(spark)
        if not operator.merges:
            return Planned(select_table_columns(self._keep_accepted(prepared)))
        if is_computed_by_spark(self.job):
            rows = keep_accepted(prepared, REJECTED_RECORDS)
            totals = self._group_by_window(rows, operator).agg(*_make_aggregates(operator.direct))
        else:
            stage = self.make_stage(operator)
            rows = self._partition(prepared.drop(PANE))
            if is_time_of_arrival(self.job):
                rows = rows.drop(ARRIVED)
            # Rows that an operator may still fail on carry their records, as structs.
            rows = rows if self.job.on_error == "dead_letter" else pack_rejected(rows, operator)
            settings = choose_batch_bytes(rows, operator, self.job)
            partials = rows.mapInArrow(stage, stage.schema)
            totals = self._group_by_window(partials, operator).agg(
                *_make_aggregates(operator.merge)
            )
        return Planned(_select_results(totals, operator), settings)

    def _keep_accepted(self, prepared: DataFrame) -> DataFrame:
        """The rows that are written as they are, each in the partition of its writer."""
        if is_computed_by_spark(self.job):
            return keep_accepted(prepared, REJECTED_RECORDS)
        return self.make_writer_stage().keep_accepted(self._partition(prepared))

    def build_rejected(self, spark: SparkSession, covered: SourceRange) -> DataFrame:
        """The rejected records of a batch, with reason and coordinates; no stream.

        They are judged by the batch's own time, as in the stream.
        """
        return keep_rejected(self.read_again(spark, covered))

    def read_again(self, spark: SparkSession, covered: SourceRange, **changes: object) -> DataFrame:
        """The prepared rows of a batch that the stream has read, of the job with these changes."""
        job = self.job.model_copy(update=changes)
        raw = source.read_range(spark, job.source, covered)
        now = sf.timestamp_millis(sf.lit(covered.time_ms))
        prepared, _ = prepare_records(decode(raw, job.decode, source.COLUMNS), job, now)
        return prepared

    def make_router(self, sources: int) -> Router:
        """The router; the groupings `none` and `local` have none."""
        choice = self.job.grouping
        return Router(
            choice.type,
            self.job.partitions,
            self.job.seed,
            sources,
            read_grouping_options(choice),
            self.journal,
            time.perf_counter,
            others=self.chosen,
            key_size=read_file_cost(self.job),
        )

    def make_stage(self, operator: Operator) -> PartialStage:
        """The partial stage, which works on each partition and reports."""
        columns = {
            **operator.key_types,
            EVENT_TIME: "timestamp",
            RECORDS: "bigint",
            **operator.partial_columns,
        }
        schema: Any = StructType.fromDDL(", ".join(f"`{n}` {kind}" for n, kind in columns.items()))
        return PartialStage(
            operator,
            self.job.partitions,
            schema,
            self.journal,
            self.job.metrics.hot_key_names,
            self.job.seed,
            None if isinstance(self.job.window, NoWindow) else self.job.window,
            self.job.operator.opened_max(),
        )

    def make_writer_stage(self) -> WriterStage:
        """The stage of rows without a partial: it counts what each writer gets, and reports."""
        named = self.job.metrics.hot_key_names
        return WriterStage(self.job.partitions, self.journal, named, self.job.seed)

    def _read_and_prepare(self, spark: SparkSession) -> tuple[DataFrame, Operator]:
        sinks = (file for sink in self.job.sinks for file in sink.files())
        for file in (*self.job.operator.files(), *sinks):
            spark.sparkContext.addPyFile(file)
        local = isinstance(self.job.grouping, LocalGrouping)
        raw = source.read(spark, self.job.source, self.job.partitions if local else None)
        return prepare_records(decode(raw, self.job.decode, source.COLUMNS), self.job)

    def _partition(self, prepared: DataFrame) -> DataFrame:
        """Rows in the partitions that work on them: routed, by Spark's own hash, or as read."""
        if isinstance(self.job.grouping, LocalGrouping):
            return prepared.coalesce(self.job.partitions)
        if isinstance(self.job.grouping, NoGrouping):
            return prepared.repartition(self.job.partitions, KEY_HASH)
        router = self.make_router(max(1, prepared.sparkSession.sparkContext.defaultParallelism))
        size = SIZE if SIZE in prepared.columns else None
        routed = route_hashes(prepared, sf.col(KEY_HASH), router, ARRIVED, size)
        return routed.drop(PARTITION_KEY)

    def _group_by_window(self, rows: DataFrame, operator: Operator) -> GroupedData:
        window = self.job.window
        if isinstance(window, NoWindow):
            return rows.groupBy(*operator.keys)
        late = self.job.lateness
        marked = rows.withWatermark(EVENT_TIME, late.interval if late else "0 seconds")
        return marked.groupBy(
            sf.window(EVENT_TIME, window.duration.interval, window.slide.interval).alias(WINDOW),
            *operator.keys,
        )


def prepare_records(
    decoded: DataFrame, job: Job, now: Column | None = None
) -> tuple[DataFrame, Operator]:
    """The rows that the job routes, whether they are merged or written as they are.

    `now` is the batch's time, if it is not Spark's.
    """
    operator = make_operator(job.operator)
    if not operator.merges:
        return prepare_rows(decoded, operator, job)
    return (prepare_results if operator.parts else prepare)(decoded, operator, job, now)


def read_file_cost(job: Job) -> int:
    """What each file of the job's table costs its writer, in bytes; 0 without a table."""
    return getattr(job.sinks[0], "file_cost_bytes", None) or 0


def set_trigger(writer: DataStreamWriter, job: Job) -> DataStreamWriter:
    """`writer` with the job's trigger: when its batches begin."""
    if isinstance(job.trigger, IntervalTrigger):
        return writer.trigger(processingTime=job.trigger.interval.interval)
    return writer.trigger(availableNow=True)


def _make_aggregates(texts: Mapping[str, str]) -> list[Column]:
    return [sf.expr(text).alias(name) for name, text in texts.items()]


def _select_results(totals: DataFrame, operator: Operator) -> DataFrame:
    """Window bounds, key and the operator's columns."""
    bounds = []
    if WINDOW in totals.columns:
        bounds = [
            sf.col(f"{WINDOW}.start").alias("window_start"),
            sf.col(f"{WINDOW}.end").alias("window_end"),
        ]
    keys = [sf.col(column).alias(name) for name, column in operator.key_names.items()]
    return select_totals(totals, [*bounds, *keys], operator.final)
