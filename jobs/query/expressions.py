"""Expressions of the job file, evaluated such that none can stop the job on a record.

What an expression raises on a record depends on its functions and on the data, so no list of
functions that raise is ever complete. Spark's own `TryEval`, which is behind its `try_` functions,
gives null in place of any error, and is put around each expression as a whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from unskew.config.models.base import is_expression
from unskew.jobs.operators.base import Operator
from unskew.jobs.query.decode import REJECT_REASON

EXPRESSION_FAILED = "expression_failed"
_VALUE = "value"
_PREFIX = "_expression_"
_EVENT_TIME = f"{_PREFIX}of_event_time"


@dataclass(frozen=True)
class Evaluated:
    """Decoded records with the values of the job's expressions as columns."""

    rows: DataFrame
    operator: Operator
    """The operator with those columns in the place of its expressions."""
    event_time: str


def evaluate(decoded: DataFrame, operator: Operator, event_time: str) -> Evaluated:
    """Evaluate the job's expressions; a record on which one raises is rejected."""
    options = operator.options
    texts = {
        f"{_PREFIX}{name}": getattr(options, name)
        for name, field in type(options).model_fields.items()
        if is_expression(field) and getattr(options, name) is not None
    }
    columns = {f"{_PREFIX}{name}": name for name in type(options).model_fields}
    safe = options.model_copy(update={columns[name]: name for name in texts})
    rows = add_values(decoded, {**texts, _EVENT_TIME: event_time})
    return Evaluated(rows, type(operator)(safe), _EVENT_TIME)


def add_values(decoded: DataFrame, texts: Mapping[str, str]) -> DataFrame:
    """Evaluate expressions as columns of these names."""
    names = {name: f"_attempt_{name}" for name in texts}
    attempts = {names[name]: _attempt(decoded, text) for name, text in texts.items()}
    raised = sf.lit(False)
    for name in attempts:
        raised = raised | sf.col(name).isNull()
    reason = sf.coalesce(sf.col(REJECT_REASON), sf.when(raised, EXPRESSION_FAILED))
    values = {name: sf.col(f"{names[name]}.{_VALUE}") for name in texts}
    tried = decoded.withColumns(attempts)
    return tried.withColumns({**values, REJECT_REASON: reason}).drop(*attempts)


def _attempt(rows: DataFrame, text: str) -> Column:
    """A struct of the expression's value; null if it raised, or if the record is rejected already.

    In a branch, because Spark evaluates what several expressions share before any of them, outside
    of their `TryEval`; but not what only branches have.
    """
    value = sf.struct(sf.expr(text).alias(_VALUE))
    attempt = sf.when(sf.col(REJECT_REASON).isNull(), value)
    classes: Any = rows.sparkSession._jvm  # noqa: SLF001 - Python's API has no TryEval of its own
    spark_sql = classes.org.apache.spark.sql
    expressions = spark_sql.classic.ExpressionUtils
    tried = spark_sql.catalyst.expressions.TryEval(expressions.expression(attempt._jc))  # noqa: SLF001
    return Column(expressions.column(tried))
