"""Keys packed into partitions: as few cuts as their sizes allow, and no regard for homes.

Keys that keep their homes leave every partition a little above or below its part, and to mend each
costs a pair: n - 1 of them. Packed, a key is cut into as many parts as it must have, `ceil(records
/ capacity)`, its last part is put where it fits, and smaller keys whole around it; there are small
ones enough to fill up to the record. Only a key that fits nowhere is cut once more. So no rule
makes fewer pairs with the same largest load, but for those cuts.

Largest first: each key to the first partition with room for all that is left of it, of those that
its hash draws; else to the emptiest, as much as it takes. So keys of like sizes are packed alike
from batch to batch.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.hashing import pick_active
from unskew.grouping.kernels import kernel

_DRAWS = 32


@kernel
def count_parts(records: np.int64, capacity: np.int64, spares: Int64s) -> int:
    """How many partitions a key needs alone; with b parts it leaves `spares[b]` in each free."""
    parts = 1
    while parts < spares.size - 1 and parts * (capacity - spares[parts]) < records:
        parts += 1
    return parts


@kernel
def _find(
    key: np.uint64,
    records: np.int64,
    free: Int64s,
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
) -> np.int64:
    """A drawn partition with room for all `records`, or the emptiest; around from the first draw.

    Partitions that differ by a record are alike: which of them has one more changes with a batch.
    """
    first = pick_active(key, salt, mask, active)
    p = first
    for draw in range(1, _DRAWS + 1):
        if free[p] >= records:
            return np.int64(p)
        p = pick_active(key + np.uint64(draw), salt, mask, active)
    p = first
    for step in range(1, free.size):
        other = (first + step) % free.size
        if mask[other] != 0 and free[other] > free[p] + (free[p] > 0):
            p = other
    return np.int64(p)


@kernel
def pack(
    keys: UInt64s,
    records: Int64s,
    rooms: Int64s,
    spares: Int64s,
    whole_most: int,
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
) -> tuple[Int64s, Int32s, Int64s]:
    """Put keys, largest first, into `rooms`: each key's first segment, its partitions and records.

    A key in b parts leaves `spares[b]` of each of its partitions free, also of whole keys beside a
    part of it. Those have at most `whole_most` in a partition. Nothing is returned if keys do not
    fit.
    """
    first = np.zeros(keys.size + 1, np.int64)
    partitions = np.empty(keys.size + rooms.size, np.int32)
    given = np.empty(keys.size + rooms.size, np.int64)
    margins = np.full(rooms.size, spares[1], np.int64)
    used, whole = np.zeros(rooms.size, np.int64), np.zeros(rooms.size, np.int64)
    free_to_whole = np.minimum(rooms - margins, whole_most)
    end = 0
    for j in range(keys.size):
        left, parts, free = records[j], 1, free_to_whole
        if left > whole_most:
            parts = count_parts(left, rooms.max(), spares)
            free = rooms - used - np.minimum(margins, spares[parts])
        while left > 0:
            p = _find(keys[j], left, free, salt, mask, active)
            gift = min(left, free[p])
            if gift <= 0:
                return first[:0], partitions[:0], given[:0]
            left -= gift
            free[p] -= gift
            used[p] += gift
            margins[p] = min(margins[p], spares[parts])
            if parts == 1:
                whole[p] += gift
            free_to_whole[p] = min(rooms[p] - used[p] - margins[p], whole_most - whole[p])
            partitions[end], given[end] = p, gift
            end += 1
        first[j + 1] = end
    return first, partitions[:end].copy(), given[:end].copy()
