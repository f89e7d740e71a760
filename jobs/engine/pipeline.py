"""The pipeline, top to bottom: source, decode, prepare, route, partial, merge, finish."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Column, DataFrame, GroupedData, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import StructType

from unskew.config.models.grouping import NoGrouping, grouping_options
from unskew.config.models.job import Job
from unskew.config.models.window import NoWindow, SlidingWindow
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.route import PARTITION_KEY, Router, route_hashes
from unskew.jobs.checkpoint.lateness import windows_of
from unskew.jobs.engine import source
from unskew.jobs.engine.decode import REASON, decode
from unskew.jobs.engine.partial import ARRIVED, BAD, PartialStage, partial_stage
from unskew.jobs.operators import computed_by_spark, operator_for
from unskew.jobs.operators.base import EVENT_TIME, KEY, KEY_HASH, PANE, RECORDS, Operator

NULL_KEY = "null_key"
NO_EVENT_TIME = "no_event_time"
EVENT_TIME_OUT_OF_RANGE = "event_time_out_of_range"
WINDOW = "window"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A day within the years 1 to 9999, which Python's dates have, whatever the zone: a row operator
# gets such dates. Milliseconds that were read as seconds are beyond.
_FIRST_MICROS, _LAST_MICROS = (
    (day - _EPOCH) // timedelta(microseconds=1)
    for day in (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
)


@dataclass(frozen=True)
class Pipeline:
    """One job's query, up to its sinks."""

    job: Job
    journal: Journal

    def results(self, spark: SparkSession) -> DataFrame:
        """The totals of each window and key, as the sinks take them."""
        operator = operator_for(self.job.operator)
        prepared = self._read(spark, operator)
        if computed_by_spark(self.job):
            good = prepared.where(sf.col(BAD).isNull())
            totals = self._grouped(good).agg(*_aggregates(operator.direct))
        else:
            partials = partial_stage(self._partitioned(prepared), self.stage(operator))
            totals = self._grouped(partials).agg(*_aggregates(operator.merge))
        return _finished(totals, operator)

    def refused(self, spark: SparkSession) -> DataFrame:
        """What must not be counted, with its reason and place, where no partial stage keeps it."""
        prepared = self._read(spark, operator_for(self.job.operator))
        return prepared.where(sf.col(BAD).isNotNull()).select(f"{BAD}.*")

    def router(self, sources: int) -> Router:
        """What routes; a grouping other than `none` is asked for."""
        choice = self.job.grouping
        return Router(
            choice.type,
            self.job.partitions,
            self.job.seed,
            sources,
            grouping_options(choice),
            self.journal,
            time.perf_counter,
        )

    def stage(self, operator: Operator) -> PartialStage:
        """What works on each partition, and reports."""
        columns = {
            KEY: "string",
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
            windows_of(self.job.window),
        )

    def _read(self, spark: SparkSession, operator: Operator) -> DataFrame:
        raw = source.read(spark, self.job.source)
        decoded = decode(raw, self.job.decode, source.COLUMNS)
        return self._prepared(decoded, operator)

    def _prepared(self, decoded: DataFrame, operator: Operator) -> DataFrame:
        """The operator's key and inputs, the times, and `bad` for what must not be counted."""
        key = sf.expr(operator.key)
        reason = sf.col(REASON)
        for name, condition in operator.rules.items():
            reason = sf.coalesce(reason, sf.when(sf.expr(condition), name))
        checked = decoded.select(
            key.alias(KEY),
            *[sf.expr(text).alias(name) for name, text in operator.inputs.items()],
            # A time that is none is refused; a plain cast would stop the query.
            sf.expr(f"try_cast(({self.job.event_time}) as timestamp)").alias(EVENT_TIME),
            sf.col("raw_timestamp").alias(ARRIVED),
            reason.alias(REASON),
            *[sf.col(f"raw_{name}") for name in source.COLUMNS],
        )
        reason = sf.coalesce(
            sf.col(REASON),
            sf.when(sf.col(KEY).isNull(), NULL_KEY),
            sf.when(sf.col(EVENT_TIME).isNull(), NO_EVENT_TIME),
            sf.when(_out_of_range(sf.col(EVENT_TIME)), EVENT_TIME_OUT_OF_RANGE),
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
        return micros - sf.pmod(micros, sf.lit(width))

    def _partitioned(self, prepared: DataFrame) -> DataFrame:
        """Rows in the partitions that work on them: routed, or by Spark's own hash of the key."""
        if isinstance(self.job.grouping, NoGrouping):
            return prepared.repartition(self.job.partitions, KEY_HASH)
        return self._routed(prepared)

    def _routed(self, prepared: DataFrame) -> DataFrame:
        parallel = max(1, prepared.sparkSession.sparkContext.defaultParallelism)
        router = self.router(parallel)
        return route_hashes(prepared, sf.col(KEY_HASH), router, ARRIVED).drop(PARTITION_KEY)

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


def _out_of_range(at: Column) -> Column:
    micros = sf.unix_micros(at)
    return (micros < _FIRST_MICROS) | (micros >= _LAST_MICROS)


def _hash() -> Column:
    """What groupings see of a key; refused rows go anywhere, evenly.

    By their value too: lines of a file have the place of their split in common.
    """
    place = sf.xxhash64("raw_topic", "raw_partition", "raw_offset", "raw_value")
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
