"""The consistent-hash ring: which partitions a key may go to while partitions come and go.

The ring has 2^32 positions. Every partition owns `virtual_nodes` of them, by a hash of its number
and the node's; a key has one, by its own hash. Its candidates are the owners met clockwise from
there, each counted once, so a short list of candidates begins every longer one. A partition that
leaves takes only its own nodes away: a key keeps its candidates but for the one that left, and the
next on the ring comes in at the end. One that comes back brings exactly these nodes back.

A lookup does not search: `firsts` says for the high bits of a position where its nodes begin, and
each node knows the next owner that differs from its own, so two candidates cost about one step.

Memory: 12 bytes a node and 4 bytes an entry of the index (up to two entries a node), so at most 20
bytes a node; it is built again from the active partitions and is never part of a snapshot.

Departures: two nodes at one position lie in the order of their partitions; the hash is ours
(`grouping.hashing`), where the paper uses 32 bits of SHA-1.

>>> nodes = packed_nodes(np.uint64(1), partitions=4, virtual_nodes=16)
>>> ring = make_ring(nodes, active=np.ones(4, np.uint8))
>>> start = position(np.uint64(99), np.uint64(2))
>>> out = np.empty(4, np.int32)
>>> walk(ring, start, new_marks(4), out), out.tolist()
(4, [2, 3, 1, 0])
>>> node = at(ring.positions, ring.firsts, ring.shift, start)
>>> ring.owners[node].item(), ring.seconds[node].item()
(2, 3)

Reference: D. Karger et al., "Consistent hashing and random trees", STOC 1997; virtual nodes as in
I. Stoica et al., "Chord", IEEE/ACM Transactions on Networking 2003.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.kernels import borrowing_kernel, kernel

POSITION_BITS = 32
_HIGH = np.uint64(32)


class Ring(NamedTuple):
    """The nodes of the active partitions in the order of their positions."""

    positions: NDArray[np.uint32]
    """The position of each node."""
    owners: Int32s
    """The partition of each node."""
    seconds: Int32s
    """For each node, the next other partition clockwise (its own, if there is no other)."""
    firsts: Int32s
    """For the high bits of a position, the first node that is not before such positions."""
    shift: np.int64
    """How many low bits of a position the index leaves out."""


def packed_nodes(salt: np.uint64, partitions: int, virtual_nodes: int) -> UInt64s:
    """All nodes in order, each as position * 2^32 + partition."""
    nodes = np.empty(partitions * virtual_nodes, np.uint64)
    _pack_nodes(salt, virtual_nodes, nodes)
    nodes.sort()
    return nodes


def make_ring(nodes: UInt64s, active: NDArray[np.uint8]) -> Ring:
    """The ring of those nodes whose partition is active."""
    owners = (nodes & np.uint64(0xFFFFFFFF)).astype(np.int32)
    kept = active[owners] != 0
    owners = owners[kept]
    positions = (nodes[kept] >> _HIGH).astype(np.uint32)
    bits = min(max(int(owners.size).bit_length(), 1), 24)
    shift = POSITION_BITS - bits
    starts = np.arange(1 << bits, dtype=np.uint64) << np.uint64(shift)
    firsts = np.searchsorted(positions, starts.astype(np.uint32)).astype(np.int32)
    seconds = np.empty(owners.size, np.int32)
    _find_seconds(owners, seconds)
    return Ring(positions, owners, seconds, firsts, np.int64(shift))


def new_marks(partitions: int) -> Int64s:
    """What `walk` remembers partitions met with; the last entry numbers the walks."""
    return np.zeros(partitions + 1, np.int64)


@kernel
def position(key: np.uint64, salt: np.uint64) -> np.int64:
    """Where `key` is on the ring."""
    return np.int64(mix64(key ^ salt) >> _HIGH)


@borrowing_kernel
def at(positions: NDArray[np.uint32], firsts: Int32s, shift: np.int64, start: np.int64) -> np.int64:
    """The first node at position `start` or clockwise of it."""
    node = np.int64(firsts[start >> shift])
    while node < positions.size and np.int64(positions[node]) < start:
        node += 1
    return node if node < positions.size else np.int64(0)


@borrowing_kernel
def walk(ring: Ring, start: np.int64, marks: Int64s, out: Int32s) -> int:
    """Fill `out` with the next distinct partitions clockwise of `start`; how many there were."""
    marks[-1] += 1
    number = marks[-1]
    node = at(ring.positions, ring.firsts, ring.shift, start)
    count = 0
    for _ in range(ring.owners.size):
        if count == out.size:
            break
        owner = ring.owners[node]
        if marks[owner] != number:
            marks[owner] = number
            out[count] = owner
            count += 1
        node += 1
        if node == ring.owners.size:
            node = np.int64(0)
    return count


@kernel
def _pack_nodes(salt: np.uint64, virtual_nodes: int, nodes: UInt64s) -> None:
    for node in range(nodes.size):
        partition = np.uint64(node // virtual_nodes)
        number = np.uint64(node % virtual_nodes)
        value = mix64(((partition << _HIGH) | number) ^ salt)
        nodes[node] = ((value >> _HIGH) << _HIGH) | partition


@kernel
def _find_seconds(owners: Int32s, seconds: Int32s) -> None:
    size = owners.size
    seconds[:] = owners
    # Backwards and twice round, as the answer of the last node may lie behind the first ones.
    for step in range(2 * size - 1, -1, -1):
        node = step % size
        after = (step + 1) % size
        seconds[node] = seconds[after] if owners[after] == owners[node] else owners[after]
