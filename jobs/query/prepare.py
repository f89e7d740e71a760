"""Decoded records become the rows that are routed: key, operator's inputs, times, or `rejected`."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from unskew.config.models.base import find_bare_column
from unskew.config.models.job import Job
from unskew.config.models.window import NoWindow, Window
from unskew.config.types.units import Duration
from unskew.jobs.operators.base import (
    EVENT_TIME,
    KEY,
    KEY_HASH,
    PANE,
    Operator,
)
from unskew.jobs.operators.registry import is_computed_by_spark
from unskew.jobs.query.decode import MARK, REJECT_REASON
from unskew.jobs.query.expressions import drop_filtered, evaluate
from unskew.jobs.query.source import COLUMNS, STAMPED_ON_ARRIVAL

ARRIVED = "arrived"
REJECTED = "rejected"
"""A struct of a rejected record: the reason and the source's columns; null for every other row.

With `on_error: dead_letter` other rows have it too, without a reason: it may come.
"""
FAILED_KEY = "failed_key"
"""With `on_error: dead_letter` its last field: the key of the row on which the operator raised."""
NULL_KEY = "null_key"
NO_EVENT_TIME = "no_event_time"
EVENT_TIME_OUT_OF_RANGE = "event_time_out_of_range"
EVENT_TIME_IN_THE_FUTURE = "event_time_in_the_future"
KEY_TOO_LONG = "key_too_long"
TOO_MANY_KEYS = "too_many_keys"
_WHY = "_why"
_KEYS = "_keys"
_AT = "_at"
_OF_TIME = "_of_time"
_IS_REJECTED = "_is_rejected"
_BETWEEN = "\u00ff"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# A day within the years 1 to 9999, which Python's dates have, whatever the zone: a row operator
# gets such dates. Milliseconds that were read as seconds are beyond.
_FIRST_MICROS, _LAST_MICROS = (
    (day - _EPOCH) // timedelta(microseconds=1)
    for day in (datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 31, tzinfo=UTC))
)


def prepare(
    decoded: DataFrame, untyped: Operator, job: Job, now: Column | None = None
) -> tuple[DataFrame, Operator]:
    """One row a key, and the operator that knows its types.

    A row has the key and its hash, the operator's inputs, the times, and `rejected`. `now` is the
    batch's time, if it is not Spark's.
    """
    rows, types = _evaluate(decoded, untyped, job, now)
    operator = untyped.with_types(types)
    rows = _explode_keys(rows, job) if operator.explodes else _check_keys(rows, operator, job)
    return select_prepared(rows, operator, job), operator


def select_prepared(rows: DataFrame, operator: Operator, job: Job) -> DataFrame:
    """The columns of a routed row: keys, the operator's inputs, times, hash and `rejected`."""
    if job.on_error == "dead_letter" and not is_computed_by_spark(job):
        rejected = make_rejected_record(sf.lit(None).cast("string").alias(FAILED_KEY))
    else:
        rejected = sf.when(sf.col(REJECT_REASON).isNotNull(), make_rejected_record())
    return rows.select(
        *operator.keys,
        *operator.inputs,
        EVENT_TIME,
        ARRIVED,
        _compute_pane(job.window).alias(PANE),
        _compute_hash(operator).alias(KEY_HASH),
        rejected.alias(REJECTED),
    )


def keep_accepted(prepared: DataFrame, observed: str | None = None) -> DataFrame:
    """The rows without the rejected ones; their number is in Spark's progress under that name.

    Of the rejected ones nothing more is read, so that no row carries its record.
    """
    rows = _judge_once(prepared, _IS_REJECTED, sf.col(REJECTED).isNotNull()).drop(REJECTED)
    if observed is not None:
        rows = rows.observe(observed, sf.count_if(_IS_REJECTED).alias("count"))
    return rows.where(~sf.col(_IS_REJECTED)).drop(_IS_REJECTED)


def keep_rejected(prepared: DataFrame) -> DataFrame:
    """The rejected records, with their reasons."""
    judged = _judge_once(prepared, REJECTED, sf.col(REJECTED))
    return judged.where(sf.col(REJECTED).isNotNull()).select(f"{REJECTED}.*")


def _judge_once(prepared: DataFrame, name: str, value: Column) -> DataFrame:
    """`prepared` with this column, such that Spark keeps a filter on it above what decides it.

    It would copy that into a filter beneath the decoding, once for each use of a decoded column: a
    record's JSON was parsed twenty times. It moves no filter beneath a column that it takes for
    nondeterministic, as everything is that asks for the task's number.
    """
    return prepared.withColumn(name, sf.when(sf.spark_partition_id() >= 0, value))


def make_rejected_record(*more: Column) -> Column:
    """A struct of the record, with the reason why it is rejected."""
    return sf.struct(
        sf.col(REJECT_REASON).alias("reason"),
        *[sf.col(f"raw_{name}").alias(name) for name in COLUMNS],
        *more,
    )


def _evaluate(
    decoded: DataFrame, untyped: Operator, job: Job, now: Column | None
) -> tuple[DataFrame, Mapping[str, str]]:
    """Evaluate keys, inputs, event time and first reject reason; also the expressions' types."""
    evaluated = evaluate(decoded, untyped, job)
    operator = evaluated.operator.with_types(evaluated.types)
    reason = sf.col(REJECT_REASON)
    for name, condition in operator.reject_rules.items():
        reason = sf.coalesce(reason, sf.when(sf.expr(condition), name))
    # Times are judged before there are keys: Spark copies a record out of its generated code to do
    # so, and an array of keys would be most of that.
    at = sf.expr(f"try_cast({evaluated.event_time} as timestamp)")
    rows = drop_filtered(evaluated.rows).withColumn(_AT, at)
    of_time = sf.coalesce(*reject_times(job, now, _AT, "raw_timestamp"))
    rows = rows.withColumn(_OF_TIME, of_time).select(
        *[sf.expr(text).alias(name) for name, text in operator.keys.items()],
        *[sf.expr(text).alias(name) for name, text in operator.inputs.items()],
        *list_record_columns(_AT),
        _OF_TIME,
        reason.alias(REJECT_REASON),
    )
    reason = sf.coalesce(
        sf.col(REJECT_REASON),
        *[sf.when(sf.col(name).isNull(), NULL_KEY) for name in operator.keys],
        sf.col(_OF_TIME),
    )
    return rows.withColumn(REJECT_REASON, reason).drop(_OF_TIME), evaluated.types


def list_record_columns(event_time: str) -> list[Column]:
    """List the record's own columns: its times and those of its source."""
    return [
        # A value that is no time becomes null; a plain cast would stop the query.
        sf.expr(f"try_cast({event_time} as timestamp)").alias(EVENT_TIME),
        sf.col("raw_timestamp").alias(ARRIVED),
        *[sf.col(f"raw_{name}") for name in COLUMNS],
        sf.col(STAMPED_ON_ARRIVAL),
    ]


def is_time_of_arrival(job: Job) -> bool:
    """Is a record's event time the source's own, so that rows need not bring both along?"""
    own = {name.lower() for name in (*getattr(job.decode, "columns", ()), *(job.select or {}))}
    return find_bare_column(job.event_time) == "timestamp" and "timestamp" not in own


def is_whole_key_too_long(operator: Operator, job: Job) -> Column:
    """Are the texts of a key, all of its columns together, too long?"""
    texts = (sf.octet_length(name) for name, kind in operator.key_types.items() if kind == "string")
    return sum(texts, sf.lit(0)) > job.max_key_bytes.bytes


def _check_keys(rows: DataFrame, operator: Operator, job: Job) -> DataFrame:
    """Rows with a key each; one that is too long is a reason to reject the record."""
    long = sf.when(is_whole_key_too_long(operator, job), KEY_TOO_LONG)
    return rows.withColumn(REJECT_REASON, sf.coalesce(sf.col(REJECT_REASON), long))


def _explode_keys(rows: DataFrame, job: Job) -> DataFrame:
    """A row for each key of a record, and one in all for its keys that cannot be used.

    Of a record with such keys the others count. It is one dead letter, not one a key: each holds
    the whole record, and a record of 1 MiB has room for 500 keys that are too long. There is no
    function with a lambda here: Spark interprets those, and copies the whole record with its keys
    out of the code that it generates to do so, and back.
    """
    keys, accepted = sf.col(KEY), sf.col(REJECT_REASON).isNull()
    many = sf.when(sf.size(keys) > job.max_keys_per_record, TOO_MANY_KEYS)
    rows = rows.withColumn(REJECT_REASON, sf.coalesce(sf.col(REJECT_REASON), many))
    rows = rows.withColumn(_WHY, sf.when(accepted, _find_unusable(keys, job)))
    # The row of a dead letter has no key.
    dead_letter = sf.array(sf.lit(None))
    # In descending order nulls are last.
    others = sf.slice(sf.sort_array(keys, asc=False), sf.lit(1), sf.size(keys) - _count_nulls(keys))
    exploded = (
        sf.when(~accepted, dead_letter)
        .when(sf.col(_WHY).isNull(), keys)
        .otherwise(sf.concat(others, dead_letter))
    )
    # Before the explosion, so that these are evaluated once a record and not once a key.
    rows = rows.withColumn(_KEYS, exploded)
    # Not `explode`: Spark would look for empty arrays beforehand, with the expression of the keys
    # copied into that filter several times. Nor with positions: Spark would run tasks in a batch
    # without rows.
    rows = rows.withColumn(KEY, sf.explode_outer(_KEYS)).drop(_KEYS)
    reason = sf.coalesce(sf.col(REJECT_REASON), sf.when(sf.col(KEY).isNull(), sf.col(_WHY)))
    rows = rows.withColumn(REJECT_REASON, reason).drop(_WHY)
    usable = sf.octet_length(KEY) <= job.max_key_bytes.bytes
    return rows.where(usable | sf.col(REJECT_REASON).isNotNull())


def _find_unusable(keys: Column, job: Job) -> Column:
    """Why some keys of a record cannot be used; null if all can.

    Most records are judged by the first two conditions. `array_contains` is null where a key is,
    and rarely true here.
    """
    most = job.max_key_bytes.bytes
    complete = ~sf.array_contains(keys, sf.lit(""))
    short = sf.octet_length(sf.array_join(keys, "")) <= most
    reason = sf.when(~short & _has_too_long(keys, most), KEY_TOO_LONG)
    reason = reason.when(_count_nulls(keys) > 0, NULL_KEY)
    return sf.when(~sf.coalesce(complete & short, sf.lit(False)), reason)


def _count_nulls(keys: Column) -> Column:
    with_nulls = sf.octet_length(sf.array_join(keys, "", "?"))
    return with_nulls - sf.octet_length(sf.array_join(keys, ""))


def _has_too_long(keys: Column, most: int) -> Column:
    """Is any of the keys longer than so many bytes?

    A pattern over all of them, a character a byte. Between two is a character that stands for no
    byte of a key: it is put in the place of a mark that no record can name.
    """
    octets = sf.decode(sf.array_join(keys, MARK).cast("binary"), "ISO-8859-1")
    between = sf.lit(_BETWEEN)
    plain = sf.replace(octets, between, sf.lit("?"))
    apart = sf.replace(plain, sf.lit(MARK), between)
    return apart.rlike(f"(?:^|{_BETWEEN})[^{_BETWEEN}]{{{most + 1}}}")


def _compute_pane(window: Window) -> Column:
    """Start of the row's pane."""
    if isinstance(window, NoWindow):
        return sf.lit(0).cast("bigint")
    micros = sf.unix_micros(sf.col(EVENT_TIME))
    return micros - sf.pmod(micros, sf.lit(window.pane))


def reject_times(
    job: Job, now: Column | None, at: str = EVENT_TIME, arrived: str = ARRIVED
) -> list[Column]:
    """The reasons of a record whose event time cannot be used, each null for all others."""
    return [
        sf.when(sf.col(at).isNull(), NO_EVENT_TIME),
        sf.when(_is_out_of_range(sf.col(at)), EVENT_TIME_OUT_OF_RANGE),
        *_reject_future(job.max_future, now, sf.unix_micros(at), sf.unix_micros(arrived)),
    ]


def _is_out_of_range(at: Column) -> Column:
    micros = sf.unix_micros(at)
    return (micros < _FIRST_MICROS) | (micros >= _LAST_MICROS)


def _reject_future(
    most: Duration | None, now: Column | None, at: Column, arrived: Column
) -> list[Column]:
    """The reason of an event time that no clock can have shown yet; nothing if that is allowed.

    A single such time would move the watermark beyond all records to come. Spark takes the time of
    a batch from the log of offsets, so that a batch that runs again rejects the same records.
    """
    if most is None:
        return []
    ahead = sf.lit(most.microseconds)
    # In a lambda, which Spark interprets: elsewhere the time of a batch would stand in the code
    # that Spark generates, which would be compiled, and run cold, in each batch.
    times = sf.array(sf.current_timestamp() if now is None else now)
    after_batch = sf.exists(times, lambda time: at > sf.unix_micros(time) + ahead)
    after_arrival = at > arrived + ahead
    future = after_batch | (sf.col(STAMPED_ON_ARRIVAL) & after_arrival)
    return [sf.when(future, EVENT_TIME_IN_THE_FUTURE)]


def _compute_hash(operator: Operator) -> Column:
    """The hash by which groupings route a key; rejected rows are spread evenly over partitions.

    By their value too: lines of a file share the offset of their split.
    """
    coordinates = sf.xxhash64("raw_topic", "raw_partition", "raw_offset", "raw_value")
    return sf.when(sf.col(REJECT_REASON).isNull(), sf.xxhash64(*operator.keys)).otherwise(
        coordinates
    )
