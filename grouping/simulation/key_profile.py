"""What is skewed in a sample of keys: the heaviest, the head, and how both change over time."""

from dataclasses import dataclass

import numpy as np

from unskew.grouping.base import Float64s, Int64s, UInt64s
from unskew.grouping.simulation.reports import head_of

HEAVIEST = 10
_DRIFT_KEYS = 100


@dataclass(frozen=True)
class HeavyKey:
    """A key with many records."""

    hash: int
    records: int
    share: float
    first: int
    """The number of its first record."""


@dataclass(frozen=True)
class KeyProfile:
    """The keys of a sample."""

    records: int
    keys: int
    heaviest: tuple[HeavyKey, ...]
    head_keys: int
    """Keys with at least a fifth of a partition's fair share."""
    head_share: float
    """Their part of the records."""
    drift: float
    """The share of records that, between the halves of the sample, moved from some of the heaviest
    keys to others or to the rest."""


def profile_keys(hashes: UInt64s, partitions: int) -> KeyProfile:
    """The profile of keys in the order of time."""
    distinct, first, numbers, counts = np.unique(
        hashes, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.lexsort((distinct, -counts))
    heaviest = tuple(
        HeavyKey(
            int(distinct[key]), int(counts[key]), float(counts[key] / hashes.size), int(first[key])
        )
        for key in order[:HEAVIEST]
    )
    head = head_of(counts.astype(np.int64), partitions, hashes.size)
    drift = _measure_drift(numbers, order[:_DRIFT_KEYS], distinct.size)
    share = float(head.sum() / hashes.size)
    return KeyProfile(hashes.size, distinct.size, heaviest, head.size, share, drift)


def _measure_drift(numbers: Int64s, heavy: Int64s, keys: int) -> float:
    """Half the sum of differences of shares, of heavy keys and all others as one.

    Less what chance alone makes of halves of this size: of few records, every share differs.
    """
    middle = numbers.size // 2
    shares = [_share(half, heavy, keys) for half in (numbers[:middle], numbers[middle:])]
    moved = float(np.abs(shares[0] - shares[1]).sum() / 2)
    mean = (shares[0] + shares[1]) / 2
    # The mean absolute difference of two binomial shares is near 2 sqrt(p (1 - p) / (pi m)).
    chance = float(np.sqrt(4 * mean * (1 - mean) / (np.pi * middle)).sum() / 2)
    return max(0.0, moved - chance)


def _share(numbers: Int64s, heavy: Int64s, keys: int) -> Float64s:
    counts = np.bincount(numbers, minlength=keys)[heavy]
    rest = numbers.size - counts.sum()
    shares: Float64s = np.append(counts, rest) / numbers.size
    return shares
