"""What shows that the records of a batch are not those that a plan was made for.

A plan of `level` knows the counts of the batch before. Whether they still hold is looked for in two
steps, each from a share and from what the journal has:

- a source compares its own share with what is expected of it, by `departs`. Where all of the share
  departs, it does without the plan. A single partition that is `own_deviations` above its part
  does not by chance: it is brought down to its part, not only to the slack above it. So a swing
  that many sources see by far costs nothing, and of one that they hardly see each takes a part;
- what is too little for every source shows in the sum of all: after the batch in the loads that a
  plan gave, and before a first plan in what was different at the end of a batch (`agreement`).
"""

import numpy as np

from unskew.grouping.base import Float64s, Int32s, Int64s
from unskew.grouping.kernels import kernel

OWN_DEVIATIONS = 2.75
"""What the fullest of 100 partitions is above the mean by chance, in standard deviations."""
_DEPARTURE = 4.5
"""Standard deviations by which a share may depart from what the plan expects: 1 in 300,000."""


CHANGE = 3.0
"""Likewise of a batch's end from its beginning: 1 in 700, since it only costs pairs in a batch."""
_ENDS = 4
"""The first and the last records of a piece, of so many equal parts of it, are compared."""


def own_deviations(records: int, partitions: int) -> float:
    """How far chance takes the fullest partition of a share above its part, as a part of it."""
    return min(1.0, OWN_DEVIATIONS * float(np.sqrt(partitions / max(records, 1))))


def departs(
    records: Int64s, expected: Float64s, sources: int, deviations: float = _DEPARTURE
) -> bool:
    """Are these counts others than one of `sources` parts, by chance, of what is expected?

    Pearson's chi-squared, its bound by Wilson and Hilferty. It is larger by a source's part since
    the expected records are themselves those of a sample.
    """
    if expected.size < 2:
        return False
    parts = np.maximum(expected, 1.0)
    squares = float(((records - parts) ** 2 / parts).sum())
    spread = 2.0 / (9.0 * expected.size)
    bound = expected.size * (1.0 - spread + deviations * spread**0.5) ** 3
    return bool(squares > (1.0 + 1.0 / sources) * bound)


@kernel
def add_ends(numbers: Int32s, homes: Int32s, early: Int64s, late: Int64s) -> None:
    """Add the first and the last records of a piece to the loads of their keys' homes.

    `numbers` are by record, those of their keys; `homes` are by key.
    """
    size = numbers.size // _ENDS
    for i in range(size):
        early[homes[numbers[i]]] += 1
        late[homes[numbers[numbers.size - 1 - i]]] += 1
