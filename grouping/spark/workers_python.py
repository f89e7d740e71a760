"""Chooses or checks, before the first task, the Python that Spark's workers run.

Without `PYSPARK_PYTHON` Spark starts the first `python3` on the PATH. For a program of a virtual
environment that is not activated, that is another Python than its own, without this package.
"""

import os
import sys
from collections.abc import Callable

from pyspark import SparkContext
from pyspark.sql import SparkSession

from unskew.grouping.errors import GroupingError

_checked: set[tuple[str, str]] = set()
"""Applications and their workers' Pythons that can route."""


def choose_workers_python(spark: SparkSession) -> None:
    """Let a local master's workers run the driver's Python; elsewhere check that they can route.

    Spark reads the choice whenever a function in Python is made, so it holds for all that follow.
    """
    context = spark.sparkContext
    if str(context.master).startswith("local"):
        if sys.executable and "PYSPARK_PYTHON" not in os.environ:
            context.pythonExec = sys.executable
        if context.pythonExec == sys.executable:
            return
    application = (str(context.applicationId), context.pythonExec)
    if application not in _checked:
        _check(context)
        _checked.add(application)


def _check(context: SparkContext) -> None:
    """Run a task that imports the router; an error says why it cannot."""
    try:
        missing = context.parallelize([0], 1).map(_import_router()).collect()[0]
    except Exception as error:  # no such program, or Python of another version: Spark says which
        raise _describe_failure(context, _find_last_line(error)) from error
    if missing:
        raise _describe_failure(context, missing)


def _import_router() -> Callable[[int], str]:
    # A nested function is sent as code; one of a module would be imported by the worker.
    def import_router(_: int) -> str:
        try:
            import unskew.grouping.spark.router  # noqa: F401, PLC0415 - in the worker
        except ImportError as error:
            return str(error)
        return ""

    return import_router


def _describe_failure(context: SparkContext, reason: str) -> GroupingError:
    return GroupingError(
        f"Spark's workers run {context.pythonExec}, which cannot route: {reason}; set"
        " PYSPARK_PYTHON to a Python that has this package on every machine, before Spark starts"
        f" (this program's own is {sys.executable})"
    )


def _find_last_line(error: Exception) -> str:
    """Find the last line of an error that names an exception, without the trace."""
    lines = [line.strip() for line in str(error).splitlines()]
    texts = [line for line in lines if "Error" in line or "Exception" in line]
    return (texts or lines)[-1]
