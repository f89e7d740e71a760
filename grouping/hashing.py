"""Seeded hashes: from a key's 64 bits to partitions.

Keys arrive as 64-bit hashes (Spark's `xxhash64`), but may be anything, also 0, 1, 2: every use
mixes them with a salt of its own first. Partitions are picked by the high bits times the number of
partitions, never by a bit mask or a signed remainder. Candidates of a key are picks with the salts
0, 1, 2, ...: independent of each other, and nested, so a cold key's two are the first two of its
hot set. When some partitions are away, a pick that hits one of them is drawn again, and where so
few are active that drawing finds none, the key takes the active one that weighs most for it. So
every key has an order of all partitions, and the first that is active gets it: only the keys of
the partitions that left or came back move.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.kernels import borrowing_kernel, kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xFF51AFD7ED558CCD)
_SECOND = np.uint64(0xC4CEB9FE1A85EC53)
_HALF = np.uint64(33)
_HIGH = np.uint64(32)
_REDRAWS = 64


@kernel
def mix64(value: np.uint64) -> np.uint64:
    """The finaliser of MurmurHash3: a bijection of 64 bits in which every bit moves every bit."""
    value = (value ^ (value >> _HALF)) * _FIRST
    value = (value ^ (value >> _HALF)) * _SECOND
    return value ^ (value >> _HALF)


def mix64_each(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """`mix64` of each, without compiling anything."""
    mix: Any = mix64.function
    mixed: NDArray[np.uint64] = mix(values)
    return mixed


@kernel
def pick(key: np.uint64, salt: np.uint64, partitions: int) -> np.int64:
    """One of `partitions` for `key`: the hash with this salt."""
    return np.int64(((mix64(key ^ salt) >> _HIGH) * np.uint64(partitions)) >> _HIGH)


@borrowing_kernel
def pick_active(
    key: np.uint64, salt: np.uint64, mask: NDArray[np.uint8], active: NDArray[np.int32]
) -> np.int64:
    """Like `pick` over `mask.size` partitions, but drawn again while the partition is away."""
    value = mix64(key ^ salt)
    partitions = np.uint64(mask.size)
    for _ in range(_REDRAWS):
        partition = np.int64(((value >> _HIGH) * partitions) >> _HIGH)
        if mask[partition] != 0:
            return partition
        value = mix64(value + _GOLDEN)
    return heaviest(key, salt, active, np.int64(-1))


@borrowing_kernel
def heaviest(
    key: np.uint64, salt: np.uint64, active: NDArray[np.int32], other_than: np.int64
) -> np.int64:
    """The active partition, but for one, that weighs most for `key`: rendezvous hashing."""
    best = np.int64(-1)
    most = np.uint64(0)
    for i in range(active.size):
        weight = partition_weight(key, salt, active[i])
        if active[i] != other_than and (best < 0 or weight > most):
            best, most = np.int64(active[i]), weight
    return best


@kernel
def partition_weight(key: np.uint64, salt: np.uint64, partition: np.int32) -> np.uint64:
    """Hash `key` with a partition, apart from all draws: the partition's weight for the key."""
    return mix64(mix64(key ^ salt) ^ (np.uint64(partition + 1) * _FIRST))


def hash_partitions(keys: NDArray[np.uint64], partitions: int, seed: int) -> NDArray[np.int32]:
    """The partition of each key by its hash alone, as the grouping `key` chooses it."""
    out = np.empty(keys.size, np.int32)
    pick_each(keys, salts(seed, 1)[0], partitions, out)
    return out


@kernel
def pick_each(
    keys: NDArray[np.uint64], salt: np.uint64, partitions: int, out: NDArray[np.int32]
) -> None:
    """Write the pick of each key into `out`."""
    for i in range(keys.size):
        out[i] = pick(keys[i], salt, partitions)


@kernel
def pick_active_each(
    keys: NDArray[np.uint64],
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: NDArray[np.int32],
    out: NDArray[np.int32],
) -> None:
    """Write the pick of each key into `out` where some partitions may be away."""
    for i in range(keys.size):
        out[i] = pick_active(keys[i], salt, mask, active)


def salts(seed: int, count: int) -> NDArray[np.uint64]:
    """`count` salts for independent hashes; a longer list begins with the shorter."""
    steps = np.arange(1, count + 1, dtype=np.uint64)
    with np.errstate(over="ignore"):
        values = np.uint64(seed & 0xFFFFFFFFFFFFFFFF) + steps * _GOLDEN
    return np.array([mix64(value) for value in values], dtype=np.uint64)
