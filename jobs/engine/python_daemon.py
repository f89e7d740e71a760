"""Spark's daemon of Python workers, with everything imported that they will need.

Spark forks a worker for each slot, and again after a minute without work. pyspark's own daemon
imports nothing first, so each of them takes a second of processor time to load numba, pandas and
pyarrow: sixteen slots on two cores wait eight seconds, and do so in every batch of a job whose
batches are further apart than that minute. Forked from here, a worker takes some 30 ms.

Only for a local master, where the workers' Python is the driver's: on a cluster this module might
not be there yet when a daemon starts.
"""

import gc
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any

import datasketches  # noqa: F401 - the operators import it when they work
import numpy as np
import pandas as pd  # noqa: F401 - Spark asks for its version
from pyspark import (
    daemon,
    worker,  # noqa: F401 - what Spark's workers run
)

from unskew.config.specs import OPERATORS
from unskew.grouping.kernels import load_numba
from unskew.grouping.registry import create


def _prepare() -> None:
    load_numba()
    for name in OPERATORS.list_shipped_names():
        OPERATORS.load(name)
    # numba sets the rest of itself up at the first call of a kernel, whichever it is.
    create("key", partitions=2).route(np.arange(2, dtype=np.uint64))
    # These objects live as long as the process: no collection in a worker scans or copies them.
    gc.collect()
    gc.freeze()


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
