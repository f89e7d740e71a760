"""How many keys of a batch have how many records: of a sample of hashes, or of the reports."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.simulation.loads import hash_as_spark

_HASHES = 2.0**64


@dataclass(frozen=True)
class KeyCounts:
    """`keys[i]` keys have `records[i]` records each; neither need be a whole number."""

    records: Float64s
    keys: Float64s

    @property
    def distinct(self) -> float:
        """Keys."""
        return float(self.keys.sum())

    def count_pairs(self, partitions: int) -> float:
        """Pairs of a key and a partition, where each record may be in any partition."""
        missed = (1 - 1 / partitions) ** self.records
        return float((self.keys * partitions * (1 - missed)).sum())


@dataclass(frozen=True)
class ReportedKeys:
    """The keys of one partition's report."""

    heavy_hashes: UInt64s
    heavy_records: Int64s
    sample_hashes: UInt64s
    """The smallest hashes, sorted; all of them if there are fewer than `sampled_max`."""
    sample_records: Int32s
    """The records of each."""


def merge_reports(reports: Sequence[ReportedKeys], sampled_max: int) -> KeyCounts:
    """The counts of a whole batch.

    The keys below the largest sampled hash of every full sample are known with all their records,
    and stand for all keys but the heavy ones, each of which is known by itself.
    """
    full = [r.sample_hashes[-1] for r in reports if r.sample_hashes.size >= sampled_max]
    bound = min(full) if full else np.uint64(2**64 - 1)
    sampled = _sum_by_hash([(r.sample_hashes, r.sample_records) for r in reports])
    heavy = _sum_by_hash([(r.heavy_hashes, r.heavy_records) for r in reports])
    is_tail = (sampled[0] <= bound) & ~np.isin(sampled[0], heavy[0])
    tail = sampled[1][is_tail].astype(np.float64)
    weight = _HASHES / (float(bound) + 1.0) if full else 1.0
    counts = np.append(heavy[1].astype(np.float64), tail)
    return KeyCounts(counts, np.append(np.ones(heavy[1].size), np.full(tail.size, weight)))


def count_under_hash(reports: Sequence[ReportedKeys], sampled_max: int, records: Int64s) -> Int64s:
    """The records of each partition under Spark's own hash of the key.

    Heavy keys are placed by it, and all keys where every one was reported; others lie evenly.
    `records` are those of the partitions as they were.
    """
    complete = all(each.sample_hashes.size < sampled_max for each in reports)
    parts = [
        (each.sample_hashes, each.sample_records)
        if complete
        else (each.heavy_hashes, each.heavy_records)
        for each in reports
    ]
    hashes, counts = _sum_by_hash(parts)
    placed = np.zeros(records.size, np.int64)
    np.add.at(placed, hash_as_spark(hashes, records.size), counts)
    return placed + max(0, int(records.sum() - placed.sum())) // records.size


def _sum_by_hash(parts: Sequence[tuple[UInt64s, Int64s | Int32s]]) -> tuple[UInt64s, Int64s]:
    """The distinct hashes, and the records of each over all partitions."""
    if not parts:
        return np.empty(0, np.uint64), np.empty(0, np.int64)
    hashes, at = np.unique(np.concatenate([hashes for hashes, _ in parts]), return_inverse=True)
    sums = np.zeros(hashes.size, np.int64)
    np.add.at(sums, at, np.concatenate([records for _, records in parts]))
    return hashes, sums
