"""The baby, teenage and old space of Dynamic Key Grouping: counted keys, promoted in cycles.

Keys lie in slots, space after space: old, teenage, baby; `bounds` has the four ends of the three,
`sizes` how many are in use. A hash table of slots finds a key's slot; it follows from the rest and
is built again after every move. A key that is in no space becomes a baby. A cycle sorts two
neighbouring spaces and exchanges the most frequent of the younger for the least frequent of the
older one (the paper's Alg. 1, 2 and 3); teenage and old keys carry their number of partitions.

Baby space is cut to its most frequent keys at each promotion. Between two of them it takes as many
as it has slots for, B; when they are full, the median count is taken from each baby, and those
left with none go. Every time at least half of the slots come free, and at least B/2 medians are
taken off, so N records make no count too low by more than 2N/B in this way, and none is ever too
high. A key that goes for want of a slot and comes back starts again, which is within that bound.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.contents import check_distinct, require
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import borrowing_kernel, kernel
from unskew.grouping.parts.key_widths import WIDTH_MIN
from unskew.grouping.snapshot import Arrays

OLD, TEENAGE, BABY = 0, 1, 2
NEVER = -(2**61)
"""Before every stream time; far enough from the ends of int64 that differences fit."""
TIMES = (NEVER, 2 * -NEVER)
"""Bounds of stream times: the latest that is read, and a cycle's length more."""
_EMPTY = np.int32(-1)


def compute_bounds(expected_keys: int, baby_keys_max: int) -> Int64s:
    """The ends of the three spaces, for the numbers of keys to keep and of babies."""
    elders = expected_keys // 2
    return np.array([0, expected_keys // 10, elders, elders + baby_keys_max], np.int64)


def empty_spaces(bounds: Int64s) -> dict[str, NDArray[Any]]:
    """No key in any space, as named arrays for a grouping's state."""
    elders, slots = bounds[BABY], bounds[BABY + 1]
    return {
        "keys": np.zeros(slots, np.uint64),
        "counts": np.zeros(slots, np.int64),
        "widths": np.full(elders, WIDTH_MIN, np.int32),
        "checked": np.full(elders, NEVER, np.int64),
        "sizes": np.zeros(BABY + 1, np.int64),
    }


def check_spaces(state: Arrays, bounds: Int64s) -> None:
    """Raise a SnapshotError if a state's spaces contradict each other."""
    sizes = state["sizes"]
    require((sizes <= np.diff(bounds)).all(), "sizes", "no more keys than a space has room for")
    require((state["widths"] >= WIDTH_MIN).all(), "widths", f"at least {WIDTH_MIN}")
    used = [np.arange(start, start + size) for start, size in zip(bounds, sizes, strict=False)]
    check_distinct("keys", state["keys"][np.concatenate(used)])


class Spaces(NamedTuple):
    """The three spaces, as a kernel takes them."""

    keys: UInt64s
    """By slot."""
    counts: Int64s
    """By slot: the key's records."""
    widths: Int32s
    """By slot of an old or teenage key: its number of partitions."""
    checked: Int64s
    """Likewise: when its load was last compared with the threshold."""
    sizes: Int64s
    """By space: its keys."""
    bounds: Int64s
    """The ends of the spaces' slots."""
    table: Int32s
    """A hash table from a key to its slot; -1 is empty."""
    salt: np.uint64
    """The salt of the table's hash."""


def choose_table_size(slots: int) -> int:
    """The power of two that leaves the hash table at most half full."""
    return 1 << (2 * slots - 1).bit_length()


@borrowing_kernel
def find(key: np.uint64, spaces: Spaces) -> np.int64:
    """The slot of `key`, -1 if it is in no space."""
    return np.int64(spaces.table[_position(key, spaces)])


@borrowing_kernel
def admit(key: np.uint64, spaces: Spaces) -> np.int64:
    """Make `key`, which is in no space, a baby without a count; its slot."""
    sizes, bounds = spaces.sizes, spaces.bounds
    if sizes[BABY] == bounds[BABY + 1] - bounds[BABY]:
        _thin_out(spaces)
        reindex(spaces)
    slot = bounds[BABY] + sizes[BABY]
    sizes[BABY] += 1
    spaces.table[_position(key, spaces)] = slot
    spaces.keys[slot] = key
    spaces.counts[slot] = 0
    return np.int64(slot)


@borrowing_kernel
def reindex(spaces: Spaces) -> None:
    """Build the hash table from the slots in use."""
    spaces.table[:] = _EMPTY
    for space in range(BABY + 1):
        first = spaces.bounds[space]
        for slot in range(first, first + spaces.sizes[space]):
            spaces.table[_position(spaces.keys[slot], spaces)] = slot


@borrowing_kernel
def run_teenage_cycle(kept: int, spaces: Spaces) -> None:
    """Alg. 1: cut baby space to the `kept` most frequent, promote to teenage space."""
    _sort(BABY, spaces)
    spaces.sizes[BABY] = min(spaces.sizes[BABY], kept)
    _sort(TEENAGE, spaces)
    _promote(BABY, spaces)


@borrowing_kernel
def run_old_cycle(spaces: Spaces) -> None:
    """Alg. 2: promote from teenage to old space."""
    _sort(TEENAGE, spaces)
    _sort(OLD, spaces)
    _promote(TEENAGE, spaces)


@borrowing_kernel
def _position(key: np.uint64, spaces: Spaces) -> np.int64:
    """Find the entry of `key` in the table, or the empty one where it belongs."""
    keys, table = spaces.keys, spaces.table
    last = np.int64(table.size - 1)
    position = np.int64(mix64(key ^ spaces.salt) & np.uint64(last))
    while table[position] >= 0 and keys[table[position]] != key:
        position = (position + 1) & last
    return position


@kernel
def _thin_out(spaces: Spaces) -> None:
    keys, counts = spaces.keys, spaces.counts
    start = spaces.bounds[BABY]
    used = spaces.sizes[BABY]
    median = np.int64(np.median(counts[start : start + used]))
    free = start
    for slot in range(start, start + used):
        if counts[slot] > median:
            keys[free] = keys[slot]
            counts[free] = counts[slot] - median
            free += 1
    spaces.sizes[BABY] = free - start


@kernel
def _sort(space: int, spaces: Spaces) -> None:
    """Most frequent first; equal ones stay in their order."""
    start = spaces.bounds[space]
    end = start + spaces.sizes[space]
    order = np.argsort(-spaces.counts[start:end], kind="mergesort") + start
    spaces.keys[start:end] = spaces.keys[order]
    spaces.counts[start:end] = spaces.counts[order]
    if space != BABY:
        spaces.widths[start:end] = spaces.widths[order]
        spaces.checked[start:end] = spaces.checked[order]


@borrowing_kernel
def _promote(space: int, spaces: Spaces) -> None:
    """Alg. 3, from sorted `space` to the sorted next older one, whose free slots are filled first.

    An exchanged key need not be put at the other space's head or tail: each is sorted before use.
    """
    sizes, bounds = spaces.sizes, spaces.bounds
    older = space - 1
    first = bounds[space]
    last = bounds[older] + sizes[older] - 1
    filled = min(bounds[space] - bounds[older] - sizes[older], sizes[space])
    for i in range(filled):
        _copy(first + i, last + 1 + i, spaces)
    for slot in range(first + filled, first + sizes[space]):
        _copy(slot, slot - filled, spaces)
    sizes[older] += filled
    sizes[space] -= filled
    for i in range(min(sizes[space], last + 1 - bounds[older])):
        if spaces.counts[last - i] > spaces.counts[first + i]:
            break
        _exchange(last - i, first + i, spaces)


@borrowing_kernel
def _copy(source: int, target: int, spaces: Spaces) -> None:
    widths, checked = spaces.widths, spaces.checked
    spaces.keys[target] = spaces.keys[source]
    spaces.counts[target] = spaces.counts[source]
    if target < widths.size:
        widths[target] = widths[source] if source < widths.size else WIDTH_MIN
        checked[target] = checked[source] if source < widths.size else NEVER


@borrowing_kernel
def _exchange(elder: int, younger: int, spaces: Spaces) -> None:
    """A key that falls back to baby space forgets its number of partitions."""
    keys, counts, widths, checked = spaces.keys, spaces.counts, spaces.widths, spaces.checked
    keys[elder], keys[younger] = keys[younger], keys[elder]
    counts[elder], counts[younger] = counts[younger], counts[elder]
    if younger < widths.size:
        widths[elder], widths[younger] = widths[younger], widths[elder]
        checked[elder], checked[younger] = checked[younger], checked[elder]
    else:
        widths[elder] = WIDTH_MIN
        checked[elder] = NEVER
