"""One share made level: exactly, from the keys' homes by hash, packed, or as the sources agreed.

`level_exactly` is `level` without a memory. `level_packed` gives homes up, for the share of a lone
source. `level_as_agreed` begins with the homes of the plan, fills partitions with the plan's shared
keys, and moves what is then still above a source's part by more than its slack, as `level_exactly`
does, to where there is room.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.parts.level.agreed_homes import Plan
from unskew.grouping.parts.level.drift import compute_deviations, has_departed
from unskew.grouping.parts.level.levelling import (
    add_home_loads,
    choose,
    give,
    move_surplus,
    targets,
)
from unskew.grouping.parts.level.packing import pack
from unskew.grouping.parts.level.shared_keys import fill_shared
from unskew.grouping.parts.level.size_sums import compute_unit
from unskew.grouping.parts.sketches.exact_counts import ExactCounts

PAIRS_MAX = 1.05
"""Pairs a key up to which homes are not given up for fewer."""
_SLACK = 0.02


class Partitions(NamedTuple):
    """Where records may go, and how fast each partition is."""

    mask: NDArray[np.uint8]
    active: Int32s
    speeds: Float64s
    salts: UInt64s
    """Salts of homes, of where to look for room, of the order of keys."""


class Share(NamedTuple):
    """A piece of a share, counted."""

    counts: ExactCounts
    ticks: Int64s
    """A record's work, for each key; empty: all alike."""
    homes: Int32s
    """The partition of each key by hash."""
    base: Int64s
    """The work of each partition before this piece."""
    loads: Int64s
    """The work of each partition with all keys of this piece at home."""
    squares: Float64s | None = None
    """Of each key, where sizes are balanced: the squares of its records' sizes."""
    whole: NDArray[np.bool_] | None = None
    """Is a key to stay in one partition, whatever that has? None: no key is."""

    @property
    def records(self) -> Int64s:
        """The records of each key."""
        return self.counts.counts.astype(np.int64)


class Levelled(NamedTuple):
    """Where the records of each key go."""

    codes: Int32s
    """The partition of each key, or -1 - j for the j-th giver."""
    givers: Int32s
    """Numbers of the keys that have segments."""
    cursors: Int64s
    """The first segment of each giver."""
    segment_partitions: Int32s
    segment_records: Int64s
    loads: Int64s
    """The work of each partition with this piece."""

    @property
    def extra(self) -> int:
        """Pairs more than keys, of this piece alone."""
        return self.segment_partitions.size - self.givers.size

    def owners(self) -> Int32s:
        """List the number of the key of each segment."""
        lengths = np.diff(self.cursors, append=self.segment_partitions.size)
        owners: Int32s = np.repeat(self.givers, lengths)
        return owners


def count_share(
    counts: ExactCounts,
    ticks: Int64s,
    base: Int64s,
    where: Partitions,
    squares: Float64s | None = None,
) -> Share:
    """The homes of the counted keys, and the loads if all records went there."""
    homes, loads = np.empty(len(counts), np.int32), base.copy()
    add_home_loads(
        counts.entries, len(counts), ticks, where.salts[0], where.mask, where.active, homes, loads
    )
    return Share(counts, ticks, homes, base, loads, squares)


def level_exactly(share: Share, where: Partitions, source: int, sources: int) -> Levelled:
    """No partition above its part, rounded up; nothing moves where none is.

    Keys that stay whole stay at home, so a partition has more where they alone do.
    """
    loads, codes = share.loads.copy(), share.homes.copy()
    wanted = np.zeros(loads.size, np.int64)
    unit = share.ticks.size == 0 and bool((where.speeds == 1.0).all())
    speeds, active = where.speeds, where.active
    if not targets(share.base, loads, speeds, active, source, sources, unit, wanted):
        return _at_home(codes, loads)
    active_only = where.mask != 0
    surplus = np.where(active_only, np.maximum(loads - wanted, 0), 0)
    rooms = np.where(active_only, np.maximum(wanted - loads, 0), 0)
    return _move(share, where, codes, loads, surplus, rooms)


def level_packed(
    share: Share, where: Partitions, exact: Levelled, slack: float | None
) -> Levelled | None:
    """No partition above its part, rounded up, and keys in as few partitions as that needs.

    Where that makes more than `PAIRS_MAX` pairs a key, no partition above its part by more than
    `slack`. None if `exact`, with homes, makes as few, or neither does; or after another piece.
    """
    records, size = share.records, where.active.size
    most = (PAIRS_MAX - 1.0) * records.size
    if exact.extra <= most or share.base.any():
        return None
    rooms = np.zeros(where.mask.size, np.int64)
    fair, one_more = divmod(int(records.sum()), size)
    rooms[where.active] = fair
    rooms[where.active[:one_more]] += 1
    packed = _pack(share, where, rooms)
    if packed.extra > most:
        allowed = (1.0 + (_SLACK if slack is None else slack)) * records.sum() / size
        rooms[where.active] = max(int(allowed), int(rooms.max()))
        packed = _pack(share, where, rooms)
    return packed if packed.extra <= most else None


def _pack(share: Share, where: Partitions, rooms: Int64s) -> Levelled:
    keys, records = share.counts.keys, share.records
    order = np.lexsort((keys, -records))
    spares = np.zeros(where.active.size + 1, np.int64)
    salt, mask, active = where.salts[0], where.mask, where.active
    first, partitions, given = pack(
        keys[order], records[order], rooms, spares, int(rooms.max()), salt, mask, active
    )
    parts = np.diff(first)
    codes = np.empty(keys.size, np.int32)
    codes[order] = partitions[first[:-1]]
    moved = (parts > 1) | (codes[order] != share.homes[order])
    givers, lengths = order[moved].astype(np.int32), parts[moved]
    cut = np.flatnonzero(lengths > 1)
    codes[givers[cut]] = -1 - cut
    loads = share.base + np.bincount(partitions, given, share.base.size).astype(np.int64)
    of_moved = np.repeat(moved, parts)
    cursors = np.cumsum(lengths) - lengths
    return Levelled(codes, givers, cursors, partitions[of_moved], given[of_moved], loads)


def _at_home(codes: Int32s, loads: Int64s) -> Levelled:
    numbers, longs = np.empty(0, np.int32), np.empty(0, np.int64)
    return Levelled(codes, numbers, longs, numbers, longs, loads)


def _move(
    share: Share, where: Partitions, codes: Int32s, loads: Int64s, surplus: Int64s, rooms: Int64s
) -> Levelled:
    """Move what is above; keys that stay whole stay out of it."""
    if share.whole is None:
        return _move_largest(share, where, codes, loads, surplus, rooms)
    kept, size = codes[share.whole], loads.size
    # At no partition, so `choose` does not meet them.
    codes[share.whole] = size
    movable = np.bincount(codes, share.records, size + 1).astype(np.int64)[:size]
    surplus = np.append(np.minimum(surplus[:size], movable), 0)
    levelled = _at_home(codes, loads)
    if surplus.any():
        levelled = _move_largest(share, where, codes, loads, surplus, rooms)
    levelled.codes[share.whole] = kept
    return levelled


def _move_largest(
    share: Share, where: Partitions, codes: Int32s, loads: Int64s, surplus: Int64s, rooms: Int64s
) -> Levelled:
    """The largest keys give, the smallest gifts are moved first.

    Keys whose code is no partition of `surplus` stay out of it.
    """
    entries, ticks = share.counts.entries, share.ticks
    _, start, salt = where.salts
    chosen, works, orders = choose(entries, codes.size, ticks, codes, surplus, salt)
    chosen = chosen[np.lexsort((~orders, -works))]
    givers, gifts, powers, orders = give(entries, ticks, codes, surplus, chosen, salt)
    first = np.lexsort((~orders, powers))
    givers, gifts = givers[first], gifts[first]
    cursors, partitions, records = move_surplus(
        entries, ticks, givers, gifts, rooms, start, where.mask, where.active, codes, loads
    )
    return Levelled(codes, givers, cursors, partitions, records, loads)


def level_as_agreed(
    share: Share,
    plan: Plan,
    where: Partitions,
    source: int,
    sources: int,
    slack: float | None,
    unit: int = 1,
) -> Levelled | None:
    """Level a share by the plan, no partition above its part by more than `slack` or by chance.

    `unit`: how many of what the share counts are one of what the plan expects.

    None if that cannot be, or if the share departs from what the plan expects by more than chance.
    """
    codes, records = share.homes.copy(), share.records
    assign_known(share.counts, plan.home_keys, plan.home_partitions, codes)
    shared = share.counts.find(plan.shared_keys)
    whole = records.copy()
    whole[shared[shared >= 0]] = 0
    loads = np.bincount(codes, whole, share.base.size).astype(np.int64)
    sizes = np.where(shared >= 0, records[shared], 0)
    coarser = _compare_units(share, shared[shared >= 0], unit)
    if _departs(loads[where.active] // unit, sizes // unit, plan, where, sources, coarser):
        return None
    loads += share.base
    given = fill_shared(sizes, plan.shared_first, plan.shared_partitions, source, loads)
    chance = compute_deviations(int(records.sum()) // unit, where.active.size)
    fair = loads.sum() / where.active.size
    most, likely = np.ceil(fair * (1.0 + np.array([chance if slack is None else slack, chance])))
    # Shared keys are at no partition, so `choose` does not meet them.
    codes[shared[shared >= 0]] = share.base.size
    rest = _give_up_excess(share, where, codes, loads, int(most), int(likely))
    # Nothing else brings those down that whole keys alone lift.
    if share.whole is None and rest.loads.max() > most:
        return None
    return _with_shared(rest, shared, given, plan)


def assign_known(counts: ExactCounts, keys: UInt64s, values: Int32s, out: Int32s) -> None:
    """Put the value of each key that was counted into `out`, which is by number."""
    numbers = counts.find(keys)
    out[numbers[numbers >= 0]] = values[numbers >= 0]


def _compare_units(share: Share, shared: Int64s, unit: int) -> float:
    """How many times as far as all keys chance takes shared ones: the largest have large records.

    By the share's own records, so that an unexpected large one shows in the sums alone.
    """
    if share.squares is None:
        return 1.0
    total, squares = float(share.records[shared].sum()), float(share.squares[shared].sum())
    return max(1.0, compute_unit(total, squares) / unit)


def _departs(
    whole: Int64s,
    shared: Int64s,
    plan: Plan,
    where: Partitions,
    sources: int,
    coarser: float,
) -> bool:
    """Do partitions, shared keys, or the sums of either have other records than was expected?"""
    expected = plan.whole_records[where.active], plan.shared_records
    sums = np.array([whole.sum(), shared.sum()])
    totals = np.array([expected[0].sum(), expected[1].sum()])
    part = int(sums.sum()) / max(int(totals.sum()), 1)
    return any(
        has_departed(seen / size, before * (part / size), sources)
        for seen, before, size in zip(
            (whole, shared, sums), (*expected, totals), (1.0, coarser, 1.0), strict=True
        )
    )


def _give_up_excess(
    share: Share, where: Partitions, codes: Int32s, loads: Int64s, most: int, likely: int
) -> Levelled:
    """What is above `most` moves, and of a partition above `likely` all that is above its part."""
    fair = -(-int(loads.sum()) // where.active.size)
    above = np.where(loads > likely, loads - fair, loads - most)
    surplus = np.append(np.maximum(above, 0), 0)
    if not surplus.any():
        return _at_home(codes, loads)
    rooms = np.where(where.mask != 0, np.maximum(fair - loads, 0), 0)
    return _move(share, where, codes, loads, surplus, rooms)


def _with_shared(rest: Levelled, shared: Int64s, given: Int64s, plan: Plan) -> Levelled:
    """The segments of shared keys after those of `rest`."""
    used = given > 0
    owners = np.repeat(np.arange(shared.size), np.diff(plan.shared_first))[used]
    present, cursors = np.unique(owners, return_index=True)
    codes = rest.codes
    codes[shared[present]] = -1 - rest.givers.size - np.arange(present.size)
    return Levelled(
        codes,
        np.concatenate([rest.givers, shared[present]]).astype(np.int32),
        np.concatenate([rest.cursors, cursors + rest.segment_records.size]).astype(np.int64),
        np.concatenate([rest.segment_partitions, plan.shared_partitions[used]]),
        np.concatenate([rest.segment_records, given[used]]),
        rest.loads,
    )
