"""Count streams with the sketches and ask them for single keys, as no grouping needs to."""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, UInt64s
from unskew.grouping.hashing import pick
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.sketches import decaying
from unskew.grouping.parts.sketches.decaying import RECORDS
from unskew.grouping.parts.sketches.exact_counts import ExactCounts
from unskew.grouping.parts.sketches.space_saving import Counters, count, find


@kernel
def observe_all(counters: Counters, keys: UInt64s) -> None:
    """Count one record of each of `keys`."""
    for i in range(keys.size):
        count(counters, keys[i])


def bytes_held(counts: ExactCounts) -> int:
    """What the table and its entries take."""
    return counts._table.nbytes + counts.entries.nbytes


def estimate(counters: Counters, key: int) -> float:
    """At least the records of `key`, if it has a counter, else 0."""
    slot = find(counters, np.uint64(key))
    return float(counters.counts[slot]) if slot >= 0 else 0.0


def guaranteed(counters: Counters, key: int) -> float:
    """At most the records of `key`."""
    slot = find(counters, np.uint64(key))
    return float(counters.counts[slot] - counters.errors[slot]) if slot >= 0 else 0.0


@kernel
def observe_decaying(
    counters: Counters, epoch: Float64s, key: np.uint64, epoch_records: int, alpha: float
) -> np.int64:
    """Count one record of `key`, after the decay where an epoch is full; its counter."""
    if epoch[RECORDS] >= epoch_records:
        decaying.decay(counters, epoch, alpha)
    slot, _ = count(counters, key)
    decaying.counted(epoch, counters.counts[slot])
    return slot


def cost(
    records: NDArray[np.float64],
    seconds: NDArray[np.float64],
    salts: UInt64s,
    key: np.uint64,
    unseen: float,
) -> float:
    """The estimate of a Count-Min pair, W / F in the row where F is least, in double precision."""
    columns = [pick(key, salt, records.shape[1]) for salt in salts]
    row = min(range(salts.size), key=lambda row: records[row, columns[row]])
    counted = records[row, columns[row]]
    return float(seconds[row, columns[row]] / counted) if counted > 0 else unseen
