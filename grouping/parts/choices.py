"""How many choices a hot key needs: the inequality of D-Choices, which `d_choices` explains.

>>> solve_choices(np.array([0.2, 0.1]), 50, EPSILON)
14

Reference: see `d_choices`.
"""

import numpy as np

from unskew.grouping.base import Float64s
from unskew.grouping.kernels import kernel

EPSILON = 1e-4
"""Imbalance that one source may make, if nothing else is said: the paper's."""


@kernel
def solve_choices(shares: Float64s, partitions: int, epsilon: float) -> int:
    """The least d for which inequality (3) holds for every prefix of the head.

    `shares` are those of the head's keys, hottest first.
    """
    if shares.size == 0:
        return min(2, partitions)
    head = shares.sum()
    tail = max(0.0, 1.0 - head)
    choices = max(2, int(np.ceil(shares[0] * partitions)))
    while choices < partitions and not _holds(shares, head, tail, choices, partitions, epsilon):
        choices += 1
    return min(choices, partitions)


@kernel
def _holds(
    shares: Float64s, head: float, tail: float, choices: int, partitions: int, epsilon: float
) -> bool:
    missed_by_key = ((partitions - 1.0) / partitions) ** choices
    # The whole head is the tightest prefix but for the first: look there before all others.
    whole = 1.0 - missed_by_key**shares.size
    if head + whole**2 * tail > whole * (1.0 + partitions * epsilon):
        return False
    prefix, missed = 0.0, 1.0
    for h in range(shares.size):
        prefix += shares[h]
        missed *= missed_by_key
        reached = 1.0 - missed
        load = prefix + reached**choices * max(0.0, head - prefix) + reached**2 * tail
        if load > reached * (1.0 + partitions * epsilon):
            return False
    return True
