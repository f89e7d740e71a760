"""Candidates by hashes modulo the number of partitions: what a consistent-hash ring is better than.

A key's candidates are the partitions whose numbers, among the active ones, are its hashes modulo
their count, each counted once, so a short list of candidates begins every longer one. When a
partition comes or goes the count changes, and nearly every key has other candidates: of n
partitions, n / (n + 1) of the keys have another first one after a further one came.

>>> active = np.arange(4, dtype=np.int32)
>>> out = np.empty(3, np.int32)
>>> draw(active, np.uint64(99), np.zeros(5, np.int64), out)
>>> out.tolist(), draw_two(active, np.uint64(99))
([3, 2, 0], (3, 2))
"""

import numpy as np

from unskew.grouping.base import Int32s, Int64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import borrowing_kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@borrowing_kernel
def draw_two(active: Int32s, value: np.uint64) -> tuple[np.int64, np.int64]:
    """The first two candidates of a key whose hash is `value`; of at least two partitions."""
    count = np.uint64(active.size)
    first = value % count
    second = first
    while second == first:
        value = mix64(value + _GOLDEN)
        second = value % count
    return np.int64(active[first]), np.int64(active[second])


@borrowing_kernel
def draw(active: Int32s, value: np.uint64, marks: Int64s, out: Int32s) -> None:
    """Fill `out` with the first candidates; there must be as many partitions.

    `marks` are those of `ring.new_marks`.
    """
    marks[-1] += 1
    count = np.uint64(active.size)
    drawn = 0
    while drawn < out.size:
        partition = active[value % count]
        if marks[partition] != marks[-1]:
            marks[partition] = marks[-1]
            out[drawn] = partition
            drawn += 1
        value = mix64(value + _GOLDEN)
