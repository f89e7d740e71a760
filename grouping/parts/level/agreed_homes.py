"""What all sources agree on before a batch: homes that are level, and keys that many may split.

Every source left the counts of its share of the batch before in its state. Whoever adds them up
finds the same sums, and from sums alone follow, without talking:

- *homes*: where hashing gave a partition more than its part, whole keys move to the emptiest, the
  largest first. A key whose home has moved is in one partition as before: it costs no pair;
- *shared keys*: the largest keys, each with a few partitions it may go to, the same in every
  source. A pair of key and partition is paid once, however many sources use it. Of them every
  source fills what the chance of its own share leaves uneven.

How many: sources see their own deviation, of the order of sqrt(share / n) records a partition, and
shared keys carry `MASS_LEAST` to `MASS_MOST` times its mean; they may add `AGREED_PAIRS` of the
keys in pairs, dealt out in proportion to their records. Partitions share them evenly.

Counts are a sample: a key of 100 records had 90 or 110 by chance. So a plan is made for what they
tell of the next batch (`grouping.parts.level.expected`), or homes would be level for the noise of
the batch before.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.level.expected import predict_records
from unskew.grouping.parts.level.levelling import add_home_loads
from unskew.grouping.parts.level.packing import pack
from unskew.grouping.snapshot import Arrays

AGREED_PAIRS = 0.0445
"""Pairs of shared keys beyond one a key, over keys."""
MASS_LEAST = 3.5
MASS_MOST = 8.0
"""Records of shared keys, over what a source's chance leaves in the wrong partition; more than the
least while half of the pairs are left for keys with more than two partitions."""
MEAN_DEVIATION = 0.4
"""The mean excess of a normal variable, (x)+, in standard deviations."""
_ROOM = 1.1
_CHANCE, _OWN_CHANCE = 3.0, 1.5
_NO_TICKS = np.empty(0, np.int64)
_AGE = np.uint64(40)
_TAKEN = np.uint64(2**64 - 1)


class Counted(NamedTuple):
    """The records of each key in one batch, over all sources; keys ascend."""

    keys: UInt64s
    records: Int64s


class Plan(NamedTuple):
    """What sources agree on for a batch."""

    home_keys: UInt64s
    """Keys whose home is not the one of their hash, ascending."""
    home_partitions: Int32s
    shared_keys: UInt64s
    """Keys that are split, fewest records first: what they leave uneven, larger ones can fill."""
    shared_first: Int64s
    """By shared key: its first entry in `shared_partitions`; and their number."""
    shared_partitions: Int32s
    shared_records: Int64s
    """By shared key: its expected records."""
    whole_records: Int64s
    """By partition: records expected of keys that are not shared."""

    @property
    def extra(self) -> int:
        """Pairs beyond one a key, if shared keys go wherever they may."""
        return self.shared_partitions.size - self.shared_keys.size


def add_counts(states: Sequence[Arrays]) -> Counted:
    """The counts of all sources, added up."""
    keys = np.concatenate([state["counted_keys"] for state in states])
    records = np.concatenate([state["counted_records"] for state in states])
    distinct, which = np.unique(keys, return_inverse=True)
    return Counted(distinct, np.bincount(which, records, distinct.size).astype(np.int64))


def count_exact_extra(states: Sequence[Arrays], counted: Counted) -> int:
    """Pairs beyond one a key, had every source been exact on its own."""
    keys, partitions, records = (
        np.concatenate([state[f"exact_{name}"] for state in states])
        for name in ("keys", "partitions", "records")
    )
    pairs = np.unique(np.stack([keys, partitions.astype(np.uint64)]), axis=1).shape[1]
    moved, which = np.unique(keys, return_inverse=True)
    gone = np.bincount(which, records, moved.size)
    at = np.minimum(np.searchsorted(counted.keys, moved), max(counted.keys.size - 1, 0))
    known = counted.keys[at] == moved if counted.keys.size else np.zeros(moved.size, bool)
    # A key of which every source moved every record is not at its home.
    return pairs - int((known & (gone >= counted.records[at])).sum()) if moved.size else 0


class Where(NamedTuple):
    """The partitions a plan is for, and the salts: of homes, of key orders, of shared keys."""

    active: Int32s
    mask: NDArray[np.uint8]
    salts: UInt64s


def make_plan(counted: Counted, before: Arrays, sources: int, where: Where) -> Plan:
    """Shared keys, and level homes for all others, which begin with those of the plan before."""
    expected = predict_records(counted.records)
    orders = hash_each(counted.keys, where.salts[1])
    ranks = np.lexsort((orders, -counted.records))
    sizes = shared_sizes(expected[ranks], where.active.size, sources)
    shared = ranks[: sizes.size]
    whole = expected.copy()
    whole[shared] = 0.0
    homes, moved, loads = level_whole_keys(counted, whole, before, where)
    moved[shared] = False
    # Partitions are dealt out from the largest key on; the list begins with the smallest.
    dealt = np.split(spread(sizes, where.active, where.salts[2]), np.cumsum(sizes)[:-1])
    return Plan(
        counted.keys[moved],
        homes[moved],
        counted.keys[shared[::-1]],
        np.concatenate([[0], np.cumsum(sizes[::-1])]).astype(np.int64),
        np.concatenate(dealt[::-1]).astype(np.int32),
        np.rint(expected[shared[::-1]]).astype(np.int64),
        np.rint(loads).astype(np.int64),
    )


def level_whole_keys(
    counted: Counted, whole: Float64s, before: Arrays, where: Where
) -> tuple[Int32s, NDArray[np.bool_], Float64s]:
    """Level the homes of keys with `whole` records, beginning with those of the plan before.

    Homes, which of them are not those of the hash, and loads.
    """
    hashed = hash_homes(counted, where)
    homes = hashed.copy()
    _keep_homes(counted.keys, before, where.mask, homes)
    classes = -np.floor(2 * np.log2(np.maximum(whole, 1.0)))
    order = np.lexsort((hash_each(counted.keys, where.salts[1]), classes))
    loads = level_homes(order, whole, homes, where.active, where.mask.size)
    return homes, homes != hashed, loads


def pack_homes(counted: Counted, sources: int, where: Where, largest: float) -> Plan | None:
    """Keys in as few partitions as their sizes allow; None if loads may be above `largest`.

    A partition keeps free what chance may add: with a part of a key in b parts, which evens out
    all b of them, `_CHANCE` / sqrt(b) standard deviations of its records in two batches, the one
    that was counted and the one to come. Whole keys have at most 1 - `_OWN_CHANCE` deviations of a
    source's records: or sources that have more of them would be above the others' level, or bring
    them down by pairs of their own, while those that have less are filled up.
    """
    fair = counted.records.sum() / where.active.size
    parts = np.maximum(np.arange(where.active.size + 1), 1)
    spares = np.ceil(_CHANCE * np.sqrt(2 * fair / parts)).astype(np.int64)
    rooms = np.zeros(where.mask.size, np.int64)
    rooms[where.active] = int(largest * fair)
    whole_most = min(
        int(rooms.max() - spares[1]), int(fair - _OWN_CHANCE * (fair * sources) ** 0.5)
    )
    ranks = np.lexsort((counted.keys, -counted.records))
    keys, records = counted.keys[ranks], counted.records[ranks]
    salt, mask, active = where.salts[0], where.mask, where.active
    first, partitions, _ = pack(keys, records, rooms, spares, whole_most, salt, mask, active)
    if first.size == 0:
        return None
    sizes = np.diff(first)
    homes = np.empty(ranks.size, np.int32)
    homes[ranks] = partitions[first[:-1]]
    whole = _expect_seldom(counted.records)
    whole[ranks[sizes > 1]] = 0.0
    loads = np.bincount(homes, whole, mask.size)
    loads[active] += (counted.records == 1).sum() / active.size
    moved = homes != hash_homes(counted, where)
    moved[ranks[sizes > 1]] = False
    # The largest keys are cut; the list begins with the smallest.
    shared = np.flatnonzero(sizes > 1)[::-1]
    dealt = [partitions[first[j] : first[j + 1]] for j in shared]
    return Plan(
        counted.keys[moved],
        homes[moved],
        keys[shared],
        np.concatenate([[0], np.cumsum(sizes[shared])]).astype(np.int64),
        np.concatenate([np.empty(0, np.int32), *dealt]),
        records[shared],
        np.rint(loads).astype(np.int64),
    )


def _expect_seldom(records: Int64s) -> Float64s:
    """The records of each key in the next batch; of those with one each as Good and Turing expect.

    Keys that were not seen have as many records together as there are keys with one.
    """
    expected = records.astype(np.float64)
    ones, twos = (records == 1).sum(), (records == 2).sum()
    expected[records == 1] = min(2 * twos / max(ones, 1), 1.0)
    return expected


def _keep_homes(keys: UInt64s, before: Arrays, mask: NDArray[np.uint8], homes: Int32s) -> None:
    moved, partitions = before["home_keys"], before["home_partitions"]
    if moved.size:
        at = np.minimum(np.searchsorted(moved, keys), moved.size - 1)
        kept = (moved[at] == keys) & (mask[partitions[at]] != 0)
        homes[kept] = partitions[at[kept]]


def hash_homes(counted: Counted, where: Where) -> Int32s:
    """The partition that a hash gives each key."""
    entries = np.stack([counted.keys, counted.records.astype(np.uint64)], axis=1)
    homes = np.empty(counted.keys.size, np.int32)
    loads = np.zeros(where.mask.size, np.int64)
    add_home_loads(
        entries, homes.size, _NO_TICKS, where.salts[0], where.mask, where.active, homes, loads
    )
    return homes


def shared_sizes(expected: Float64s, partitions: int, sources: int) -> Int64s:
    """How many partitions each shared key may go to; `expected` is by key, most records first."""
    total, budget = float(expected.sum()), int(AGREED_PAIRS * expected.size)
    fair = total / partitions
    # What is more than half of a fair share cannot be balanced as a whole.
    large = int((expected > fair / 2).sum())
    deviation = MEAN_DEVIATION * np.sqrt(partitions * sources / total) * total
    above = np.maximum(expected - fair, 0.0).sum()
    wanted = above + deviation * np.array([MASS_LEAST, MASS_MOST])
    least, most = np.searchsorted(np.cumsum(expected), wanted) + 1
    count = min(max(large, min(budget, least), min(budget // 2, most)), expected.size)
    # As many whole keys for each partition: where all are alike, half a key is half a percent.
    count = max(large, count - (count - expected.size) % partitions)
    shared = expected[:count]
    needed = np.minimum(np.maximum(2, np.ceil(_ROOM * shared / fair) + 1), partitions)
    # In proportion to their records, as many as the budget allows.
    low, high = 0.0, partitions / max(float(shared.min(initial=total)), 1.0)
    sizes = needed
    for _ in range(40):
        middle = (low + high) / 2
        tried = np.clip(np.floor(shared * middle), needed, partitions)
        if (tried - 1).sum() <= budget:
            low, sizes = middle, tried
        else:
            high = middle
    whole: Int64s = sizes.astype(np.int64)
    spare = max(budget - int((whole - 1).sum()), 0)
    whole[:spare] += whole[:spare] < partitions
    return whole


@kernel
def hash_each(keys: UInt64s, salt: np.uint64) -> UInt64s:
    """A hash of each key."""
    out = np.empty(keys.size, np.uint64)
    for i in range(keys.size):
        out[i] = mix64(keys[i] ^ salt)
    return out


@kernel
def spread(sizes: Int64s, active: Int32s, salt: np.uint64) -> Int32s:
    """Choose `size` different partitions for each size: the least used first, then by hash.

    A size is at most the number of active partitions.
    """
    used = np.zeros(active.size, np.uint64)
    ranks = np.empty(active.size, np.uint64)
    out = np.empty(sizes.sum(), np.int32)
    end = 0
    for j in range(sizes.size):
        for i in range(active.size):
            hashed = mix64(np.uint64(j * active.size + i) ^ salt)
            ranks[i] = (used[i] << _AGE) | (hashed >> (np.uint64(64) - _AGE))
        for _ in range(sizes[j]):
            best = 0
            for i in range(1, active.size):
                if ranks[i] < ranks[best]:
                    best = i
            ranks[best] = _TAKEN
            used[best] += np.uint64(1)
            out[end] = active[best]
            end += 1
    return out


@kernel
def level_homes(
    order: Int64s, records: Float64s, homes: Int32s, active: Int32s, partitions: int
) -> Float64s:
    """Move whole keys, in this order, from partitions above the mean to the emptiest; the loads.

    A key moves if that brings both partitions nearer to the mean.
    """
    loads = np.zeros(partitions, np.float64)
    for i in range(homes.size):
        loads[homes[i]] += records[i]
    mean = loads.sum() / active.size
    emptiest = active[0]
    for p in active:
        if loads[p] < loads[emptiest]:
            emptiest = p
    for i in order:
        size = records[i]
        surplus = loads[homes[i]] - mean
        if size <= 0.0 or size > 2.0 * surplus or size > 2.0 * (mean - loads[emptiest]):
            continue
        loads[homes[i]] -= size
        loads[emptiest] += size
        homes[i] = emptiest
        for p in active:
            if loads[p] < loads[emptiest]:
                emptiest = p
    return loads
