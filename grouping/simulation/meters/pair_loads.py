"""The records of every pair of key and partition: the head's part of a load, and keys that moved.

Exact, in 8 bytes for each key and partition, so only where it is asked for.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.kernels import kernel
from unskew.grouping.simulation.reports import max_over_mean

CELLS_MAX = 2**27
_START = 1024


class PairLoads:
    """Counts records by key, as `PairCounter` numbers them, and partition."""

    def __init__(self, partitions: int) -> None:
        self._counts = np.zeros((_START, partitions), np.int64)
        self._before = np.empty((0, partitions), np.bool_)

    def add(self, numbers: Int32s, routes: Int32s) -> None:
        """Take note of records."""
        if numbers.size and int(numbers.max()) >= self._counts.shape[0]:
            self._grow(int(numbers.max()) + 1)
        _add(numbers, routes, self._counts)

    def mark(self, keys: int) -> None:
        """Remember where the first `keys` keys went until now: later they may move."""
        self._before = self._counts[:keys] > 0

    def moved(self) -> int:
        """How many of the marked keys went to a partition they had not been sent to before."""
        later = self._counts[: self._before.shape[0]] > 0
        return int((later & ~self._before).any(axis=1).sum())

    def count_head_records(self, counts: Int64s, records_min: float) -> Int64s:
        """Each partition's records of the keys that have at least `records_min` in all."""
        head = self._counts[: counts.size][counts >= records_min]
        loads: Int64s = head.sum(axis=0, dtype=np.int64)
        return loads

    def keys_max_over_mean(self) -> float:
        """The most keys of a partition over the mean."""
        return max_over_mean((self._counts > 0).sum(axis=0))

    def _grow(self, rows: int) -> None:
        partitions = self._counts.shape[1]
        rows = max(rows, 2 * self._counts.shape[0])
        if rows * partitions > CELLS_MAX:
            raise GroupingError(
                f"head_theta, keys_moved: more than {CELLS_MAX // partitions // 2} distinct keys of"
                f" {partitions} partitions are not counted; take fewer keys or partitions"
            )
        more = np.zeros((rows - self._counts.shape[0], partitions), np.int64)
        self._counts = np.concatenate([self._counts, more])


@kernel
def _add(numbers: Int32s, routes: Int32s, counts: NDArray[np.int64]) -> None:
    for i in range(numbers.size):
        counts[numbers[i], routes[i]] += 1
