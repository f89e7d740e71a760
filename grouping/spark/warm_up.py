"""Compile the kernels of a grouping before the first task: `warm_up` calls what a task calls.

numba compiles a kernel at its first call, which takes seconds. The tasks of a batch would all do so
at the same time, and once more in the first batch that has reports to learn from: a minute on a few
cores. Compiled here, the machine code is in the user's cache, and a task loads it in 50 ms.

`start_workers` starts Spark's Python workers before a stream's first batch: each takes a second of
processor time for its imports, and all of them do so at the same time.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession

from unskew.grouping.base import Feedback, Grouping
from unskew.grouping.snapshot import Snapshot

_RECORDS = 4096
_SPREAD = np.uint64(0x9E3779B97F4A7C15)
_HOT = 3
"""Every third record is of one key."""


def warm_up(grouping: Grouping) -> None:
    """Route batches of made-up records, without and with reports and what sources agree on.

    A grouping that is made with one source is taken for one of several that agree.
    """
    hashes = np.arange(_RECORDS, dtype=np.uint64) * _SPREAD
    hashes[::_HOT] = _SPREAD
    times = np.arange(_RECORDS)
    for array in (hashes, times):
        # Like the arrays that a task gets from Arrow: numba compiles others for writable arrays.
        array.flags.writeable = False
    for feedback in (None, *[_make_feedback(grouping.setting.partitions)] * 2):
        agreed = grouping.make_up_agreement(hashes) if feedback else None
        grouping.begin_batch(feedback, agreed)
        for _ in grouping.route_chunks([(hashes, times)] * 2):
            pass
        grouping.restore(Snapshot.from_bytes(grouping.snapshot().to_bytes()))


def start_workers(spark: SparkSession, load: Callable[[], object]) -> threading.Thread:
    """Begin to start a Python worker in each slot, which calls `load`; Spark keeps it for later.

    In a thread: planning a query takes the driver as long, and the query's own tasks come after
    these. What fails here fails again in the query's tasks, which report it.
    """
    thread = threading.Thread(target=_start_workers, args=(spark, load), daemon=True)
    thread.start()
    return thread


def _start_workers(spark: SparkSession, load: Callable[[], object]) -> None:
    with suppress(Exception):  # also where the session ends meanwhile
        slots = max(1, spark.sparkContext.defaultParallelism)
        empty: Any = spark.range(slots, numPartitions=slots).mapInArrow(_Start(load), "id BIGINT")
        empty.write.format("noop").mode("overwrite").save()


class _Start:
    """The body of a worker's first task."""

    def __init__(self, load: Callable[[], object]) -> None:
        self._load = load

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        self._load()
        yield from batches


def _make_feedback(partitions: int) -> Feedback:
    numbers = np.arange(partitions)
    return Feedback(
        numbers + 1,
        (numbers + 1).astype(np.float64),
        numbers.astype(np.int32),
        numbers.astype(np.uint64) * _SPREAD,
        numbers + 1,
        (numbers + 1).astype(np.float64),
    )
