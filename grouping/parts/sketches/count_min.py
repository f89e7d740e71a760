"""A pair of Count-Min sketches that share their hashes: how often, and how long in all.

`records` (the paper's F) and `seconds` (W) are matrices of r rows and c columns. A record of key t
that took w seconds adds 1 to `records[i, h_i(t)]` and w to `seconds[i, h_i(t)]` in every row i. The
cost of one record of t is estimated as seconds / records in the row where `records` is least: there
the fewest other keys share the cell. Such an estimate is a mean of real costs, so it never leaves
their range; it is exact for a key that is alone in one of its cells.

With c = ceil(e / epsilon) and r = ceil(log2(1 / delta)) the least cell counts at most epsilon times
the records of other keys too many, but for a chance of delta.

Memory is 16 r c bytes whatever the keys are; adding and estimating take r hashes.

>>> import numpy as np
>>> from unskew.grouping.hashing import salts
>>> records, seconds = (np.zeros(shape(0.05, 0.1)) for _ in range(2))
>>> records.shape
(4, 55)
>>> add(records, seconds, salts(1, 4), np.uint64(7), 3.0, 0.6)
>>> frozen = np.zeros((1, 4, 55, 2), np.float32)
>>> freeze(records, seconds, 0.5, frozen[0])
>>> round(frozen_cost(frozen, 0, salts(1, 4), np.uint64(7)), 3)
0.2

Reference: G. Cormode, S. Muthukrishnan: An improved data stream summary: the count-min sketch and
its applications. Journal of Algorithms 55 (2005).
"""

import math

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.hashing import pick
from unskew.grouping.kernels import kernel


def shape(epsilon: float, delta: float) -> tuple[int, int]:
    """Rows and columns for an error of `epsilon` with the chance `delta`."""
    return max(1, math.ceil(math.log2(1 / delta))), max(1, math.ceil(math.e / epsilon))


@kernel
def add(
    records: NDArray[np.float64],
    seconds: NDArray[np.float64],
    salts: NDArray[np.uint64],
    key: np.uint64,
    more_records: float,
    more_seconds: float,
) -> None:
    """Count `more_records` of `key` that took `more_seconds` together."""
    for row in range(salts.size):
        column = pick(key, salts[row], records.shape[1])
        records[row, column] += more_records
        seconds[row, column] += more_seconds


@kernel
def spread(
    records: NDArray[np.float64],
    seconds: NDArray[np.float64],
    more_records: float,
    more_seconds: float,
) -> None:
    """Count records whose keys are not known: every cell of a row gets what it must expect."""
    columns = records.shape[1]
    records += more_records / columns
    seconds += more_seconds / columns


@kernel
def freeze(
    records: NDArray[np.float64],
    seconds: NDArray[np.float64],
    unseen: float,
    out: NDArray[np.float32],
) -> None:
    """A copy to look costs up in, side by side: each cell's records and its seconds per record.

    Half the size and one cache line a cell: for an inner loop over many such pairs. `unseen` is the
    cost where nothing was counted.
    """
    for row in range(records.shape[0]):
        for column in range(records.shape[1]):
            counted = records[row, column]
            out[row, column, 0] = counted
            out[row, column, 1] = seconds[row, column] / counted if counted > 0.0 else unseen


@kernel
def frozen_cost(
    frozen: NDArray[np.float32], which: int, salts: NDArray[np.uint64], key: np.uint64
) -> float:
    """The estimated seconds of one record of `key`, from the frozen pair `which` of many."""
    least = np.float32(np.inf)
    at_least = np.float32(0.0)
    for row in range(salts.size):
        column = pick(key, salts[row], frozen.shape[2])
        counted = frozen[which, row, column, 0]
        per_record = frozen[which, row, column, 1]
        less = counted < least
        least = counted if less else least
        at_least = per_record if less else at_least
    return float(at_least)


@kernel
def mean_cost(records: NDArray[np.float64], seconds: NDArray[np.float64]) -> float:
    """Seconds per record over all keys: each row counts every record once."""
    counted = records[0].sum()
    if counted > 0.0:
        return float(seconds[0].sum() / counted)
    return 0.0


@kernel
def ratios(
    records: NDArray[np.float64], seconds: NDArray[np.float64], out: NDArray[np.float64]
) -> None:
    """Each cell's seconds per record into `out`; 0 where nothing was counted."""
    for row in range(records.shape[0]):
        for column in range(records.shape[1]):
            counted = records[row, column]
            out[row, column] = seconds[row, column] / counted if counted > 0.0 else 0.0


@kernel
def is_stable(
    records: NDArray[np.float64],
    seconds: NDArray[np.float64],
    before: NDArray[np.float64],
    tolerance: float,
) -> bool:
    """Do the cells' ratios differ from `before` by at most `tolerance`, relative to its sum?"""
    change = 0.0
    total = 0.0
    for row in range(records.shape[0]):
        for column in range(records.shape[1]):
            counted = records[row, column]
            ratio = seconds[row, column] / counted if counted > 0.0 else 0.0
            change += abs(before[row, column] - ratio)
            total += before[row, column]
    return change <= tolerance * total
