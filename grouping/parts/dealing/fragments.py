"""Keys dealt to partitions in order of frequency, in fragments: the rule of `prompt`.

`deal` gives each key's first fragment, of at most `cut` records, to the partitions in turn, there
and back. `fit` gives what is left of the frequent keys to partitions where it fits. Partitions are
numbered here among the active ones, from a first one that the caller chooses: *slots*.

>>> counts = np.array([7, 3, 1, 1])
>>> firsts, loads = deal(counts, 3, 2)
>>> firsts.tolist(), loads.tolist()
([0, 1, 1, 0], [4, 4])
>>> starts, slots, records = fit(counts, 3, 6, firsts, loads)
>>> starts.tolist(), slots.tolist(), records.tolist(), loads.tolist()
([0], [0, 0, 1], [3, 2, 2], [6, 6])

Reference: see `prompt`.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s
from unskew.grouping.kernels import kernel

Order = NDArray[np.intp]
"""Slots, those with least room first."""


@kernel
def deal(counts: Int64s, cut: int, slots: int) -> tuple[Int32s, Int64s]:
    """The slot of each key's first fragment, keys given most frequent first; the slots' loads."""
    firsts = np.empty(counts.size, np.int32)
    loads = np.zeros(slots, np.int64)
    slot, step = 0, 1
    for i in range(counts.size):
        firsts[i] = slot
        loads[slot] += min(counts[i], cut)
        if i % slots == slots - 1:
            step = -step
        else:
            slot += step
    return firsts, loads


@kernel
def fit(
    counts: Int64s, cut: int, size: int, firsts: Int32s, loads: Int64s
) -> tuple[Int64s, Int32s, Int64s]:
    """What the leading keys have above `cut`, to slots with room: each bears `size` records.

    A rest goes to the slot of its first fragment if it fits there; else where it fits with the
    least room left; and where it fits nowhere, the slot with most room is filled with a part of it.
    Of each cut key the first of its segments, and the slot and the records of each segment.
    Of equals the lowest slot is taken. `loads` is brought up to date; there must be room for all.
    """
    cuts = np.searchsorted(-counts, -cut)
    starts = np.empty(cuts, np.int64)
    slots = np.empty(2 * cuts + loads.size, np.int32)
    records = np.empty(2 * cuts + loads.size, np.int64)
    order = np.argsort(-loads, kind="mergesort")
    rooms = size - loads[order]
    end = 0
    for i in range(cuts):
        starts[i] = end
        slots[end] = firsts[i]
        records[end] = cut
        rest = counts[i] - cut
        room = size - loads[firsts[i]]
        if rest <= room:
            records[end] += rest
            loads[firsts[i]] += rest
            _shrink(order, rooms, _position(order, rooms, firsts[i], room), rest)
            rest = np.int64(0)
        end += 1
        while rest > 0:
            at = np.searchsorted(rooms, min(rest, rooms[-1]))
            slot, part = order[at], min(rest, rooms[at])
            _shrink(order, rooms, at, part)
            loads[slot] += part
            rest -= part
            if slot == firsts[i]:
                records[starts[i]] += part
            else:
                slots[end] = slot
                records[end] = part
                end += 1
    return starts, slots[:end].copy(), records[:end].copy()


@kernel
def _position(order: Order, rooms: Int64s, slot: np.int32, room: np.int64) -> int:
    """Find the position of `slot`, which has this room, in the order."""
    at = int(np.searchsorted(rooms, room))
    while order[at] != slot:
        at += 1
    return at


@kernel
def _shrink(order: Order, rooms: Int64s, at: int, by: np.int64) -> None:
    """Take `by` from the room of the slot at this position; move it down; equals are in order."""
    slot, room = order[at], rooms[at] - by
    while at > 0 and (rooms[at - 1] > room or (rooms[at - 1] == room and order[at - 1] > slot)):
        order[at] = order[at - 1]
        rooms[at] = rooms[at - 1]
        at -= 1
    order[at] = slot
    rooms[at] = room
