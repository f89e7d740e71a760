"""Counting Bloom filter: set membership in a few counters, with removal.

A key has `hashes` cells; adding it counts them up, removing it counts them down, and it is in the
set when none is 0. A key that was added always tests as in; one that was not does with a
probability of about `false_positive_rate` while at most `expected_keys` are in, and more beyond.
The size follows Bloom's formulas, hashes = log2(1/rate) and cells = keys x hashes / ln 2, with the
cells rounded up to a power of two: 100 keys at 1 % take 7 hashes and 1,024 cells, 4 kB.

Remove only what was added: a key that merely tests as in would count down other keys' cells, and
those keys would vanish. So the owner of a filter keeps the exact set somewhere and asks that.
Counters of 32 bits cannot overflow with as many keys as fit in memory.

The cells of a key are first + i x step, both from one 64-bit hash (Kirsch and Mitzenmacher).

>>> import numpy as np
>>> hashes, cells = sizes(expected_keys=100, false_positive_rate=0.01)
>>> hashes, cells
(7, 1024)
>>> members = Filter(np.zeros(cells, np.uint32), hashes, salt=np.uint64(1))
>>> key = np.uint64(42)
>>> add(members, key)
>>> contains(members, key)
True
>>> remove(members, key)
>>> contains(members, key)
False

Reference: L. Fan, P. Cao, J. Almeida, A. Broder, "Summary cache: a scalable wide-area web cache
sharing protocol", IEEE/ACM Transactions on Networking 8(3), 2000.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.hashing import mix64, mix64_each
from unskew.grouping.kernels import kernel

_HALF = np.uint64(32)
_ODD = np.uint64(1)


class Filter(NamedTuple):
    """A filter as a kernel takes it."""

    cells: NDArray[np.uint32]
    """Counters, as many as a power of two."""
    hashes: int
    """How many cells a key has."""
    salt: np.uint64
    """Salt of the hash that finds a key's cells."""


def sizes(expected_keys: int, false_positive_rate: float) -> tuple[int, int]:
    """How many hashes, and how many cells (a power of two), keep the rate with this many keys."""
    hashes = max(1, math.ceil(math.log2(1 / false_positive_rate)))
    cells = math.ceil(expected_keys * hashes / math.log(2))
    return hashes, 1 << max(3, (cells - 1).bit_length())


def cells_of(members: Filter, keys: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """The cells of a filter that holds each of these keys once, and nothing else."""
    probes = mix64_each(keys ^ members.salt)
    steps = (probes >> _HALF) | _ODD
    numbers = np.arange(members.hashes, dtype=np.uint64)
    touched = (probes[:, None] + numbers * steps[:, None]) & np.uint64(members.cells.size - 1)
    counts = np.bincount(touched.ravel().astype(np.int64), minlength=members.cells.size)
    return counts.astype(np.uint32)


@kernel
def add(members: Filter, key: np.uint64) -> None:
    """Put `key` in, once more."""
    probe = mix64(key ^ members.salt)
    step = (probe >> _HALF) | _ODD
    last = np.uint64(members.cells.size - 1)
    for _ in range(members.hashes):
        members.cells[probe & last] += np.uint32(1)
        probe += step


@kernel
def remove(members: Filter, key: np.uint64) -> None:
    """Take `key` out, once; it must be in."""
    probe = mix64(key ^ members.salt)
    step = (probe >> _HALF) | _ODD
    last = np.uint64(members.cells.size - 1)
    for _ in range(members.hashes):
        members.cells[probe & last] -= np.uint32(1)
        probe += step


@kernel
def contains(members: Filter, key: np.uint64) -> bool:
    """Is `key` in? Never wrong about one that is; sometimes yes for one that is not."""
    probe = mix64(key ^ members.salt)
    step = (probe >> _HALF) | _ODD
    last = np.uint64(members.cells.size - 1)
    for _ in range(members.hashes):
        if members.cells[probe & last] == 0:
            return False
        probe += step
    return True
