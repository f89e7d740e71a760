"""How much longer the slowest partition works than records and keys explain.

Where records of some keys cost more, some partitions are slower in every batch. Chance makes others
slow in each, so the times are averaged over batches, partition by partition.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unskew.grouping.base import Float64s

_WEIGHT = 0.3
_CHANCE = 0.1
_BUSY_SECONDS_MIN = 0.05


@dataclass(frozen=True)
class Unevenness:
    """How uneven the loads of one way are."""

    ratios: Sequence[float] = ()
    """Time over expected time of each partition, averaged over the last batches."""
    factor: float = 1.0
    """The slowest partition's work over what is expected of the slowest."""

    def seen(self, busy: Float64s, expected: Float64s) -> "Unevenness":
        """Learn from a batch how long its partitions were busy."""
        if busy.max() < _BUSY_SECONDS_MIN or not expected.any():
            return self
        now = np.where(expected > 0, busy / np.maximum(expected, 1e-9), 1.0)
        # A single batch shows chance above all, also the first.
        before = np.asarray(self.ratios) if len(self.ratios) == now.size else np.ones(now.size)
        now = (1 - _WEIGHT) * before + _WEIGHT * now
        factor = float((now * expected).max() / expected.max())
        return Unevenness(now.tolist(), factor if factor < 1.0 else max(1.0, factor - _CHANCE))
