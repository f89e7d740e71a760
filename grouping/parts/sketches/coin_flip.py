"""Coin-flip synopsis: which keys are popular now, from one random number a record.

For every record a coin is tossed until tails. Only a run of more than `r` tosses, one record in
2^r, touches the synopsis: a run of t sets bit t - r - 1 of its key's vector of `l` bits. Long runs
are rare, so a high bit takes many records: a vector is a logarithmic count. A key is *hot* while
at least `zeta` of its bits are set; one lucky record sets one bit only.

After every touch the vectors *decline*: each is shifted right with the probability `p`, by itself,
and one that is empty leaves. So the synopsis follows the present: a key stays while it comes faster
than it declines, at a share of about 2p of the records, and a key that stopped is gone after at
most l shifts.

What it costs: a record needs one 64-bit draw, whose trailing ones are the run of heads, and a
comparison. The decline of m vectors is m Bernoulli trials, but not m draws: the trials of all
touches form one sequence, and only the gaps between its successes are drawn, which are geometric.
That is the same distribution exactly, at an expected p x m shifts a touch, which is below 2. The
gap is found by multiplying powers of 1 - p (no logarithm, whose last bit differs between
machines), so equal seeds give equal routes anywhere.

Memory is bounded by `capacity`: a key that comes when it is full gets no vector, and is counted.
When every record has a new key, m settles at 2/p: one arrives each touch, and a vector whose top
bit is j, a chance of 2^-(j+1), lives for j + 1 shifts of 1/p touches each.

Vectors lie dense in the first slots; an open-addressing table (linear probing, backward-shift
deletion) finds a key's slot. State: 17 bytes a key, and 4 bytes an entry of the table, which has 2
to 4 entries a key.

>>> import numpy as np
>>> state = arrays(capacity=4, p=0.01, seed=np.uint64(1))
>>> synopsis = view(state)
>>> key = np.uint64(42)
>>> touch(synopsis, key, bit=0, zeta=2), touch(synopsis, key, bit=3, zeta=2)
(False, True)
>>> bin(synopsis.bits[0])
'0b1001'

Reference: H. Chen, F. Zhang, H. Jin, "Popularity-aware Differentiated Distributed Stream Processing
on Skewed Streams", ICNP 2017, sections III.B and IV.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.contents import Bounds, check_distinct, check_table, require
from unskew.grouping.hashing import mix64, mix64_each
from unskew.grouping.kernels import kernel

DRAW_STEP = np.uint64(0x9E3779B97F4A7C15)
"""A generator is a counter in steps of this (a Weyl sequence); a draw is its `mix64`."""
SIZE, GAP, TOUCHES, DROPPED = 0, 1, 2, 3
"""Indices of `counts`: vectors held, trials before the next shift, touches, keys without room."""

BOUNDS: Bounds = {"synopsis_table": (-1, 2**31 - 1)}
_GAP_POWERS = 32
_UINT64_ONE = np.uint64(1)
_MANTISSA_SHIFT = np.uint64(11)
_UNIT = 1.0 / (1 << 53)


class Synopsis(NamedTuple):
    """The arrays of one synopsis, as a kernel takes them."""

    keys: UInt64s
    """The key of each slot."""
    bits: UInt64s
    """The vector of each slot, never empty."""
    hot: NDArray[np.uint8]
    """For each slot: does its vector have zeta bits?"""
    table: Int32s
    """A hash table from a key to its slot; -1 is empty."""
    counts: Int64s
    """Size, gap, touches, dropped."""
    decline: UInt64s
    """The generator of the gaps."""


def arrays(
    capacity: int, p: float, seed: np.uint64, prefix: str = "synopsis_"
) -> dict[str, NDArray[Any]]:
    """An empty synopsis of at most `capacity` keys, as named arrays for a grouping's state."""
    made = Synopsis(
        keys=np.zeros(capacity, np.uint64),
        bits=np.zeros(capacity, np.uint64),
        hot=np.zeros(capacity, np.uint8),
        table=np.full(2 << (capacity - 1).bit_length(), -1, np.int32),
        counts=np.zeros(4, np.int64),
        decline=np.array([seed], np.uint64),
    )
    made.counts[GAP] = draw_gap(made.decline, gap_powers(p))
    return {prefix + name: array for name, array in made._asdict().items()}


def view(state: Mapping[str, NDArray[Any]], prefix: str = "synopsis_") -> Synopsis:
    """The synopsis in a state that has the arrays of `arrays` (not a copy)."""
    return Synopsis(*(state[prefix + name] for name in Synopsis._fields))


def check(state: Mapping[str, NDArray[Any]], prefix: str = "synopsis_") -> None:
    """Raise a SnapshotError if the arrays of a synopsis contradict each other."""
    synopsis = view(state, prefix)
    size = int(synopsis.counts[SIZE])
    require(size <= synopsis.keys.size, f"{prefix}counts", "no more vectors than have room")
    require((synopsis.bits[:size] != 0).all(), f"{prefix}bits", "no empty vector")
    check_distinct(f"{prefix}keys", synopsis.keys[:size])
    homes = mix64_each(synopsis.keys[:size]) & np.uint64(synopsis.table.size - 1)
    check_table(f"{prefix}table", synopsis.table, homes.astype(np.int64))


def gap_powers(p: float) -> Float64s:
    """(1 - p)^1, ^2, ^4, ...: the decline rate in the form that `draw_gap` takes."""
    powers = np.empty(_GAP_POWERS)
    powers[0] = 1.0 - p
    for i in range(1, _GAP_POWERS):
        powers[i] = powers[i - 1] * powers[i - 1]
    return powers


@kernel
def draw_gap(decline: UInt64s, powers: Float64s) -> np.int64:
    """How many trials fail before the next success: k with the chance (1 - p)^k p.

    The largest k with (1 - p)^k > u for a uniform u, its binary digits from the top.
    """
    decline[0] += DRAW_STEP
    uniform = np.float64(mix64(decline[0]) >> _MANTISSA_SHIFT) * _UNIT
    power = 1.0
    gap = np.int64(0)
    for i in range(powers.size - 1, -1, -1):
        longer = power * powers[i]
        if longer > uniform:
            power = longer
            gap += np.int64(1) << i
    return gap


@kernel
def trailing_ones(value: np.uint64) -> int:
    """The run of heads in a draw: its ones below the lowest zero."""
    heads = 0
    while value & _UINT64_ONE != 0:
        heads += 1
        value >>= _UINT64_ONE
    return heads


@kernel
def count_ones(value: np.uint64) -> int:
    """How many bits are set."""
    ones = 0
    while value != 0:
        value &= value - _UINT64_ONE
        ones += 1
    return ones


@kernel
def touch(synopsis: Synopsis, key: np.uint64, bit: int, zeta: int) -> bool:
    """Set `bit` of `key`'s vector, inserting it if need be. True when that turned the key hot."""
    counts = synopsis.counts
    counts[TOUCHES] += 1
    entry = _find(synopsis, key)
    slot = np.int64(synopsis.table[entry])
    if slot < 0:
        slot = counts[SIZE]
        if slot == synopsis.keys.size:
            counts[DROPPED] += 1
            return False
        counts[SIZE] += 1
        synopsis.keys[slot] = key
        synopsis.bits[slot] = np.uint64(0)
        synopsis.hot[slot] = np.uint8(0)
        synopsis.table[entry] = np.int32(slot)
    synopsis.bits[slot] |= _UINT64_ONE << np.uint64(bit)
    if synopsis.hot[slot] == 0 and count_ones(synopsis.bits[slot]) >= zeta:
        synopsis.hot[slot] = np.uint8(1)
        return True
    return False


@kernel
def decline_all(synopsis: Synopsis, powers: Float64s, zeta: int, cooled: UInt64s) -> int:
    """One decline: shift each vector with the chance p; how many keys were hot and are not now.

    Those keys are written to `cooled`, which has room for all. Goes from the last slot down,
    so that a slot that is moved to that of an evicted key has had its trial.
    """
    keys, bits, hot = synopsis.keys, synopsis.bits, synopsis.hot
    cold_again = 0
    slot = synopsis.counts[SIZE] - 1 - synopsis.counts[GAP]
    while slot >= 0:
        bits[slot] >>= _UINT64_ONE
        if hot[slot] != 0 and count_ones(bits[slot]) < zeta:
            hot[slot] = np.uint8(0)
            cooled[cold_again] = keys[slot]
            cold_again += 1
        if bits[slot] == 0:
            _evict(synopsis, slot)
        slot -= 1 + draw_gap(synopsis.decline, powers)
    synopsis.counts[GAP] = -1 - slot
    return cold_again


@kernel
def _find(synopsis: Synopsis, key: np.uint64) -> np.int64:
    """The table's entry that holds `key`, or the free one where it would go."""
    keys, table = synopsis.keys, synopsis.table
    last = np.int64(table.size - 1)
    entry = np.int64(mix64(key)) & last
    while table[entry] >= 0 and keys[table[entry]] != key:
        entry = (entry + 1) & last
    return entry


@kernel
def _evict(synopsis: Synopsis, slot: np.int64) -> None:
    """Free `slot`: out of the table, and the last slot is moved to it."""
    keys = synopsis.keys
    _forget(synopsis, _find(synopsis, keys[slot]))
    synopsis.counts[SIZE] -= 1
    tail = synopsis.counts[SIZE]
    if slot != tail:
        synopsis.table[_find(synopsis, keys[tail])] = np.int32(slot)
        keys[slot] = keys[tail]
        synopsis.bits[slot] = synopsis.bits[tail]
        synopsis.hot[slot] = synopsis.hot[tail]


@kernel
def _forget(synopsis: Synopsis, hole: np.int64) -> None:
    """Free an entry and close the gap, so that probing still finds the entries behind it."""
    keys, table = synopsis.keys, synopsis.table
    last = np.int64(table.size - 1)
    entry = (hole + 1) & last
    while table[entry] >= 0:
        home = np.int64(mix64(keys[table[entry]])) & last
        # An entry may fill the hole if its home does not lie between the hole and itself.
        if ((entry - home) & last) >= ((entry - hole) & last):
            table[hole] = table[entry]
            hole = entry
        entry = (entry + 1) & last
    table[hole] = np.int32(-1)
