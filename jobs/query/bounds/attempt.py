"""Expressions that may raise on a record, without stopping the job."""

from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import DataType


def try_evaluate(session: Any, value: Column) -> Column:
    """The value, null where it raises."""
    spark_sql = session._jvm.org.apache.spark.sql  # noqa: SLF001 - Python has no TryEval of its own
    expressions = spark_sql.classic.ExpressionUtils
    tried = spark_sql.catalyst.expressions.TryEval(expressions.expression(value._jc))  # noqa: SLF001
    return Column(expressions.column(tried))


def cast_or_raise(session: Any, value: Column, kind: DataType) -> Column:
    """The value as another type; it raises where it does not fit, whatever the session's mode."""
    spark_sql = session._jvm.org.apache.spark.sql  # noqa: SLF001 - Python's cast is of that mode
    catalyst, of = spark_sql.catalyst.expressions, spark_sql.classic.ExpressionUtils
    child, wanted = of.expression(value._jc), session._jsparkSession.parseDataType(kind.json())  # noqa: SLF001 - likewise
    no_zone = session._jvm.scala.Option.empty()  # noqa: SLF001 - likewise
    return Column(of.column(catalyst.Cast(child, wanted, no_zone, catalyst.EvalMode.ANSI())))
