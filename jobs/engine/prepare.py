"""Decoded records become the rows that are routed: key, operator's inputs, times, or `rejected`."""

import math
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from unskew.config.models.job import Job
from unskew.config.models.window import NoWindow, SlidingWindow, Window
from unskew.jobs.engine.decode import REJECT_REASON
from unskew.jobs.engine.source import COLUMNS
from unskew.jobs.operators.base import EVENT_TIME, KEY, KEY_HASH, PANE, Operator

ARRIVED = "arrived"
REJECTED = "rejected"
"""A struct of a rejected record: the reason and the source's columns; null for every other row."""
NULL_KEY = "null_key"
NO_EVENT_TIME = "no_event_time"
EVENT_TIME_OUT_OF_RANGE = "event_time_out_of_range"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A day within the years 1 to 9999, which Python's dates have, whatever the zone: a row operator
# gets such dates. Milliseconds that were read as seconds are beyond.
_FIRST_MICROS, _LAST_MICROS = (
    (day - _EPOCH) // timedelta(microseconds=1)
    for day in (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
)


def prepare(decoded: DataFrame, operator: Operator, job: Job) -> DataFrame:
    """One row a key: the key and its hash, the operator's inputs, the times, and `rejected`."""
    rows = _evaluated(decoded, operator, job.event_time)
    if operator.explodes:
        # A rejected record stays one row, whatever its key looks like.
        accepted = sf.col(REJECT_REASON).isNull()
        keys = sf.when(accepted, sf.col(KEY)).otherwise(sf.array(sf.lit(None)))
        rows = rows.withColumn(KEY, sf.explode(keys))
    record = sf.struct(
        sf.col(REJECT_REASON).alias("reason"),
        *[sf.col(f"raw_{name}").alias(name) for name in COLUMNS],
    )
    return rows.select(
        KEY,
        *operator.inputs,
        EVENT_TIME,
        ARRIVED,
        _pane(job.window).alias(PANE),
        _hash().alias(KEY_HASH),
        sf.when(sf.col(REJECT_REASON).isNotNull(), record).alias(REJECTED),
    )


def _evaluated(decoded: DataFrame, operator: Operator, event_time: str) -> DataFrame:
    """The operator's expressions, the event time, and the first reason to reject the record."""
    reason = sf.col(REJECT_REASON)
    for name, condition in operator.reject_rules.items():
        reason = sf.coalesce(reason, sf.when(sf.expr(condition), name))
    rows = decoded.select(
        sf.expr(operator.key).alias(KEY),
        *[sf.expr(text).alias(name) for name, text in operator.inputs.items()],
        # What is no time becomes null; a plain cast would stop the query.
        sf.expr(f"try_cast(({event_time}) as timestamp)").alias(EVENT_TIME),
        sf.col("raw_timestamp").alias(ARRIVED),
        reason.alias(REJECT_REASON),
        *[sf.col(f"raw_{name}") for name in COLUMNS],
    )
    reason = sf.coalesce(
        sf.col(REJECT_REASON),
        sf.when(sf.col(KEY).isNull(), NULL_KEY),
        sf.when(sf.col(EVENT_TIME).isNull(), NO_EVENT_TIME),
        sf.when(_out_of_range(sf.col(EVENT_TIME)), EVENT_TIME_OUT_OF_RANGE),
    )
    return rows.withColumn(REJECT_REASON, reason)


def _pane(window: Window) -> Column:
    """Which stretch of event time a row is in, such that all its rows share their windows."""
    if isinstance(window, NoWindow):
        return sf.lit(0).cast("bigint")
    micros = sf.unix_micros(sf.col(EVENT_TIME))
    width = window.duration.amount
    if isinstance(window, SlidingWindow):
        width = math.gcd(width, window.slide.amount)
    return micros - sf.pmod(micros, sf.lit(width))


def _out_of_range(at: Column) -> Column:
    micros = sf.unix_micros(at)
    return (micros < _FIRST_MICROS) | (micros >= _LAST_MICROS)


def _hash() -> Column:
    """What groupings see of a key; rejected rows are spread evenly over the partitions.

    By their value too: lines of a file share the offset of their split.
    """
    coordinates = sf.xxhash64("raw_topic", "raw_partition", "raw_offset", "raw_value")
    return sf.when(sf.col(REJECT_REASON).isNull(), sf.xxhash64(KEY)).otherwise(coordinates)
