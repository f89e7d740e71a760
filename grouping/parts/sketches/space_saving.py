"""SpaceSaving: the most frequent keys of a stream with a fixed number of counters.

A key that has a counter gets one more. A key without one takes the counter with the least count,
which becomes that least count plus one; the least count is kept as the new key's *error*. So
`count - error <= true count <= count`, the error is at most records / capacity, and every key with
more than records / capacity records has a counter.

The table is open addressing (linear probing, backward-shift deletion) from a key to the number of
its counter plus one, 0 being an empty place: any 64 bits may be a key. The least count comes from a
*lazy* binary heap: as counts only grow, an entry of the heap may lag behind its counter, so an
increment is one addition and touches no heap; only when a counter must be given away is the root
brought up to date, and sunk, until it is the least. Every increment costs at most one such step
later, O(log capacity), and a key that stays hot costs none. All counters may be multiplied by the
same factor (see `grouping.parts.sketches.decaying`): the order of the heap does not change.

State: 36 bytes a counter and 4 bytes a place of the table, which has 4 to 8 places a counter: at
most 68 bytes a counter, fixed when the arrays are made.

Departures: counts are float64, so that they can decay; whole numbers are exact up to 2^53. Among
equal least counts the one on top of the heap goes, where the paper leaves it open.

>>> import numpy as np
>>> state = arrays(capacity=2)
>>> observe_all(view(state), np.array([5, 5, 5, 8, 9], np.uint64))
>>> five, eight, nine = np.array([5, 8, 9], np.uint64)
>>> counters = view(state)
>>> [estimate(counters, key) for key in (five, eight, nine)]
[3.0, 0.0, 2.0]
>>> guaranteed(counters, nine)
1.0

Reference: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k
elements in data streams", ICDT 2005.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import kernel


class Counters(NamedTuple):
    """The arrays of one SpaceSaving, as a kernel takes them."""

    keys: UInt64s
    """By counter: its key."""
    counts: Float64s
    """By counter: at least the key's records."""
    errors: Float64s
    """By counter: how much of the count may be another key's."""
    heap: Int32s
    """The counters as a binary heap, least count on top."""
    heap_counts: Float64s
    """By place in the heap: the count when it was last looked at, at most the count of now."""
    table: Int32s
    """From the hash of a key to its counter plus one; 0 is empty."""
    used: Int64s
    """How many counters have a key: they are the first ones."""


def arrays(capacity: int, prefix: str = "counter_") -> dict[str, NDArray[Any]]:
    """Empty counters, as named arrays for a grouping's state."""
    assert capacity >= 1
    places = 4 << (capacity - 1).bit_length()
    made = Counters(
        keys=np.zeros(capacity, np.uint64),
        counts=np.zeros(capacity, np.float64),
        errors=np.zeros(capacity, np.float64),
        heap=np.zeros(capacity, np.int32),
        heap_counts=np.zeros(capacity, np.float64),
        table=np.zeros(places, np.int32),
        used=np.zeros(1, np.int64),
    )
    return {prefix + name: array for name, array in made._asdict().items()}


def view(state: Mapping[str, NDArray[Any]], prefix: str = "counter_") -> Counters:
    """The counters in a state that has the arrays of `arrays` (not a copy)."""
    return Counters(*(state[prefix + name] for name in Counters._fields))


@kernel
def find(counters: Counters, key: np.uint64) -> np.int64:
    """The counter of `key`, or -1."""
    table = counters.table
    mask = table.size - 1
    place = np.int64(mix64(key)) & mask
    while table[place] != 0:
        slot = np.int64(table[place]) - 1
        if counters.keys[slot] == key:
            return slot
        place = (place + 1) & mask
    return np.int64(-1)


@kernel
def observe(counters: Counters, key: np.uint64) -> np.int64:
    """Count one record of `key`; its counter.

    A hot loop writes these lines out: handing all arrays to one more call costs more than they do.
    """
    slot = find(counters, key)
    if slot < 0:
        slot = admit(counters, key)
    else:
        counters.counts[slot] += 1.0
    return slot


@kernel
def admit(counters: Counters, key: np.uint64) -> np.int64:
    """Give `key`, which has none, a counter: an unused one, else the least one, plus one."""
    slot = np.int64(counters.used[0])
    least = 0.0
    if slot < counters.keys.size:
        counters.used[0] += 1
        # A new entry at the end rises above those with more, with its count of one.
        _rise(counters.heap, counters.heap_counts, slot)
    else:
        least = minimum(counters)
        slot = np.int64(counters.heap[0])
        _forget(counters.table, counters.keys, counters.keys[slot])
        _sink(counters.heap, counters.heap_counts, counters.keys.size, least + 1.0)
    counters.keys[slot] = key
    counters.counts[slot] = least + 1.0
    counters.errors[slot] = least
    _enter(counters.table, key, slot)
    return slot


@kernel
def estimate(counters: Counters, key: np.uint64) -> float:
    """At least the records of `key`, if it has a counter, else 0."""
    slot = find(counters, key)
    return float(counters.counts[slot]) if slot >= 0 else 0.0


@kernel
def guaranteed(counters: Counters, key: np.uint64) -> float:
    """At most the records of `key`."""
    slot = find(counters, key)
    return float(counters.counts[slot] - counters.errors[slot]) if slot >= 0 else 0.0


@kernel
def minimum(counters: Counters) -> float:
    """The least count, now on top of the heap; 0 while a counter is unused."""
    if counters.used[0] < counters.keys.size:
        return 0.0
    while True:
        count = counters.counts[counters.heap[0]]
        if counters.heap_counts[0] == count:
            return float(count)
        _sink(counters.heap, counters.heap_counts, counters.keys.size, count)


@kernel
def observe_all(counters: Counters, keys: UInt64s) -> None:
    """Count one record of each of `keys`."""
    for i in range(keys.size):
        slot = find(counters, keys[i])
        if slot < 0:
            admit(counters, keys[i])
        else:
            counters.counts[slot] += 1.0


@kernel
def _sink(heap: Int32s, heap_counts: Float64s, size: int, count: float) -> None:
    """The root's count is now `count`: move it down to its place."""
    slot = heap[0]
    place = np.int64(0)
    child = np.int64(1)
    while child < size:
        # Sums, not branches: which child is less cannot be predicted.
        sibling = child + np.int64(child < size - 1)
        child += np.int64(heap_counts[sibling] < heap_counts[child])
        if heap_counts[child] >= count:
            break
        heap[place] = heap[child]
        heap_counts[place] = heap_counts[child]
        place = child
        child = 2 * place + 1
    heap[place] = slot
    heap_counts[place] = count


@kernel
def _rise(heap: Int32s, heap_counts: Float64s, slot: np.int64) -> None:
    """Counter `slot` comes in at the heap's end with the count 1."""
    place = slot
    while place > 0:
        parent = (place - 1) >> 1
        if heap_counts[parent] <= 1.0:
            break
        heap[place] = heap[parent]
        heap_counts[place] = heap_counts[parent]
        place = parent
    heap[place] = np.int32(slot)
    heap_counts[place] = 1.0


@kernel
def _enter(table: Int32s, key: np.uint64, slot: np.int64) -> None:
    mask = table.size - 1
    place = np.int64(mix64(key)) & mask
    while table[place] != 0:
        place = (place + 1) & mask
    table[place] = np.int32(slot + 1)


@kernel
def _forget(table: Int32s, keys: UInt64s, key: np.uint64) -> None:
    """Take `key` out of the table; entries behind it that may move up do."""
    mask = table.size - 1
    hole = np.int64(mix64(key)) & mask
    while keys[table[hole] - 1] != key:
        hole = (hole + 1) & mask
    place = (hole + 1) & mask
    while table[place] != 0:
        home = np.int64(mix64(keys[table[place] - 1])) & mask
        # An entry may fill the hole if its home does not lie between the hole and itself.
        if ((place - home) & mask) >= ((place - hole) & mask):
            table[hole] = table[place]
            hole = place
        place = (place + 1) & mask
    table[hole] = 0
