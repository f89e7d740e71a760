"""Spark's daemon of Python workers, with everything imported that `route` needs in them.

Spark forks a worker for each slot, and again after a minute without work. pyspark's own daemon
imports nothing first, so each of them takes a second of processor time to load numba, pandas and
pyarrow: sixteen slots on two cores wait eight seconds. Forked from here, a worker takes some 30 ms.

Only for a local master, where the workers' Python is the driver's: on a cluster this module might
not be there yet when a daemon starts.
"""

import gc

import numpy as np
import pandas as pd  # noqa: F401 - Spark asks for its version
import pyarrow as pa  # noqa: F401 - what rows cross into Python by
from pyspark import (
    daemon,
    worker,  # noqa: F401 - what Spark's workers run
)

from unskew.grouping.kernels import load_numba
from unskew.grouping.registry import create


def prepare() -> None:
    """Load what workers need, in the process that they are forked from."""
    load_numba()
    # numba sets the rest of itself up at the first call of a kernel, whichever it is.
    create("key", partitions=2).route(np.arange(2, dtype=np.uint64))
    # These objects live as long as the process: no collection in a worker scans or copies them.
    gc.collect()
    gc.freeze()


if __name__ == "__main__":
    prepare()
    daemon.manager()
