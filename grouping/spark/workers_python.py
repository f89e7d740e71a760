"""Chooses or checks, before the first task, the Python that Spark's workers run.

With a local master they are forked from a process that has imported what routing needs, unless the
program names another one itself.

Without `PYSPARK_PYTHON` Spark starts the first `python3` on the PATH. For a program of a virtual
environment that is not activated, that is another Python than its own, without this package.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from unskew.grouping.errors import GroupingError

_PACKAGE = "unskew"
_DAEMON = "unskew.grouping.spark.worker_daemon"
_DAEMON_SETTING = "spark.python.daemon.module"
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
            _fork_prepared_workers(context)
            return
    application = (str(context.applicationId), context.pythonExec)
    if application not in _checked:
        _check(context)
        _checked.add(application)


def _fork_prepared_workers(context: SparkContext) -> None:
    """Let workers that start from now on be forked with everything imported."""
    # Spark reads this setting for each query; pyspark has no way to change it in a session.
    settings: Any = context._jsc.sc().env().conf()  # noqa: SLF001
    if not settings.contains(_DAEMON_SETTING) and _finds_package():
        settings.set(_DAEMON_SETTING, _DAEMON)


@cache
def _finds_package() -> bool:
    """Does a new Python find this package, although the program may have found it by itself?"""
    words = [sys.executable, "-c", f"import {_PACKAGE}; print({_PACKAGE}.__file__)"]
    path = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    return path == sys.modules[_PACKAGE].__file__


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
