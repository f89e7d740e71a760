"""Spark's daemon of Python workers, with everything imported that a job's will need.

As `grouping/spark/worker_daemon.py`, which says why, and with the operators. Where batches are
further apart than a minute, new workers are forked in every batch.
"""

import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any

import datasketches  # noqa: F401 - the operators import it when they work
from pyspark import daemon

from unskew.config.specs import OPERATORS
from unskew.grouping.spark.worker_daemon import prepare


def _prepare() -> None:
    for name in OPERATORS.list_shipped_names():
        OPERATORS.load(name)
    prepare()


_daemon: Any = daemon
_work: Any = daemon.worker
_DISCONNECTED = (BrokenPipeError, ConnectionResetError, EOFError)
"""Errors of a worker whose task was stopped, or whose JVM ended."""


def _quiet(sock: Any, authenticated: bool) -> int:
    """Run a worker; where its task was stopped while it worked, end it without a trace."""
    try:
        return int(_work(sock, authenticated))
    except _DISCONNECTED:
        return 1


def _print_unexpected() -> None:
    """Print the exception that ends a worker, unless it was cut off before it began to work."""
    if not isinstance(sys.exception(), _DISCONNECTED):
        traceback.print_exc()


if __name__ == "__main__":
    _prepare()
    daemon.worker = _quiet
    _daemon.traceback = SimpleNamespace(print_exc=_print_unexpected)
    # With this set the daemon raises such an error, and `_quiet` sees it, instead of printing it.
    os.environ["PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE"] = "1"
    daemon.manager()
