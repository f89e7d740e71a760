"""What each partition gets of a batch under every way to spread records, also without routing.

The ways are the groupings of the registry and two that route nothing: `local`, where each partition
works on an equal and contiguous share of what is read, and `none`, Spark's own hash of the key.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Feedback, Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.simulation.simulate import begin_all

LOCAL, HASHED = "local", "none"
WAYS = (HASHED, LOCAL, *GROUPINGS)
_MICROSECONDS = 1_000_000
_BITMAP_MAX = 1 << 28
_SPARK_SEED = np.uint32(42)


@dataclass(frozen=True)
class Work:
    """What an operator takes."""

    cost: float
    """Seconds for a record."""
    setup: float = 0.0
    """Seconds for each key that a task meets."""
    partial_bytes: float = 0.0
    """Size of a partial result beyond key and count."""
    native: bool = False
    """Does Spark compute it by itself under `none`? It combines before its shuffle then."""


@dataclass(frozen=True)
class Loads:
    """What each partition gets of one batch."""

    records: Int64s
    keys: Int64s
    distinct: float
    """Keys of the whole batch."""

    @property
    def pairs(self) -> int:
        """Pairs of a key and a partition that has records of it."""
        return int(self.keys.sum())

    def work_seconds(self, work: Work) -> Float64s:
        """How long each partition works."""
        seconds: Float64s = self.records * work.cost + self.keys * work.setup
        return seconds


@dataclass(frozen=True)
class KeyBatch:
    """The key hashes of one batch's records, in the order in which they are read."""

    hashes: UInt64s
    numbers: Int64s
    """The number of each record's key, from 0."""
    distinct: int

    @classmethod
    def from_hashes(cls, hashes: UInt64s) -> "KeyBatch":
        """Number the keys of these hashes."""
        distinct, numbers = np.unique(hashes, return_inverse=True)
        return cls(hashes, numbers.astype(np.int64), int(distinct.size))

    def count(self, partition: Int32s, partitions: int) -> Loads:
        """Records and distinct keys of each partition, given the partition of each record."""
        records = np.bincount(partition, minlength=partitions).astype(np.int64)
        pairs = self.numbers * partitions + partition
        if self.distinct * partitions <= _BITMAP_MAX:
            met = np.zeros(self.distinct * partitions, np.bool_)
            met[pairs] = True
            keys = met.reshape(self.distinct, partitions).sum(axis=0, dtype=np.int64)
        else:
            keys = np.bincount(np.unique(pairs) % partitions, minlength=partitions)
        return Loads(records, keys.astype(np.int64), self.distinct)


def spread(
    way: str, batches: Sequence[KeyBatch], partitions: int, sources: int, work: Work
) -> Iterator[Loads]:
    """The loads of each batch in turn; a grouping learns from the batches before."""
    if way == LOCAL or (way == HASHED and work.native):
        for batch in batches:
            yield batch.count(_equal_shares(batch.hashes.size, partitions), partitions)
    elif way == HASHED:
        for batch in batches:
            yield batch.count(hash_as_spark(batch.hashes, partitions), partitions)
    else:
        yield from _route(way, batches, partitions, sources, work)


def _route(
    name: str, batches: Sequence[KeyBatch], partitions: int, sources: int, work: Work
) -> Iterator[Loads]:
    routers = [
        create(name, partitions=partitions, source=source, sources=sources)
        for source in range(sources)
    ]
    feedback = None
    for number, batch in enumerate(batches):
        chosen = np.empty(batch.hashes.size, np.int32)
        begin_all(routers, feedback if routers[0].wants_feedback else None)
        for source, router in enumerate(routers):
            share = np.ascontiguousarray(batch.hashes[source::sources])
            times = np.full(share.size, number, np.int64) * _MICROSECONDS
            chunk = (share, times if router.wants_timestamps else None)
            chosen[source::sources] = np.concatenate(list(router.route_chunks([chunk])))
        loads = batch.count(chosen, partitions)
        feedback = Feedback(loads.records, loads.work_seconds(work))
        yield loads


def hash_as_spark(key_hashes: UInt64s, partitions: int) -> Int32s:
    """The partition to which Spark's `repartition(n, key_hash)` sends a row, by its Murmur3."""
    low = (key_hashes & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    high = (key_hashes >> np.uint64(32)).astype(np.uint32)
    value = _mix(_mix(np.full(key_hashes.size, _SPARK_SEED), low), high) ^ np.uint32(8)
    value = (value ^ (value >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    value = (value ^ (value >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    value ^= value >> np.uint32(16)
    chosen: Int32s = (value.astype(np.int32) % partitions).astype(np.int32)
    return chosen


def _mix(value: NDArray[np.uint32], word: NDArray[np.uint32]) -> NDArray[np.uint32]:
    word = word * np.uint32(0xCC9E2D51)
    word = ((word << np.uint32(15)) | (word >> np.uint32(17))) * np.uint32(0x1B873593)
    value = value ^ word
    value = (value << np.uint32(13)) | (value >> np.uint32(19))
    return value * np.uint32(5) + np.uint32(0xE6546B64)


def _equal_shares(records: int, partitions: int) -> Int32s:
    """Contiguous shares of the records as they are read."""
    shares: Int32s = (np.arange(records, dtype=np.int64) * partitions // records).astype(np.int32)
    return shares
