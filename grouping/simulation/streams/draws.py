"""Draws that are a function of a salt and a record's number, so that chunks change nothing."""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int64s, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import kernel

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
_ROUNDS = 4
_TO_UNIT = 2.0**-53


def integral(ends: Float64s, z: float) -> float:
    """The integral of x ** -z between two ends."""
    low, high = np.log(ends) if z == 1 else ends ** (1 - z) / (1 - z)
    return float(high - low)


def exact_counts(weights: Float64s, records: int) -> Int64s:
    """Up to which record, counted by rank, each rank goes: every count is its part, rounded."""
    upto: Int64s = np.rint(np.cumsum(weights) * (records / weights.sum())).astype(np.int64)
    return upto


def uniform(start: int, stop: int, salt: np.uint64) -> Float64s:
    out = np.empty(stop - start)
    draw_uniform(start, salt, out)
    return out


@kernel
def hash_numbers(numbers: Int64s, salt: np.uint64, out: UInt64s) -> None:
    for i in range(out.size):
        out[i] = mix64(np.uint64(numbers[i]) + salt)


@kernel
def draw_uniform(start: int, salt: np.uint64, out: Float64s) -> None:
    for i in range(out.size):
        value = mix64(salt + np.uint64(start + i) * _GOLDEN)
        out[i] = np.float64(value >> np.uint64(11)) * _TO_UNIT


@kernel
def draw(
    start: int, salt: np.uint64, thresholds: UInt64s, aliases: NDArray[np.int32], out: Int64s
) -> None:
    size = np.uint64(thresholds.size)
    for i in range(out.size):
        value = mix64(salt + np.uint64(start + i) * _GOLDEN)
        column = np.int64(((value >> _HIGH) * size) >> _HIGH)
        out[i] = column if (value & _LOW) < thresholds[column] else aliases[column]


@kernel
def build_alias(weights: Float64s, thresholds: UInt64s, aliases: NDArray[np.int32]) -> None:
    # Vose: every small weight is filled up by one large one. `weights` has the mean 1.
    small = np.empty(weights.size, np.int64)
    large = np.empty(weights.size, np.int64)
    smalls = 0
    larges = 0
    for i in range(weights.size):
        if weights[i] < 1.0:
            small[smalls] = i
            smalls += 1
        else:
            large[larges] = i
            larges += 1
    while smalls > 0 and larges > 0:
        smalls -= 1
        less = small[smalls]
        more = large[larges - 1]
        thresholds[less] = np.uint64(weights[less] * 4294967296.0)
        aliases[less] = more
        weights[more] -= 1.0 - weights[less]
        if weights[more] < 1.0:
            larges -= 1
            small[smalls] = more
            smalls += 1
    for i in range(smalls):
        thresholds[small[i]] = np.uint64(4294967296)
        aliases[small[i]] = small[i]
    for i in range(larges):
        thresholds[large[i]] = np.uint64(4294967296)
        aliases[large[i]] = large[i]


@kernel
def _unit(salt: np.uint64, number: int) -> float:
    """A number from 0 to below 1 for a record or a rank."""
    return float(mix64(salt + np.uint64(number) * _GOLDEN) >> np.uint64(11)) * _TO_UNIT


@kernel
def draw_tail(start: int, salt: np.uint64, ranks: int, keys: int, z: float, out: Int64s) -> None:
    """Replace each `ranks` in `out` by a rank from there on, by the continuous law."""
    first, last = ranks + 0.5, keys + 0.5
    for i in range(out.size):
        if out[i] == ranks:
            part = _unit(salt, start + i)
            if z == 1.0:
                rank = first * (last / first) ** part
            else:
                low, high = first ** (1.0 - z), last ** (1.0 - z)
                rank = (low + part * (high - low)) ** (1.0 / (1.0 - z))
            out[i] = np.int64(min(rank + 0.5, float(keys))) - 1


@kernel
def replace_numbers(
    start: int, salt: np.uint64, keys: int, turnover: float, life: int, numbers: Int64s
) -> None:
    """Replace the numbers of ranks whose key changes by that of the key they have by now."""
    for i in range(numbers.size):
        rank = numbers[i]
        chance = _unit(salt, rank)
        if chance < turnover:
            # What is left of the chance says when in its life the first key began.
            begun = np.int64(chance / turnover * life)
            numbers[i] = rank + keys * ((start + i + begun) // life)


@kernel
def permute(start: int, size: int, salt: np.uint64, out: Int64s) -> None:
    """A permutation of the numbers below `size`: a Feistel network, walked until within them."""
    half = np.uint64(1)
    while np.uint64(1) << (half + half) < np.uint64(size):
        half += np.uint64(1)
    mask = (np.uint64(1) << half) - np.uint64(1)
    for i in range(out.size):
        value = np.uint64(start + i)
        while True:
            left, right = value >> half, value & mask
            for turn in range(_ROUNDS):
                mixed = mix64(right + salt * np.uint64(2 * turn + 1)) & mask
                left, right = right, left ^ mixed
            value = (left << half) | right
            if value < np.uint64(size):
                break
        out[i] = np.int64(value)
