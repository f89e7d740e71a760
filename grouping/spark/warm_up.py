"""Compile the kernels of a grouping before the first task: `warm_up` calls what a task calls.

numba compiles a kernel at its first call, which takes seconds. The tasks of a batch would all do so
at the same time, and once more in the first batch that has reports to learn from: a minute on a few
cores. Compiled here, the machine code is in the user's cache, and a task loads it in 50 ms.
"""

import numpy as np

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
    for feedback in (None, *[_feedback(grouping.setting.partitions)] * 2):
        grouping.begin_batch(feedback, grouping.made_up_agreement() if feedback else None)
        for _ in grouping.route_chunks([(hashes, times)] * 2):
            pass
        grouping.restore(Snapshot.from_bytes(grouping.snapshot().to_bytes()))


def _feedback(partitions: int) -> Feedback:
    numbers = np.arange(partitions)
    return Feedback(
        numbers + 1,
        (numbers + 1).astype(np.float64),
        numbers.astype(np.int32),
        numbers.astype(np.uint64) * _SPREAD,
        numbers + 1,
        (numbers + 1).astype(np.float64),
    )
