"""What the first records of a job's source would become: its keys and inputs, or why not."""

import base64
import json
from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.config.models.job import Job
from unskew.jobs.engine.session import open_job_session
from unskew.jobs.operators.base import KEY_HASH, PANE
from unskew.jobs.query import source
from unskew.jobs.query.check_expressions import name_wrong_expressions
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare import ARRIVED, REJECTED
from unskew.jobs.query.prepare_rows import PREFIX

_OWN = frozenset({ARRIVED, PANE, KEY_HASH, REJECTED})
_WHERE = ("topic", "partition", "offset")
_VALUE_SHOWN = 200


def show_first_rows(job: Job, records: int) -> Iterator[str]:
    """Lines of JSON, one for each row that some records of the source become."""
    with open_job_session(job) as spark, name_wrong_expressions(spark, job):
        rows = prepare_first_rows(spark, job, records)
        yield from describe_rows(rows)


def describe_rows(rows: DataFrame) -> Iterator[str]:
    """A line of JSON for each row."""
    for row in rows.select(sf.to_json(sf.struct("*")).alias("text")).toLocalIterator():
        yield json.dumps(_describe(json.loads(row["text"])), ensure_ascii=False)


def prepare_first_rows(spark: SparkSession, job: Job, records: int) -> DataFrame:
    """The rows as they would be routed, each with its record's coordinates where a job has them."""
    raw = source.read_first(spark, job.source, records)
    decoded = decode(raw, job.decode, source.COLUMNS)
    # So every row carries its record, not only a rejected one.
    carrying = job.model_copy(update={"on_error": "dead_letter"})
    rows, _ = prepare_records(decoded, carrying)
    return rows


def _describe(row: dict[str, Any]) -> dict[str, Any]:
    record = row.get(REJECTED) or {}
    where = {name: record[name] for name in _WHERE if name in record}
    if reason := record.get("reason"):
        return {**where, "rejected": reason, "value": _shorten(record.get("value"))}
    inputs = {name.removeprefix(PREFIX): row[name] for name in row if name not in _OWN}
    return where | inputs


def _shorten(value: str | None) -> str | None:
    """The beginning of a value, which Spark's JSON has in base64."""
    if value is None:
        return None
    return base64.b64decode(value)[:_VALUE_SHOWN].decode(errors="replace")
