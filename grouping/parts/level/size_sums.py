"""How far chance takes sums of sizes: the records that counts would have in their place.

Sources agree on a plan by what chance does to counts of records (`grouping.parts.level.drift`). A
sum of sizes varies otherwise: by the square root of the sum of their squares, as each record is
there or not. So sums B with the squares V vary as the count B * B / V does, relative to their mean;
it is a count in units of V / B bytes, the size of all records where they are alike. Every source
leaves both sums in its state, and the unit of all of them is part of the plan.

A key's first record may have a part of the cost of a file, which is there whatever chance does: so
it counts as the others of its key on average, unless it is the only one.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.level.sizes import SIZE_MAX
from unskew.grouping.parts.sketches.exact_counts import ExactCounts
from unskew.grouping.snapshot import Arrays

BOUNDS = {"plan_unit": (1, SIZE_MAX)}
_SUMS, _UNIT = "size_sums", "plan_unit"


def empty_sums() -> dict[str, NDArray[Any]]:
    """The state where sizes are balanced, before any batch: the sums, and the plan's unit."""
    return {_SUMS: np.zeros(2, np.float64), _UNIT: np.ones(1, np.int64)}


def note_sums(state: dict[str, NDArray[Any]], sums: Int64s, squares: Float64s) -> None:
    """Add those of a piece, which are by key."""
    state[_SUMS] += (float(sums.sum()), float(squares.sum()))


def count_squares(counts: ExactCounts, numbers: Int32s, sizes: Int64s) -> Float64s:
    """Count what `sum_squares` does, of keys that were counted and not yet weighed."""
    return sum_squares(numbers, sizes, counts.counts.astype(np.int64))


def find_unit(states: Sequence[Arrays]) -> int:
    """How many bytes count as a record; 1 where records are balanced."""
    if _SUMS not in states[0]:
        return 1
    total, squares = np.sum([state[_SUMS] for state in states], axis=0)
    return compute_unit(float(total), float(squares))


def compute_unit(total: float, squares: float) -> int:
    """How many bytes of these sums count as a record."""
    return min(max(1, round(squares / max(total, 1.0))), SIZE_MAX)


def name_unit(state: Arrays, unit: int) -> dict[str, NDArray[Any]]:
    """The unit as a part of the plan; nothing where records are balanced."""
    return {_UNIT: np.array([unit], np.int64)} if _SUMS in state else {}


def unit_of(state: Arrays) -> int:
    """The unit of the plan in force."""
    return int(state[_UNIT][0]) if _UNIT in state else 1


@kernel
def sum_squares(numbers: Int32s, sizes: Int64s, records: Int64s) -> Float64s:
    """By key the squares of all sizes, that of its first record taken from its others.

    `numbers` are of each record's key, `records` of each key. Without sizes each record is a byte.
    """
    if not sizes.size:
        return records.astype(np.float64)
    squares = np.zeros(records.size, np.float64)
    seen = np.zeros(records.size, np.uint8)
    for r in range(numbers.size):
        i = numbers[r]
        if seen[i] or records[i] == 1:
            squares[i] += float(sizes[r]) * float(sizes[r])
        seen[i] = 1
    for i in range(records.size):
        if records[i] > 1:
            squares[i] *= records[i] / (records[i] - 1.0)
    return squares
