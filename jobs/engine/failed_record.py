"""Which record an operator raised on, in the message of a job that stops by it.

Rows carry no coordinates to the operator: a job that does not fail would pay for them. The batch
is read once more in their place, by the offsets in the checkpoint's log.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from unskew.config.errors import ExternalError
from unskew.jobs.checkpoint.spark_log import read_newest_offset, read_source_range
from unskew.jobs.engine.spark_errors import SPARK_ERRORS, explain_spark_error, list_causes
from unskew.jobs.operators.base import EVENT_TIME, KEY_HASH
from unskew.jobs.operators.user_code.failing_rows import ROW_MARK
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.query.prepare import REJECTED

_SHOWN = 3
_COORDINATES = ("topic", "partition", "offset")


@contextmanager
def name_failed_record(spark: SparkSession, pipeline: Callable[[], Pipeline]) -> Iterator[None]:
    """Add the record's coordinates to the error of an operator that raised on a row of it."""
    try:
        yield
    except SPARK_ERRORS as error:
        marks = filter(None, map(ROW_MARK.search, list_causes(error)))
        mark = next(marks, None)
        if mark is None:
            raise
        where = ""
        # Without them the error says what it can; the records may be gone, or Kafka away.
        with suppress(*SPARK_ERRORS, OSError, ValueError):
            where = _find_records(spark, pipeline(), int(mark[1]), int(mark[2]))
        line = explain_spark_error(pipeline().job, error)
        raise ExternalError(f"{line}{where}") from error


def _find_records(spark: SparkSession, pipeline: Pipeline, key_hash: int, micros: int) -> str:
    """The coordinates of the batch's records with a row of this key and event time."""
    covered = read_source_range(pipeline.job, read_newest_offset(pipeline.job))
    if covered is None:
        return ""
    rows = pipeline.read_again(spark, covered, on_error="dead_letter")
    same = (sf.col(KEY_HASH) == key_hash) & (sf.unix_micros(EVENT_TIME) == micros)
    wanted = rows.where(same & sf.col(REJECTED)["reason"].isNull())
    records = wanted.select(*[sf.col(REJECTED)[name].alias(name) for name in _COORDINATES])
    return _describe([row.asDict() for row in records.distinct().limit(_SHOWN).collect()])


def _describe(records: list[dict[str, Any]]) -> str:
    each = [", ".join(f"{name} {row[name]}" for name in _COORDINATES) for row in records]
    if not each:
        return ""
    return f"; of the record at {each[0]}" if len(each) == 1 else f"; of one at {' or '.join(each)}"
