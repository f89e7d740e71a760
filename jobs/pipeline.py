"""The pipeline, top to bottom: source, decode, prepare, route, partial, merge, finish."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from config.models.grouping import NoGrouping, grouping_options
from config.models.job import Job
from config.models.window import NoWindow, SlidingWindow
from grouping.journal import FOLDER, Journal
from grouping.spark import PARTITION_KEY, Router, route_hashes
from jobs import source
from jobs.decode import REASON, decode
from jobs.operators import operator_for
from jobs.operators.base import EVENT_TIME, KEY, KEY_HASH, PANE, RECORDS, Operator
from jobs.partial import ARRIVED, BAD, PartialStage, partial_stage

NULL_KEY = "null_key"
NO_EVENT_TIME = "no_event_time"
WINDOW = "window"


@dataclass(frozen=True)
class Pipeline:
    """One job's query, up to its sinks."""

    job: Job
    journal: Journal

    def results(self, spark: SparkSession) -> DataFrame:
        """The totals of each window and key, as the sinks take them."""
        operator = operator_for(self.job.operator)
        raw = source.read(spark, self.job.source)
        decoded = decode(raw, self.job.decode, source.COLUMNS)
        prepared = self._prepared(decoded, operator)
        if isinstance(self.job.grouping, NoGrouping):
            good = prepared.where(sf.col(BAD).isNull())
            totals = self._grouped(good).agg(*_aggregates(operator.direct))
        else:
            partials = self._partials(self._routed(prepared), operator)
            totals = self._grouped(partials).agg(*_aggregates(operator.merge))
        return _finished(totals, operator)

    def _prepared(self, decoded: DataFrame, operator: Operator) -> DataFrame:
        """The operator's key and inputs, the times, and `bad` for what must not be counted."""
        key = sf.expr(operator.key)
        reason = sf.col(REASON)
        for name, condition in operator.rules.items():
            reason = sf.coalesce(reason, sf.when(sf.expr(condition), name))
        checked = decoded.select(
            key.alias(KEY),
            *[sf.expr(text).alias(name) for name, text in operator.inputs.items()],
            sf.expr(self.job.event_time).cast("timestamp").alias(EVENT_TIME),
            sf.col("raw_timestamp").alias(ARRIVED),
            reason.alias(REASON),
            *[sf.col(f"raw_{name}") for name in source.COLUMNS],
        )
        reason = sf.coalesce(
            sf.col(REASON),
            sf.when(sf.col(KEY).isNull(), NULL_KEY),
            sf.when(sf.col(EVENT_TIME).isNull(), NO_EVENT_TIME),
        )
        rows = checked.withColumn(REASON, reason)
        if operator.explodes:
            # A refused record stays one row, whatever its key looks like.
            keys = sf.when(sf.col(REASON).isNull(), sf.col(KEY)).otherwise(sf.array(sf.lit(None)))
            rows = rows.withColumn(KEY, sf.explode(keys))
        refused = sf.struct(
            sf.col(REASON).alias("reason"),
            *[sf.col(f"raw_{name}").alias(name) for name in source.COLUMNS],
        )
        return rows.select(
            KEY,
            *operator.inputs,
            EVENT_TIME,
            ARRIVED,
            self._pane().alias(PANE),
            _hash().alias(KEY_HASH),
            sf.when(sf.col(REASON).isNotNull(), refused).alias(BAD),
        )

    def _pane(self) -> Column:
        """Which stretch of event time a row is in, such that all its rows share their windows."""
        window = self.job.window
        if isinstance(window, NoWindow):
            return sf.lit(0).cast("bigint")
        micros = sf.unix_micros(sf.col(EVENT_TIME))
        width = window.duration.amount
        if isinstance(window, SlidingWindow):
            width = math.gcd(width, window.slide.amount)
        return sf.floor(micros / sf.lit(width)).cast("bigint")

    def _routed(self, prepared: DataFrame) -> DataFrame:
        choice = self.job.grouping
        parallel = max(1, prepared.sparkSession.sparkContext.defaultParallelism)
        router = Router(
            choice.type,
            self.job.partitions,
            self.job.seed,
            parallel,
            grouping_options(choice),
            self.journal,
        )
        return route_hashes(prepared, sf.col(KEY_HASH), router, ARRIVED).drop(PARTITION_KEY)

    def _partials(self, routed: DataFrame, operator: Operator) -> DataFrame:
        columns = {
            KEY: "string",
            EVENT_TIME: "timestamp",
            RECORDS: "bigint",
            **operator.partial_columns,
        }
        schema: Any = StructType.fromDDL(", ".join(f"`{n}` {kind}" for n, kind in columns.items()))
        stage = PartialStage(
            operator, self.job.partitions, schema, self.journal, self.job.metrics.hot_key_names
        )
        return partial_stage(routed, stage)

    def _grouped(self, rows: DataFrame) -> GroupedData:
        window = self.job.window
        if isinstance(window, NoWindow):
            return rows.groupBy(KEY)
        slide = window.slide if isinstance(window, SlidingWindow) else window.duration
        late = self.job.lateness
        marked = rows.withWatermark(EVENT_TIME, late.interval if late else "0 seconds")
        return marked.groupBy(
            sf.window(EVENT_TIME, window.duration.interval, slide.interval).alias(WINDOW), KEY
        )


def journal_of(job: Job) -> Journal:
    """A job's journal: beside its checkpoint, so that both are moved and removed together."""
    return Journal(f"{job.checkpoint.rstrip('/')}/{FOLDER}")


def _hash() -> Column:
    """What groupings see of a key; refused rows go anywhere, evenly."""
    place = sf.xxhash64("raw_topic", "raw_partition", "raw_offset")
    return sf.when(sf.col(REASON).isNull(), sf.xxhash64(KEY)).otherwise(place)


def _aggregates(texts: Mapping[str, str]) -> list[Column]:
    return [sf.expr(text).alias(name) for name, text in texts.items()]


def _finished(totals: DataFrame, operator: Operator) -> DataFrame:
    """Window bounds, key and the operator's columns."""
    bounds = []
    if WINDOW in totals.columns:
        bounds = [
            sf.col(f"{WINDOW}.start").alias("window_start"),
            sf.col(f"{WINDOW}.end").alias("window_end"),
        ]
    return totals.select(*bounds, KEY, *_aggregates(operator.final))
