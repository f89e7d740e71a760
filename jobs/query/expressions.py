"""Expressions of the job file, evaluated such that none can stop the job on a record.

What an expression raises on a record depends on its functions and on the data, so no list of
functions that raise is ever complete. Spark's own `TryEval`, which is behind its `try_` functions,
gives null in place of any error, and is put around the expressions of a record as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from unskew.config.models.base import find_bare_column
from unskew.config.models.job import Job
from unskew.jobs.operators.base import (
    FILTERED_BY_RESULT,
    FILTERED_RECORDS,
    OBSERVED,
    Operator,
)
from unskew.jobs.query.bounds.attempt import try_evaluate
from unskew.jobs.query.bounds.plan import bound_expressions
from unskew.jobs.query.decode import REJECT_REASON

EXPRESSION_FAILED = "expression_failed"
FILTERED = "_filtered"
"""Is a `where` of the job not true of the record? Only where a job has one."""
_VALUE = "value"
_ATTEMPT = "_attempt"
_PREFIX = "_expression_"
_EVENT_TIME = f"{_PREFIX}of_event_time"


@dataclass(frozen=True)
class Evaluated:
    """Decoded records with the values of the job's expressions as columns."""

    rows: DataFrame
    operator: Operator
    """The operator with those columns in the place of its expressions."""
    event_time: str
    types: Mapping[str, str]
    """The Spark types of the operator's expressions, by name."""


def evaluate(decoded: DataFrame, operator: Operator, job: Job) -> Evaluated:
    """Evaluate the job's expressions; a record on which one raises is rejected."""
    rows = select_wanted(decoded, job, operator.where)
    columns = {name: f"{_PREFIX}{name}" for name in operator.texts}
    texts = {columns[name]: text for name, text in operator.texts.items()}
    rows = add_values(rows, {**texts, _EVENT_TIME: job.event_time})
    kinds = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
    types = {name: kinds[column] for name, column in columns.items()}
    return Evaluated(rows, operator.with_columns(columns), _EVENT_TIME, types)


def select_wanted(decoded: DataFrame, job: Job, where: str | None) -> DataFrame:
    """Mark the records that the job's `where`, or the operator's, does not want; add `select`."""
    rows = decoded
    if job.where is not None:
        rows = _mark_filtered(rows, job.where)
    if job.select:
        rows = add_values(rows, job.select)
    return rows if where is None else _mark_filtered(rows, where)


def drop_filtered(rows: DataFrame, unwanted: Mapping[str, Column] | None = None) -> DataFrame:
    """The rows without the filtered ones, which are counted: Spark's progress of the batch has it.

    Of several results each counts what it does not want, by a condition on the other rows. A task
    that ran twice may count twice, as it does for Spark's own count of its input.
    """
    filtered = sf.col(FILTERED) if FILTERED in rows.columns else sf.lit(False)
    counts = [
        sf.count_if(~filtered & condition).alias(f"{FILTERED_BY_RESULT}{result}")
        for result, condition in (unwanted or {}).items()
    ]
    if FILTERED in rows.columns:
        counts.append(sf.count_if(FILTERED).alias(FILTERED_RECORDS))
    if not counts:
        return rows
    counted = rows.observe(OBSERVED, *counts)
    return counted.where(~filtered) if FILTERED in rows.columns else counted


def _mark_filtered(rows: DataFrame, condition: str) -> DataFrame:
    """`rows` with the column `FILTERED`: accepted records of which the condition is not true."""
    accepted = _is_accepted(rows)
    tried = _add_attempt(rows, {_VALUE: condition})
    attempt = sf.col(_ATTEMPT)
    untrue = accepted & attempt.isNotNull() & ~sf.coalesce(attempt[_VALUE], sf.lit(False))
    before = sf.col(FILTERED) if FILTERED in rows.columns else sf.lit(False)
    return _reject_raised(tried, accepted & attempt.isNull(), {FILTERED: before | untrue})


def add_values(rows: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """`rows` with the values of expressions, or with `reject_reason` where one of them raises.

    A column by its name cannot raise and is taken as it is; the others are tried together.
    """
    tried = {name: text for name, text in texts.items() if find_bare_column(text) is None}
    plain = {name: sf.expr(text) for name, text in texts.items() if name not in tried}
    if not tried:
        return rows.withColumns(plain)
    raised = _is_accepted(rows) & sf.col(_ATTEMPT).isNull()
    values = {name: sf.col(_ATTEMPT)[name] for name in tried}
    return _reject_raised(_add_attempt(rows, tried), raised, {**plain, **values})


def _reject_raised(tried: DataFrame, raised: Column, columns: Mapping[str, Column]) -> DataFrame:
    """The rows with these columns; those on which an expression raised have a reason."""
    reason = sf.coalesce(sf.col(REJECT_REASON), sf.when(raised, EXPRESSION_FAILED))
    return tried.withColumns({**columns, REJECT_REASON: reason}).drop(_ATTEMPT)


def _is_accepted(rows: DataFrame) -> Column:
    accepted = sf.col(REJECT_REASON).isNull()
    return accepted & ~sf.col(FILTERED) if FILTERED in rows.columns else accepted


def _add_attempt(rows: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """`rows` with a struct of the expressions' values, null if one raised.

    It is null as well if the record is not accepted.

    In a branch, because Spark evaluates what several expressions share before any of them, outside
    of their `TryEval`; but not what only branches have.
    """
    values = sf.struct(*[sf.expr(text).alias(name) for name, text in texts.items()])
    attempt = sf.when(_is_accepted(rows), values)
    return bound_expressions(rows.withColumn(_ATTEMPT, try_evaluate(rows.sparkSession, attempt)))


def select_totals(totals: DataFrame, columns: list[Column], texts: Mapping[str, str]) -> DataFrame:
    """`totals` with these columns, and with expressions over them.

    An expression that raises on a total is null there: one total must not end the others.
    """
    finals = []
    for name, text in texts.items():
        value = sf.expr(text)
        if find_bare_column(text.strip("()")) is None:
            # In a branch, as above; its condition is one that Spark does not compute beforehand.
            value = try_evaluate(totals.sparkSession, sf.when(sf.spark_partition_id() >= 0, value))
        finals.append(value.alias(name))
    return bound_expressions(totals.select(*columns, *finals))
