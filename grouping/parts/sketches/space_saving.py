"""SpaceSaving: the most frequent keys of a stream with a fixed number of counters.

A key that has a counter gets one more. A key without one takes the counter with the least count,
which becomes that least count plus one; the least count is kept as the new key's *error*. So
`count - error <= true count <= count`, the error is at most records / capacity, and every key with
more than records / capacity records has a counter.

The table is open addressing (linear probing, backward-shift deletion) from a key to the number of
its counter plus one, 0 being an empty entry: any 64 bits may be a key. The least count comes from a
*lazy* binary heap: as counts only grow, an entry of the heap may lag behind its counter, so an
increment is one addition and touches no heap; only when a counter must be given away is the root
brought up to date, and sunk, until it is the least. Every increment costs at most one such step
later, O(log capacity), and a key that stays hot costs none. All counters may be multiplied by the
same factor (see `grouping.parts.sketches.decaying`): the order of the heap does not change.

State: 36 bytes a counter and 4 bytes an entry of the table, which has 4 to 8 entries a counter: at
most 68 bytes a counter, fixed when the arrays are made.

Departures: counts are float64, so that they can decay; whole numbers are exact up to 2^53. Among
equal least counts the one on top of the heap goes, where the paper leaves it open.

>>> import numpy as np
>>> state = arrays(capacity=2)
>>> counters = view(state)
>>> for key in np.array([5, 5, 5, 8, 9], np.uint64):
...     slot, is_new = count(counters, key)
>>> counters.keys.tolist(), counters.counts.tolist(), counters.errors.tolist()
([5, 9], [3.0, 2.0], [0.0, 1.0])

Reference: A. Metwally, D. Agrawal, A. El Abbadi, "Efficient computation of frequent and top-k
elements in data streams", ICDT 2005.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.contents import check_distinct, check_table, require
from unskew.grouping.hashing import mix64, mix64_each
from unskew.grouping.kernels import borrowing_kernel

FADED = 1e-100
"""A decayed count below this is 0: denormal numbers are slow."""


class Counters(NamedTuple):
    """The arrays of one SpaceSaving, as a kernel takes them."""

    keys: UInt64s
    """The key of each counter."""
    counts: Float64s
    """The count of each counter: at least its key's records."""
    errors: Float64s
    """For each counter, how much of the count may be another key's."""
    heap: Int32s
    """The counters as a binary heap, least count on top."""
    heap_counts: Float64s
    """For each node of the heap, the count when last read, which is at most the current count."""
    table: Int32s
    """A hash table from a key to its counter plus one; 0 is empty."""
    used: Int64s
    """How many counters have a key: they are the first ones."""


def arrays(capacity: int, prefix: str = "counter_") -> dict[str, NDArray[Any]]:
    """Empty counters, as named arrays for a grouping's state."""
    assert capacity >= 1
    entries = 4 << (capacity - 1).bit_length()
    made = Counters(
        keys=np.zeros(capacity, np.uint64),
        counts=np.zeros(capacity, np.float64),
        errors=np.zeros(capacity, np.float64),
        heap=np.zeros(capacity, np.int32),
        heap_counts=np.zeros(capacity, np.float64),
        table=np.zeros(entries, np.int32),
        used=np.zeros(1, np.int64),
    )
    return {prefix + name: array for name, array in made._asdict().items()}


def view(state: Mapping[str, NDArray[Any]], prefix: str = "counter_") -> Counters:
    """The counters in a state that has the arrays of `arrays` (not a copy)."""
    return Counters(*(state[prefix + name] for name in Counters._fields))


def check(state: Mapping[str, NDArray[Any]], prefix: str = "counter_") -> None:
    """Raise a SnapshotError if the counters in a state contradict each other."""
    counters = view(state, prefix)
    used = int(counters.used[0])
    require(used <= counters.keys.size, f"{prefix}used", "at most all counters")
    counts, errors = counters.counts[:used], counters.errors[:used]
    require(((errors >= 0) & (errors <= counts)).all(), f"{prefix}errors", "from 0 to the count")
    heap, read = counters.heap[:used], counters.heap_counts[:used]
    require(np.array_equal(np.sort(heap), np.arange(used)), f"{prefix}heap", "each counter once")
    parents = (np.arange(1, used) - 1) >> 1
    ordered = (read[parents] <= read[1:]).all() and (read <= counts[heap]).all()
    require(ordered, f"{prefix}heap_counts", "no count above that below it, or above its counter's")
    check_distinct(f"{prefix}keys", counters.keys[:used])
    homes = mix64_each(counters.keys[:used]) & np.uint64(counters.table.size - 1)
    check_table(f"{prefix}table", counters.table.astype(np.int64) - 1, homes.astype(np.int64))


def scale(counters: Counters, factor: float) -> None:
    """Multiply all that was counted by `factor`, at most 1; what has faded away becomes 0."""
    for values in (counters.counts, counters.errors, counters.heap_counts):
        np.multiply(values, factor, out=values)
        values[values < FADED] = 0.0


@borrowing_kernel
def find(counters: Counters, key: np.uint64) -> np.int64:
    """The counter of `key`, or -1."""
    table = counters.table
    mask = table.size - 1
    entry = np.int64(mix64(key)) & mask
    while table[entry] != 0:
        slot = np.int64(table[entry]) - 1
        if counters.keys[slot] == key:
            return slot
        entry = (entry + 1) & mask
    return np.int64(-1)


@borrowing_kernel
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


@borrowing_kernel
def count(counters: Counters, key: np.uint64) -> tuple[np.int64, bool]:
    """Count one record of `key`; its counter, and whether it has just got it."""
    slot = find(counters, key)
    if slot < 0:
        return admit(counters, key), True
    counters.counts[slot] += 1.0
    return slot, False


@borrowing_kernel
def minimum(counters: Counters) -> float:
    """The least count, now on top of the heap; 0 while a counter is unused."""
    if counters.used[0] < counters.keys.size:
        return 0.0
    while True:
        count = counters.counts[counters.heap[0]]
        if counters.heap_counts[0] == count:
            return float(count)
        _sink(counters.heap, counters.heap_counts, counters.keys.size, count)


@borrowing_kernel
def _sink(heap: Int32s, heap_counts: Float64s, size: int, count: float) -> None:
    """The root's count is now `count`: sink it."""
    slot = heap[0]
    node = np.int64(0)
    child = np.int64(1)
    while child < size:
        # Sums, not branches: which child is less cannot be predicted.
        sibling = child + np.int64(child < size - 1)
        child += np.int64(heap_counts[sibling] < heap_counts[child])
        if heap_counts[child] >= count:
            break
        heap[node] = heap[child]
        heap_counts[node] = heap_counts[child]
        node = child
        child = 2 * node + 1
    heap[node] = slot
    heap_counts[node] = count


@borrowing_kernel
def _rise(heap: Int32s, heap_counts: Float64s, slot: np.int64) -> None:
    """Counter `slot` comes in at the heap's end with the count 1."""
    node = slot
    while node > 0:
        parent = (node - 1) >> 1
        if heap_counts[parent] <= 1.0:
            break
        heap[node] = heap[parent]
        heap_counts[node] = heap_counts[parent]
        node = parent
    heap[node] = np.int32(slot)
    heap_counts[node] = 1.0


@borrowing_kernel
def _enter(table: Int32s, key: np.uint64, slot: np.int64) -> None:
    mask = table.size - 1
    entry = np.int64(mix64(key)) & mask
    while table[entry] != 0:
        entry = (entry + 1) & mask
    table[entry] = np.int32(slot + 1)


@borrowing_kernel
def _forget(table: Int32s, keys: UInt64s, key: np.uint64) -> None:
    """Take `key` out of the table; entries behind it that may move up do."""
    mask = table.size - 1
    hole = np.int64(mix64(key)) & mask
    while keys[table[hole] - 1] != key:
        hole = (hole + 1) & mask
    entry = (hole + 1) & mask
    while table[entry] != 0:
        home = np.int64(mix64(keys[table[entry] - 1])) & mask
        # An entry may fill the hole if its home does not lie between the hole and itself.
        if ((entry - home) & mask) >= ((entry - hole) & mask):
            table[hole] = table[entry]
            hole = entry
        entry = (entry + 1) & mask
    table[hole] = 0
