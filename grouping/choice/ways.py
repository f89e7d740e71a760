"""The ways that `auto` takes, and what each partition would get of a batch under them."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.choice.key_counts import KeyCounts
from unskew.grouping.simulation.loads import HASHED, LOCAL, Loads

LEVEL, LEVEL_SECONDS, KEY = "level", "level_seconds", "key"
WAYS = (LOCAL, LEVEL, LEVEL_SECONDS, KEY, HASHED)
"""They share a checkpoint, `none` where Spark cannot compute the operator itself: it is Spark's own
hash of the key then. `level_seconds` is `level` with `balance: seconds`."""
_CHANCE_DEVIATIONS = 2.0
"""By how many standard deviations of its keys a partition may have more of them than the mean."""


def list_ways(native: bool) -> tuple[str, ...]:
    """The ways among which a job may change; `native`: Spark can compute its operator itself."""
    return tuple(way for way in WAYS if way != HASHED or not native)


@dataclass(frozen=True, kw_only=True)
class MeasuredBatch:
    """A finished batch by its reports; arrays have one entry a partition."""

    way: str
    seconds: float
    records: Int64s
    keys: Int64s
    """Distinct keys of each partition."""
    opened: Int64s
    """Keys whose setup was paid: all of `keys`, unless the operator keeps what it opens."""
    busy_seconds: Float64s
    """With the time of opening."""
    under_key: Int64s
    """Records under the grouping `key`."""
    under_hash: Int64s
    """Records under Spark's own hash of the key."""
    key_counts: KeyCounts
    partial_bytes: float
    """Size of a partial result beyond key and count."""
    slots: int

    @property
    def opened_loads(self) -> Loads:
        """The partitions' records, and the keys whose setup was paid."""
        return Loads(self.records, self.opened, self.key_counts.distinct)

    @property
    def own_loads(self) -> Loads:
        """The partitions' loads as they were."""
        return Loads(self.records, self.keys, self.key_counts.distinct)


def compute_loads_by_way(batch: MeasuredBatch, pairs_ratio: float) -> Mapping[str, Loads]:
    """Compute the partitions' loads under each way, by the model, also under the batch's own.

    `pairs_ratio` corrects the pairs of `local`, which are fewer where the records of a key lie
    together in the source.
    """
    partitions, records = batch.records.size, int(batch.records.sum())
    distinct = batch.key_counts.distinct
    even = _share_evenly(records, partitions)
    at_home = _share_evenly(distinct + partitions - 1, partitions)
    met = max(distinct, batch.key_counts.count_pairs(partitions) * pairs_ratio)
    return {
        LOCAL: Loads(even, _share_evenly(met, partitions), distinct),
        LEVEL: Loads(even, at_home, distinct),
        LEVEL_SECONDS: Loads(even, at_home, distinct),
        KEY: _load_whole_keys(batch.under_key, distinct),
        HASHED: _load_whole_keys(batch.under_hash, distinct),
    }


def _load_whole_keys(records: Int64s, distinct: float) -> Loads:
    return Loads(records, _share_by_records(records, distinct), distinct)


def _share_by_records(records: Int64s, keys: float) -> Int64s:
    """Keys of partitions by a hash of the key: more where more records are, as far as chance goes.

    What is beyond that is the records of heavy keys.
    """
    mean = keys / records.size
    chance = min(1.0, _CHANCE_DEVIATIONS / max(1.0, mean) ** 0.5)
    over_mean = records / max(1.0, float(records.mean()))
    shares = np.clip(over_mean, 1 - chance, 1 + chance)
    bounds = np.rint(np.cumsum(shares) * (keys / max(1e-9, float(shares.sum()))))
    return np.diff(bounds, prepend=0.0).astype(np.int64)


def _share_evenly(total: float, partitions: int) -> Int64s:
    whole = round(total)
    bounds = np.arange(partitions + 1, dtype=np.int64) * whole // partitions
    shares: Int64s = np.diff(bounds)
    return shares
