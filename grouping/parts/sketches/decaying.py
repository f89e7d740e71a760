"""SpaceSaving in epochs: counts of the recent records, older ones fading.

The stream is cut into epochs of a fixed number of records. Within one, keys are counted as by
SpaceSaving (`grouping.parts.sketches.space_saving`); before the first record of the next, every
count is multiplied by `alpha`. So a key's count is the sum over epochs of (its records in it) *
alpha^(age), plus at most the least count it took over, and the update costs one multiplication a
record on average, because the order of the heap and the table stay as they are.

`total` is kept in the same way for all records: `count / total` is a key's recent frequency. It
tends to records / (1 - alpha) at an epoch's end: 1250 for the paper's 1000 and 0.2.

Departures: counts that have faded below 1e-100 become 0, as denormal numbers are slow. `top` is the
largest count: counts only grow or fade together, and only a least one is given away, so it is one
comparison a record.

>>> sketch = arrays(capacity=2)
>>> counters, epoch = view(sketch), sketch["epoch"]
>>> slot = space_saving.admit(counters, np.uint64(5))
>>> counted(epoch, 1.0)
>>> decay(counters, epoch, 0.5)
>>> counters.counts[slot] += 1
>>> counted(epoch, counters.counts[slot])
>>> epoch.tolist()  # records of this epoch, total, top
[1.0, 1.5, 1.5]

Reference: paper 000 (FISH), algorithm 1.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s
from unskew.grouping.contents import require
from unskew.grouping.kernels import borrowing_kernel
from unskew.grouping.parts.sketches import space_saving
from unskew.grouping.parts.sketches.space_saving import FADED, Counters, view

_ROUNDING = 1 + 1e-6
__all__ = ["RECORDS", "TOP", "TOTAL", "arrays", "check", "counted", "decay", "view"]

RECORDS, TOTAL, TOP = 0, 1, 2
"""Places in the array `epoch`: records of this epoch so far, all records decayed, largest count."""


def arrays(capacity: int) -> dict[str, NDArray[Any]]:
    """An empty sketch, as named arrays for a grouping's state: SpaceSaving's and `epoch`."""
    return {**space_saving.arrays(capacity), "epoch": np.zeros(3, np.float64)}


def check(state: Mapping[str, NDArray[Any]]) -> None:
    """Raise a SnapshotError if counters and sums in a state contradict each other."""
    space_saving.check(state)
    _, total, top = state["epoch"]
    require((state["epoch"] >= 0).all(), "epoch", "no negative sums")
    require(top >= state["counter_counts"].max(), "epoch", "no count above the largest")
    require(top <= total * _ROUNDING + FADED, "epoch", "no count above all records")


@borrowing_kernel
def counted(epoch: Float64s, count: float) -> None:
    """A record's counter has become `count`: bring the sums up to date."""
    epoch[RECORDS] += 1.0
    epoch[TOTAL] += 1.0
    epoch[TOP] = max(epoch[TOP], count)


@borrowing_kernel
def decay(counters: Counters, epoch: Float64s, alpha: float) -> None:
    """An epoch begins: all that was counted weighs `alpha` times as much (lines 5-7, 23-26)."""
    counts, errors = counters.counts, counters.errors
    used = counters.used[0]
    for slot in range(used):
        counts[slot] = _faded(counts[slot], alpha)
        errors[slot] = _faded(errors[slot], alpha)
    _order(counters.heap, counters.heap_counts, counts, used)
    epoch[TOTAL] = _faded(epoch[TOTAL], alpha)
    epoch[TOP] = _faded(epoch[TOP], alpha)
    epoch[RECORDS] = 0.0


@borrowing_kernel
def _order(heap: Int32s, heap_counts: Float64s, counts: Float64s, used: np.int64) -> None:
    """Make the heap again with the counts of now.

    Left as they are, its entries would fade while their counters go on: each would have to be sunk
    again every few epochs, at a time, which costs more than all at once here.
    """
    for node in range(used):
        heap_counts[node] = counts[heap[node]]
    for root in range(used // 2 - 1, -1, -1):
        node = root
        slot, count = heap[node], heap_counts[node]
        child = 2 * node + 1
        while child < used:
            if child + 1 < used and heap_counts[child + 1] < heap_counts[child]:
                child += 1
            if heap_counts[child] >= count:
                break
            heap[node] = heap[child]
            heap_counts[node] = heap_counts[child]
            node = child
            child = 2 * node + 1
        heap[node] = slot
        heap_counts[node] = count


@borrowing_kernel
def _faded(value: float, alpha: float) -> float:
    value *= alpha
    return value if value >= FADED else 0.0
