"""How many candidates a key of `fish` has, algorithm 2, and which a record takes, algorithm 3.

Hot keys' candidates are looked up, on the ring or by hashes, once and kept. Where all active
partitions are candidates, a tree knows the least waiting time. It is not
`grouping.parts.tournament`, because waiting times only grow between resets: this one may lag and
costs nothing for records of other keys (with the other one, `fish` is a third slower).
"""

import math
from typing import NamedTuple

import numpy as np

from unskew.grouping.base import Float64s, Int32s, Int64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import borrowing_kernel
from unskew.grouping.parts.fish import modulo, ring
from unskew.grouping.parts.fish.ring import Ring
from unskew.grouping.parts.sketches.decaying import TOTAL
from unskew.grouping.parts.sketches.space_saving import Counters

_POOL_PER_PARTITION = 32
_POOL_PER_COUNTER = 4


class Rule(NamedTuple):
    """The numbers that steer a kernel."""

    salt: np.uint64
    epoch_records: int
    alpha: float
    threshold: float
    records_min: float
    candidates_min: int
    interval: float
    """The clock's interval, in microseconds or records; 0: the clock stands still."""
    measured: bool
    """Is `served` per interval, rather than per record?"""
    by_frequency: bool
    """Has a hot key candidates by its own frequency, CHK, rather than as many as d_min?"""
    modulo: bool
    """Are candidates hashes modulo the number of partitions, rather than the ring's?"""


class Lists(NamedTuple):
    """Candidates of hot keys, looked up once; built again when the ring changes."""

    starts: Int64s
    lengths: Int64s
    pool: Int32s
    used: Int64s
    marks: Int64s
    active: Int32s
    """The active partitions, the same for every source."""


class Everyone(NamedTuple):
    """The least waiting of all active partitions: a complete binary tree, the root at 1.

    Waiting times only grow between resets, so those in the tree may lag: the winner's is brought up
    to date until it is still the winner.
    """

    partitions: Int32s
    """The active partition of each leaf, in the order in which they win when equal."""
    waits: Float64s
    """For each node, the least waiting time of the leaves below it, when last read."""
    winners: Int32s
    """For each node, the leaf with that waiting time."""


def make_lists(partitions: int, counters: int, active: Int32s) -> Lists:
    """No candidates looked up yet."""
    return Lists(
        starts=np.zeros(counters, np.int64),
        lengths=np.zeros(counters, np.int64),
        pool=np.empty(_POOL_PER_PARTITION * partitions + _POOL_PER_COUNTER * counters, np.int32),
        used=np.zeros(1, np.int64),
        marks=ring.new_marks(partitions),
        active=active,
    )


def new_everyone(order: Int32s) -> Everyone:
    """The active partitions; of those with equal waiting times the first in `order` wins."""
    leaves = 1 << (order.size - 1).bit_length()
    return Everyone(order, np.full(2 * leaves, np.inf), np.zeros(2 * leaves, np.int32))


@borrowing_kernel
def is_hot(recent: float, error: float, epoch: Float64s, rule: Rule) -> bool:
    """Algorithm 2, line 1: f_k > theta; and the key has been seen often enough."""
    return recent > rule.threshold * epoch[TOTAL] and recent - error >= rule.records_min


@borrowing_kernel
def least_candidates(counters: Counters, epoch: Float64s, rule: Rule, n: np.int64) -> int:
    """d_min at an epoch's end: the average hot key's share of the partitions, if not given."""
    if rule.candidates_min > 0:
        return rule.candidates_min
    counts, errors = counters.counts, counters.errors
    mass = 0.0
    keys = 0
    for slot in range(counters.used[0]):
        if is_hot(counts[slot], errors[slot], epoch, rule):
            mass += counts[slot]
            keys += 1
    if keys == 0:
        return 2
    share: float = mass / epoch[TOTAL] / keys
    return max(2, math.ceil(n * share))


@borrowing_kernel
def chk(
    hot: bool,
    top: float,
    recent: float,
    least: np.int64,
    before: Int32s,
    slot: np.int64,
    n: np.int64,
) -> np.int64:
    """Algorithm 2: how many of n partitions are a key's candidates; M_k is in `before[slot]`.

    `top` and `recent` stand for f_top and f_k, `least` for d_min.
    """
    if not hot:
        return np.int64(2)
    # frexp's exponent is floor(log2(top / recent)) + 1.
    index = np.int64(math.frexp(top / recent)[1]) - 1
    candidates = max(n >> index, least, np.int64(before[slot]))
    before[slot] = candidates
    return candidates


@borrowing_kernel
def look_up(
    lists: Lists, slot: np.int64, wanted: np.int64, rule: Rule, nodes: Ring, key: np.uint64
) -> None:
    """Put the first `wanted` candidates of `key` into the pool."""
    if lists.used[0] + wanted > lists.pool.size:
        lists.lengths[:] = 0
        lists.used[0] = 0
    start = lists.used[0]
    out = lists.pool[start : start + wanted]
    if rule.modulo:
        modulo.draw(lists.active, mix64(key ^ rule.salt), lists.marks, out)
    else:
        ring.walk(nodes, ring.position(key, rule.salt), lists.marks, out)
    lists.starts[slot] = start
    lists.lengths[slot] = wanted
    lists.used[0] = start + wanted


@borrowing_kernel
def least_of_two(
    rule: Rule, nodes: Ring, active: Int32s, key: np.uint64, waiting: Float64s
) -> np.int64:
    """Return that of the first two candidates of `key` which waits less."""
    if rule.modulo:
        first, second = modulo.draw_two(active, mix64(key ^ rule.salt))
    else:
        position = ring.position(key, rule.salt)
        node = ring.at(nodes.positions, nodes.firsts, nodes.shift, position)
        first, second = np.int64(nodes.owners[node]), np.int64(nodes.seconds[node])
    return second if waiting[second] < waiting[first] else first


@borrowing_kernel
def find_least(pool: Int32s, start: np.int64, count: np.int64, waiting: Float64s) -> np.int64:
    """The candidate with the shortest waiting time, the first of equals: lines 13-17."""
    chosen = np.int64(pool[start])
    least = waiting[chosen]
    for i in range(start + 1, start + count):
        partition = np.int64(pool[i])
        shorter = waiting[partition] < least
        chosen = partition if shorter else chosen
        least = waiting[partition] if shorter else least
    return chosen


@borrowing_kernel
def set_up(everyone: Everyone, waiting: Float64s) -> None:
    """Play the whole tournament: waiting times may have fallen."""
    partitions, waits, winners = everyone
    leaves = waits.size // 2
    for leaf in range(partitions.size):
        waits[leaves + leaf] = waiting[partitions[leaf]]
        winners[leaves + leaf] = leaf
    for node in range(leaves - 1, 0, -1):
        best = 2 * node + (1 if waits[2 * node + 1] < waits[2 * node] else 0)
        waits[node] = waits[best]
        winners[node] = winners[best]


@borrowing_kernel
def least_of_all(everyone: Everyone, waiting: Float64s) -> np.int64:
    """The active partition with the shortest waiting time, the first of equals."""
    partitions, waits, winners = everyone
    while True:
        leaf = np.int64(winners[1])
        partition = np.int64(partitions[leaf])
        wait = waiting[partition]
        if wait == waits[1]:
            return partition
        node = waits.size // 2 + leaf
        waits[node] = wait
        while node > 1:
            other = node ^ 1
            # The left one of two equals wins.
            loses = waits[other] < wait or (waits[other] == wait and other < node)
            wait = waits[other] if loses else wait
            leaf = np.int64(winners[other]) if loses else leaf
            node >>= 1
            waits[node] = wait
            winners[node] = leaf
