"""A tournament tree: the index of the least of n values, when one value changes at a time.

A complete tree in which groups of four compare: each node holds the least value below it and its
owner, so the root names the winner. Replacing a value replays one path: three comparisons a level,
log4 n levels, without a branch to mispredict, against n comparisons for a scan. Values may not be
negative: then their bits, read as whole numbers, compare as they do, and faster. Equal values go to
the lowest position.

The levels lie one after the other, leaves first, each padded to a power of four with infinities.

>>> import numpy as np
>>> tree = tournament(np.array([3.0, 1.0, 1.0]), np.array([1, 1, 1], np.uint8))
>>> find_winner(tree)
1
>>> replay(tree, 1, 2.0)
2
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.kernels import kernel


class Tournament(NamedTuple):
    """Values, the same memory as whole numbers, owners, and where each level begins."""

    values: NDArray[np.float64]
    bits: NDArray[np.int64]
    owners: NDArray[np.int64]
    levels: NDArray[np.int64]


@kernel
def tournament(values: NDArray[np.float64], taking_part: NDArray[np.uint8]) -> Tournament:
    """Build the tree; positions that do not take part have an infinite value."""
    levels = np.zeros(16, np.int64)
    width = 4
    depth = 1
    while width < values.size:
        width *= 4
        depth += 1
    total = 0
    for level in range(depth + 1):
        levels[level] = total
        total += max(width >> (2 * level), 1)
    nodes = np.full(total, np.inf)
    tree = Tournament(
        nodes, nodes.view(np.int64), np.zeros(total, np.int64), levels[: depth + 1].copy()
    )
    for i in range(values.size):
        tree.owners[i] = i
        if taking_part[i] != 0:
            nodes[i] = values[i]
    for level in range(depth):
        for group in range(width >> (2 * (level + 1))):
            _compare(tree, level, group)
    return tree


@kernel
def find_winner(tree: Tournament) -> int:
    """The index of the least value."""
    return int(tree.owners[-1])


@kernel
def replay(tree: Tournament, position: int, value: float) -> int:
    """Set the value at `position`; the index of the least value now."""
    tree.values[position] = value
    group = position
    for level in range(tree.levels.size - 1):
        group >>= 2
        _compare(tree, level, group)
    return int(tree.owners[-1])


@kernel
def _compare(tree: Tournament, level: int, group: int) -> None:
    """Move the least of the four of `group` up a level."""
    first = tree.levels[level] + 4 * group
    a, b, c, d = (
        tree.bits[first],
        tree.bits[first + 1],
        tree.bits[first + 2],
        tree.bits[first + 3],
    )
    right = b < a
    low = b if right else a
    low_owner = tree.owners[first + 1] if right else tree.owners[first]
    right = d < c
    high = d if right else c
    high_owner = tree.owners[first + 3] if right else tree.owners[first + 2]
    right = high < low
    up = tree.levels[level + 1] + group
    tree.bits[up] = high if right else low
    tree.owners[up] = high_owner if right else low_owner
