"""Exact counts of keys: a hash table that also says where each record's key is.

Distinct keys are numbered in the order of their first record, and stay in that order in a dense
array of (key, count). An open-addressing table of words finds the number: the upper half of a
word is the upper half of the key's hash (a tag that spares most looks at other keys), the lower
half is the number plus one, so that a word of 0 is free and every 64-bit key can be held, 0 too.
The number of each record's key is handed back: later passes over the records need no hashing.

Guarantees: counts are exact. Costs: one hash and about 1.3 probes a record. Bound: 16 bytes a
distinct key and 8 bytes a word, with 2 to 4 words a key; so at most 96 bytes a distinct key while
it grows, whatever the number of records.

Departures: none, this is the textbook table; linear probing, at most half full, doubled when it
is. Keys are hashed with a salt, so that no stream of keys is slow for every seed.

>>> import numpy as np
>>> counts = ExactCounts(np.uint64(1))
>>> counts.count(np.array([7, 0, 7], np.uint64)).tolist()
[0, 1, 0]
>>> counts.keys.tolist(), counts.counts.tolist()
([7, 0], [2, 1])

Reference: D. Knuth, The Art of Computer Programming, vol. 3, section 6.4.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import kernel

WORDS_MIN = 1 << 10
WORDS_START_MAX = 1 << 15
_TAG = np.uint64(0xFFFFFFFF00000000)
_NUMBER = np.uint64(0x00000000FFFFFFFF)
_UINT64_ONE = np.uint64(1)
_FREE = np.uint64(0)
_SHRINK = 16
_BLOCK = 64


class ExactCounts:
    """How many records each key has, for as many distinct keys as there are."""

    def __init__(self, salt: np.uint64) -> None:
        self._salt = salt
        self._used = np.zeros(1, np.int64)
        self._make(WORDS_MIN)

    def _make(self, words: int) -> None:
        self._table = np.zeros(words, np.uint64)
        self.entries: NDArray[np.uint64] = np.empty((words // 2, 2), np.uint64)

    def __len__(self) -> int:
        return int(self._used[0])

    @property
    def keys(self) -> UInt64s:
        """The distinct keys by number."""
        return self.entries[: len(self), 0]

    @property
    def counts(self) -> UInt64s:
        """The records of each key by number."""
        return self.entries[: len(self), 1]

    def count(self, keys: UInt64s) -> Int32s:
        """Count `keys`; the number of each record's key."""
        numbers = np.empty(keys.size, np.int32)
        # A new table grows through all sizes: start where that is still cheap.
        wanted = min(WORDS_START_MAX, 1 << keys.size.bit_length())
        if len(self) == 0 and self._table.size < wanted:
            self._make(wanted)
        done = 0
        while True:
            done = count_keys(
                keys, done, self._salt, self._table, self.entries, self._used, numbers
            )
            if done == keys.size:
                return numbers
            self._grow()

    def find(self, keys: UInt64s) -> Int64s:
        """The number of each of `keys`, -1 for one that was not counted."""
        numbers = np.empty(keys.size, np.int64)
        find_keys(keys, self._salt, self._table, self.entries, numbers)
        return numbers

    def clear(self) -> None:
        """Forget all keys, keep about as much room as they took."""
        if self._table.size > WORDS_MIN and self._table.size > _SHRINK * len(self):
            self._make(self._table.size // 2)
        else:
            self._table[:] = 0
        self._used[0] = 0

    def _grow(self) -> None:
        old = self.entries
        self._make(2 * self._table.size)
        self.entries[: len(self)] = old[: len(self)]
        insert_keys(self.entries, len(self), self._salt, self._table)


@kernel
def count_keys(
    keys: UInt64s,
    start: int,
    salt: np.uint64,
    table: UInt64s,
    entries: NDArray[np.uint64],
    used: Int64s,
    numbers: Int32s,
) -> int:
    """Count from record `start`; the record at which the table must grow, or `keys.size`."""
    mask = np.uint64(table.size - 1)
    known = used[0]
    values = np.empty(_BLOCK, np.uint64)
    words = np.empty(_BLOCK, np.uint64)
    guesses = np.empty(_BLOCK, np.uint64)
    for first in range(start, keys.size, _BLOCK):
        size = min(_BLOCK, keys.size - first)
        # Three short loops without branches let the memory fetch many records' words at a time.
        for j in range(size):
            values[j] = mix64(keys[first + j] ^ salt)
            words[j] = table[values[j] & mask]
        for j in range(size):
            guesses[j] = entries[(words[j] & _NUMBER) - np.uint64(words[j] != _FREE), 0]
        for j in range(size):
            i = first + j
            key = keys[i]
            if words[j] != _FREE and guesses[j] == key:
                number = (words[j] & _NUMBER) - _UINT64_ONE
                entries[number, 1] += _UINT64_ONE
                numbers[i] = np.int32(number)
                continue
            tag = values[j] & _TAG
            slot = values[j] & mask
            while True:
                word = table[slot]
                if word == _FREE:
                    if known == entries.shape[0]:
                        used[0] = known
                        return i
                    entries[known, 0] = key
                    entries[known, 1] = _UINT64_ONE
                    numbers[i] = known
                    known += 1
                    table[slot] = tag | np.uint64(known)
                    break
                if (word & _TAG) == tag:
                    number = (word & _NUMBER) - _UINT64_ONE
                    if entries[number, 0] == key:
                        entries[number, 1] += _UINT64_ONE
                        numbers[i] = np.int32(number)
                        break
                slot = (slot + _UINT64_ONE) & mask
    used[0] = known
    return keys.size


@kernel
def insert_keys(entries: NDArray[np.uint64], known: int, salt: np.uint64, table: UInt64s) -> None:
    """Fill an empty `table` with the first `known` entries."""
    mask = np.uint64(table.size - 1)
    for number in range(known):
        value = mix64(entries[number, 0] ^ salt)
        slot = value & mask
        while table[slot] != _FREE:
            slot = (slot + _UINT64_ONE) & mask
        table[slot] = (value & _TAG) | np.uint64(number + 1)


@kernel
def find_keys(
    keys: UInt64s,
    salt: np.uint64,
    table: UInt64s,
    entries: NDArray[np.uint64],
    numbers: Int64s,
) -> None:
    """Look up `keys` without counting them."""
    mask = np.uint64(table.size - 1)
    for i in range(keys.size):
        value = mix64(keys[i] ^ salt)
        slot = value & mask
        numbers[i] = -1
        while table[slot] != _FREE:
            number = (table[slot] & _NUMBER) - _UINT64_ONE
            if (table[slot] & _TAG) == (value & _TAG) and entries[number, 0] == keys[i]:
                numbers[i] = np.int64(number)
                break
            slot = (slot + _UINT64_ONE) & mask
