"""Expressions that may raise on a record, without stopping the job."""

from typing import Any

from pyspark.sql import Column


def try_evaluate(session: Any, value: Column) -> Column:
    """The value, null where it raises."""
    spark_sql = session._jvm.org.apache.spark.sql  # noqa: SLF001 - Python has no TryEval of its own
    expressions = spark_sql.classic.ExpressionUtils
    tried = spark_sql.catalyst.expressions.TryEval(expressions.expression(value._jc))  # noqa: SLF001
    return Column(expressions.column(tried))
