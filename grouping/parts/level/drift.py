"""What shows that the records of a batch are not those that a plan was made for.

A plan of `level` knows the counts of the batch before. Whether they still hold is looked for in two
steps, each from a share and from what the journal has:

- a source compares its own share with what is expected of it, by `has_departed`. Where all of the
  share departs, it does without the plan. A single partition that is `compute_deviations` above its
  part is not there by chance: it is brought down to its part, not only to the slack above it. So a
  swing that many sources see by far costs nothing; of one that they hardly see each takes a part;
- what is too little for every source shows in the sum of all: after the batch in the loads that a
  plan gave, and before a first plan in what changed within the batch (`agreement`).
"""

import numpy as np

from unskew.grouping.base import Float64s, Int32s, Int64s
from unskew.grouping.kernels import kernel

OWN_DEVIATIONS = 2.75
"""What the fullest of 100 partitions is above the mean by chance, in standard deviations."""
_DEPARTURE = 4.5
"""Standard deviations by which a share may depart from what the plan expects: 1 in 300,000."""
_CHANGE = 3.0
"""Likewise of a batch's parts from each other: 1 in 700, since it only costs pairs in a batch."""
PARTS = 8
"""How many equal parts of a piece, in the order of its records, are compared."""


def compute_deviations(records: int, partitions: int) -> float:
    """How far chance takes the fullest partition of a share above its part, as a part of it."""
    return min(1.0, OWN_DEVIATIONS * float(np.sqrt(partitions / max(records, 1))))


def has_departed(records: Int64s | Float64s, expected: Float64s, sources: int) -> bool:
    """Are these counts others than one of `sources` parts, by chance, of what is expected?

    Pearson's chi-squared, its bound by Wilson and Hilferty. It is larger by a source's part since
    the expected records are themselves those of a sample.
    """
    if expected.size < 2:
        return False
    bound = _chi_squared_bound(expected.size, _DEPARTURE)
    return _squares(records, expected) > (1.0 + 1.0 / sources) * bound


def changes(parts: Int64s) -> bool:
    """Are the parts of a batch, rows of records by partition, unlike each other beyond chance?

    Pearson's chi-squared, for one distribution behind all of them.
    """
    total = int(parts.sum())
    rows, columns = parts.shape
    if not total or min(rows, columns) < 2:
        return False
    expected = np.outer(parts.sum(axis=1), parts.sum(axis=0)) / total
    bound = _chi_squared_bound((rows - 1) * (columns - 1), _CHANGE)
    return _squares(parts, expected) > bound


def _squares(records: Int64s | Float64s, expected: Float64s) -> float:
    likely = np.maximum(expected, 1.0)
    return float(((records - likely) ** 2 / likely).sum())


def _chi_squared_bound(freedom: int, deviations: float) -> float:
    spread = 2.0 / (9.0 * freedom)
    return float(freedom * (1.0 - spread + deviations * spread**0.5) ** 3)


@kernel
def add_parts(numbers: Int32s, homes: Int32s, loads: Int64s) -> None:
    """Add the records of each part of a piece to the loads of their keys' homes.

    `numbers` are by record, those of their keys; `homes` are by key; `loads` are by partition, one
    part after the other.
    """
    partitions = loads.size // PARTS
    for part in range(PARTS):
        row = loads[part * partitions : (part + 1) * partitions]
        for i in range(part * numbers.size // PARTS, (part + 1) * numbers.size // PARTS):
            row[homes[numbers[i]]] += 1
