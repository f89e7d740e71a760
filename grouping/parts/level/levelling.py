"""The levelling rule itself: from exact counts and homes to the moves that make loads fair.

Everything here is in units of work: a record's work is its key's entry in `ticks`, or 1 where
`ticks` is empty. `targets` gives each partition its capacity, `choose` finds the largest keys of
the partitions above it, and `move_surplus` moves their surplus to partitions below. Each step uses
up a surplus, a room or a key, which is what bounds the extra pairs. A donor keeps what is less
than one record of its last key, and a receiver takes whole records while it has any room: so work
ends within one record of its target, and for unit work exactly on it.

Orders depend on counts and hashes only, never on the order of records.

Reference: R. McNaughton, Scheduling with deadlines and loss functions, Management Science, 1959.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.hashing import mix64, pick, pick_active
from unskew.grouping.kernels import kernel

Entries = NDArray[np.uint64]
_EXPONENTS = 64
_PARTS = 32
_PART_SHIFT = np.uint64(57)
_TOP = np.uint64(62)
_DRAWS = np.uint64(32)


@kernel
def log2(value: np.int64) -> int:
    """The floor of the binary logarithm of a positive number."""
    result = 0
    for step in (32, 16, 8, 4, 2, 1):
        if value >> step:
            value >>= step
            result += step
    return result


@kernel
def add_home_loads(
    entries: Entries,
    known: int,
    ticks: Int64s,
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
    homes: Int32s,
    loads: Int64s,
) -> None:
    """Each key's home, and the work at home added to `loads`."""
    everywhere = active.size == mask.size
    for i in range(known):
        key = entries[i, 0]
        home = pick(key, salt, mask.size) if everywhere else pick_active(key, salt, mask, active)
        homes[i] = home
        work = np.int64(entries[i, 1])
        if ticks.size:
            work *= ticks[i]
        loads[home] += work


@kernel
def _fair(work: np.int64, speed: float, speeds: float) -> np.int64:
    return np.int64(np.floor(np.float64(work) * speed / speeds))


@kernel
def _close_full(
    base: Int64s, work: np.int64, speeds: Float64s, active: Int32s, closed: NDArray[np.uint8]
) -> tuple[np.int64, float]:
    """Mark partitions already above their share; the work and the speed of the others."""
    speed = 0.0
    for p in active:
        speed += speeds[p]
    while True:
        before_work, before_speed = work, speed
        for p in active:
            if not closed[p] and base[p] > _fair(before_work, speeds[p], before_speed):
                closed[p] = 1
                work -= base[p]
                speed -= speeds[p]
        if work == before_work and speed == before_speed:
            return work, speed


@kernel
def targets(
    base: Int64s,
    loads: Int64s,
    speeds: Float64s,
    active: Int32s,
    source: int,
    sources: int,
    unit: bool,
    out: Int64s,
) -> bool:
    """The capacity of each partition into `out`; false if nothing is above it.

    `base` is the work before this piece, `loads` with this piece all at home. What remains of
    equal whole shares goes to partitions in turn, beginning with one that differs by source, so
    that the sources' remainders add up evenly. A source that is alone first gives it to partitions
    that hold exactly one more than a share, so that they need not move it.
    """
    work = np.int64(0)
    for p in active:
        work += loads[p]
    ceiling = -(-work // active.size)
    closed = np.zeros(base.size, np.uint8)
    start = (source * (work % active.size)) % active.size
    work, speed = _close_full(base, work, speeds, active, closed)
    rest = work
    for p in active:
        out[p] = base[p] if closed[p] else _fair(work, speeds[p], speed)
        if not closed[p]:
            rest -= out[p]
    if unit and sources == 1 and rest > 0:
        for p in active:
            if not closed[p] and loads[p] == out[p] + 1:
                out[p] += 1
                closed[p] = 1
                rest -= 1
    step = 0
    while rest > 0:
        p = active[(start + step) % active.size]
        if not closed[p]:
            out[p] += 1
            rest -= 1
        step += 1
    above = False
    for p in active:
        above |= loads[p] > (ceiling if unit else out[p])
    return above


@kernel
def _work(entries: Entries, ticks: Int64s, i: int) -> np.int64:
    work = np.int64(entries[i, 1])
    if ticks.size:
        work *= ticks[i]
    return work


@kernel
def _part(work: np.int64, exponent: int, order: np.uint64) -> np.int64:
    """Which 32nd of its power of two `work` is in; the hash decides below the last bit."""
    free = _TOP - np.uint64(exponent)
    return (
        np.int64(((np.uint64(work) << free) | (order >> (np.uint64(64) - free))) >> _PART_SHIFT)
        & 31
    )


@kernel
def _lowest(sums: NDArray[np.int64], need: Int64s, low: Int64s) -> None:
    """How far down each row of `sums` reaches `need`; `need` is left with what is above taken."""
    for p in range(need.size):
        low[p] = sums.shape[1]
        if need[p] > 0:
            low[p] -= 1
            while low[p] > 0 and sums[p, low[p]] < need[p]:
                need[p] -= sums[p, low[p]]
                low[p] -= 1


@kernel
def choose(
    entries: Entries,
    known: int,
    ticks: Int64s,
    homes: Int32s,
    surplus: Int64s,
    salt: np.uint64,
) -> tuple[Int32s, Int64s, UInt64s]:
    """The largest keys of each partition with a surplus, at least enough for it, in no order.

    Of each its number, its work, and the hash that decides between equals. Sums by power of two,
    then by 32nd of the last one needed, find the border without a sort of all keys.
    """
    need = surplus.copy()
    ranks = np.full(known, -1, np.int8)
    exponents = np.zeros((need.size, _EXPONENTS), np.int64)
    for i in range(known):
        if surplus[homes[i]] > 0:
            work = _work(entries, ticks, i)
            ranks[i] = log2(work)
            exponents[homes[i], ranks[i]] += work
    low = np.empty(need.size, np.int64)
    _lowest(exponents, need, low)
    parts = np.zeros((need.size, _PARTS), np.int64)
    for i in range(known):
        p = homes[i]
        if ranks[i] < low[p]:
            ranks[i] = -1
        elif ranks[i] > low[p]:
            ranks[i] = _PARTS
        else:
            work = _work(entries, ticks, i)
            ranks[i] = _part(work, ranks[i], mix64(entries[i, 0] ^ salt))
            parts[p, ranks[i]] += work
    low_part = np.empty(need.size, np.int64)
    _lowest(parts, need, low_part)
    count = 0
    for i in range(known):
        count += ranks[i] >= low_part[homes[i]]
    chosen = np.empty(count, np.int32)
    works = np.empty(count, np.int64)
    orders = np.empty(count, np.uint64)
    count = 0
    for i in range(known):
        if ranks[i] >= low_part[homes[i]]:
            chosen[count] = i
            works[count] = _work(entries, ticks, i)
            orders[count] = mix64(entries[i, 0] ^ salt)
            count += 1
    return chosen, works, orders


@kernel
def give(
    entries: Entries,
    ticks: Int64s,
    homes: Int32s,
    surplus: Int64s,
    chosen: Int32s,
    salt: np.uint64,
) -> tuple[Int32s, Int64s, Int64s, UInt64s]:
    """Which of the chosen keys, largest first, give how many records; `surplus` is used up.

    Of each giver also the power of two of its gift's work and the hash that decides in the same
    power: the order in which gifts are moved.
    """
    givers = np.empty(chosen.size, np.int32)
    gifts = np.empty(chosen.size, np.int64)
    powers = np.empty(chosen.size, np.int64)
    orders = np.empty(chosen.size, np.uint64)
    count = 0
    for i in chosen:
        p = homes[i]
        tick = ticks[i] if ticks.size else np.int64(1)
        records = np.int64(entries[i, 1])
        gift = min(records, surplus[p] // tick)
        # What is left is less than a record of this key: a smaller key's would cost one more pair.
        surplus[p] = surplus[p] - gift * tick if gift == records else 0
        if gift > 0:
            givers[count] = i
            gifts[count] = gift
            powers[count] = log2(gift * tick)
            orders[count] = mix64(entries[i, 0] ^ salt)
            count += 1
    return givers[:count], gifts[:count], powers[:count], orders[:count]


@kernel
def _find_room(
    key: np.uint64,
    rooms: Int64s,
    nexts: Int32s,
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
) -> np.int64:
    """A partition with room: the first that the key draws, or else the next one around.

    `nexts` is by partition where to look next; it skips what is full, as paths are halved.
    """
    p = pick_active(key, salt, mask, active)
    draw = np.uint64(0)
    while rooms[p] <= 0 and draw < _DRAWS:
        draw += np.uint64(1)
        p = pick_active(key + draw, salt, mask, active)
    while rooms[p] <= 0:
        nexts[p] = nexts[nexts[p]] if rooms[nexts[p]] <= 0 else nexts[p]
        p = np.int64(nexts[p])
    return p


@kernel
def move_surplus(
    entries: Entries,
    ticks: Int64s,
    givers: Int32s,
    moved: Int64s,
    rooms: Int64s,
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
    codes: Int32s,
    loads: Int64s,
) -> tuple[Int64s, Int32s, Int64s]:
    """Move gifts to partitions with room; where records go, into `codes`, by key.

    A code is a partition, or -1 - j: then segments `cursors[j]`, `cursors[j] + 1`, ... say which
    partition gets how many records, home first. `rooms` and `loads` are brought up to date.
    """
    nexts = np.roll(np.arange(mask.size), -1).astype(np.int32)
    size = 2 * givers.size + mask.size
    cursors = np.empty(givers.size, np.int64)
    segment_partitions = np.empty(size, np.int32)
    segment_records = np.empty(size, np.int64)
    end = 0
    for j in range(givers.size):
        i = givers[j]
        tick = ticks[i] if ticks.size else np.int64(1)
        home = codes[i]
        cursors[j] = end
        stay = np.int64(entries[i, 1]) - moved[j]
        if stay > 0:
            segment_partitions[end] = home
            segment_records[end] = stay
            end += 1
        left = moved[j]
        loads[home] -= left * tick
        while left > 0:
            p = _find_room(entries[i, 0], rooms, nexts, salt, mask, active)
            records = min(left, -(-rooms[p] // tick))
            rooms[p] -= records * tick
            loads[p] += records * tick
            left -= records
            segment_partitions[end] = p
            segment_records[end] = records
            end += 1
        codes[i] = segment_partitions[end - 1] if end == cursors[j] + 1 else -1 - j
    return cursors, segment_partitions[:end].copy(), segment_records[:end].copy()


@kernel
def assign(
    numbers: Int32s,
    codes: Int32s,
    cursors: Int64s,
    segment_partitions: Int32s,
    segment_records: Int64s,
    out: Int32s,
) -> None:
    """Each record's partition by its key's code; a split key's segments in order."""
    for r in range(numbers.size):
        code = codes[numbers[r]]
        if code < 0:
            j = -1 - code
            segment = cursors[j]
            code = segment_partitions[segment]
            segment_records[segment] -= 1
            if segment_records[segment] == 0:
                cursors[j] = segment + 1
        out[r] = code
