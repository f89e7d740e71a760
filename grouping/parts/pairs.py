"""How many distinct keys and (key, partition) pairs there are: exact, by open addressing.

Every key gets a number. Its first partition is kept beside it, so only keys that were split cost
an entry in the set of further pairs: memory follows the keys and the splits, not the records.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import kernel

ENTRIES_MAX = 2**28
_START = 2**12
_UINT64_ONE = np.uint64(1)


class PairCounter:
    """Counts the records of every key, and the partitions each key was sent to."""

    def __init__(self, partitions: int, entries_max: int = ENTRIES_MAX) -> None:
        self._partitions = partitions
        self._entries_max = entries_max
        self._sizes = np.zeros(2, np.int64)
        self._slots = np.zeros(2 * _START, np.int32)
        self._hashes = np.zeros(_START, np.uint64)
        self._counts = np.zeros(_START, np.int64)
        self._first = np.zeros(_START, np.int32)
        self._further = np.zeros(2 * _START, np.uint64)

    @property
    def keys(self) -> int:
        """Distinct keys so far."""
        return int(self._sizes[0])

    @property
    def pairs(self) -> int:
        """Distinct (key, partition) pairs so far."""
        return int(self._sizes.sum())

    @property
    def counts(self) -> Int64s:
        """The records of each key, by its number."""
        return self._counts[: self.keys]

    def hashes(self, numbers: NDArray[np.int64]) -> UInt64s:
        """The keys with these numbers."""
        return self._hashes[numbers]

    def count(self, keys: UInt64s, routes: Int32s) -> Int32s:
        """Take note of records; the number of the key of each."""
        numbers = np.empty(keys.size, np.int32)
        done = 0
        while True:
            done = _count(
                keys,
                routes,
                done,
                self._slots,
                self._hashes,
                self._counts,
                self._first,
                self._further,
                self._sizes,
                self._partitions,
                numbers,
            )
            if done == keys.size:
                return numbers
            self._grow()

    def _grow(self) -> None:
        if 2 * int(self._sizes[0]) >= self._slots.size:
            self._check(2 * self._slots.size)
            size = self._slots.size
            for name in ("_hashes", "_counts", "_first"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros(size - old.size, old.dtype)]))
            self._slots = np.zeros(2 * size, np.int32)
            _number_again(self._hashes, self.keys, self._slots)
        if 2 * int(self._sizes[1]) >= self._further.size:
            self._check(2 * self._further.size)
            old_further = self._further
            self._further = np.zeros(2 * old_further.size, np.uint64)
            _insert_again(old_further, self._further)

    def _check(self, entries: int) -> None:
        if entries > self._entries_max:
            raise GroupingError(
                f"trace: more than {self._entries_max // 4} distinct keys or split pairs cannot be"
                " counted exactly; take fewer keys or records"
            )


@kernel
def _count(
    keys: UInt64s,
    routes: Int32s,
    start: int,
    slots: Int32s,
    hashes: UInt64s,
    counts: Int64s,
    first: Int32s,
    further: UInt64s,
    sizes: Int64s,
    partitions: int,
    numbers: Int32s,
) -> int:
    slot_mask = np.uint64(slots.size - 1)
    further_mask = np.uint64(further.size - 1)
    for i in range(start, keys.size):
        if 2 * sizes[0] >= slots.size or 2 * sizes[1] >= further.size:
            return i
        key = keys[i]
        route = routes[i]
        slot = mix64(key) & slot_mask
        while slots[slot] != 0 and hashes[slots[slot] - 1] != key:
            slot = (slot + _UINT64_ONE) & slot_mask
        if slots[slot] == 0:
            number = sizes[0]
            sizes[0] += 1
            slots[slot] = number + 1
            hashes[number] = key
            first[number] = route
        else:
            number = np.int64(slots[slot] - 1)
        numbers[i] = number
        counts[number] += 1
        if first[number] != route:
            entry = np.uint64(number * partitions + route + 1)
            probe = mix64(entry) & further_mask
            while further[probe] != 0 and further[probe] != entry:
                probe = (probe + _UINT64_ONE) & further_mask
            if further[probe] == 0:
                further[probe] = entry
                sizes[1] += 1
    return keys.size


@kernel
def _number_again(hashes: UInt64s, count: int, slots: Int32s) -> None:
    mask = np.uint64(slots.size - 1)
    for number in range(count):
        slot = mix64(hashes[number]) & mask
        while slots[slot] != 0:
            slot = (slot + _UINT64_ONE) & mask
        slots[slot] = number + 1


@kernel
def _insert_again(old: UInt64s, new: UInt64s) -> None:
    mask = np.uint64(new.size - 1)
    for entry in old:
        if entry != 0:
            probe = mix64(entry) & mask
            while new[probe] != 0:
                probe = (probe + _UINT64_ONE) & mask
            new[probe] = entry
