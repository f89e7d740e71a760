"""What a batch takes under each way to spread its work over partitions: the cost model.

    batch = fixed + records x spread
          + the slowest partition's (records x cost + keys x setup) + pairs x merge

`cost` is an operator's time for a record, `setup` what it costs a task to meet a key, `pairs` the
(key, partition) pairs, each a partial result that the merge takes. `spread` is what the way to the
partition costs a record: reading, decoding, routing, shuffle. The ways are the groupings of the
registry and two that route nothing: `local`, where each partition works on an equal and contiguous
share of what is read, and `none`, Spark's own hash of the key (here ours, which has the same law).

The constants are of sixteen slots on two quiet cores, taken from the three cells of
`benchmarks/results/local.md` whose work is 10 us a record. On its other six cells the model's
median error is 5 %, the greatest 20 %, and each predicted best is within 5 % of the true one (a
test computes them). Elsewhere they are a start: dear work outweighs them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from unskew.grouping.base import Feedback, Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.registry import GROUPINGS, create

LOCAL, HASHED = "local", "none"
WAYS = (HASHED, LOCAL, *GROUPINGS)
_TIMES_A_SECOND = 1_000_000


@dataclass(frozen=True)
class Work:
    """What an operator takes, in seconds."""

    cost: float
    """For a record."""
    setup: float = 0.0
    """For each key that a task meets."""


@dataclass(frozen=True)
class Loads:
    """What each partition gets of one batch."""

    records: Int64s
    keys: Int64s

    @property
    def pairs(self) -> int:
        """Pairs of a key and a partition that has records of it."""
        return int(self.keys.sum())

    def work_seconds(self, work: Work) -> Float64s:
        """How long each partition works."""
        seconds: Float64s = self.records * work.cost + self.keys * work.setup
        return seconds


@dataclass(frozen=True)
class Machine:
    """What a batch costs beside the operator's work."""

    slots: int
    """Partitions that are worked on at once."""
    fixed: float = 0.33
    """Seconds of a batch with next to no records."""
    spread_us: dict[str, float] = field(default_factory=lambda: {LOCAL: 3.1, HASHED: 3.4})
    """Microseconds of a record by way, but for those that are routed."""
    routed_us: float = 4.5
    pair_us: float = 6.0
    """Microseconds of a partial result in the merge."""

    def batch_seconds(self, way: str, loads: Loads, work: Work) -> float:
        """How long a batch takes."""
        partitions = loads.work_seconds(work)
        # More partitions than slots: as if work could be cut, but for the longest of them.
        slowest = max(float(partitions.max()), float(partitions.sum()) / self.slots)
        spread = int(loads.records.sum()) * self.spread_us.get(way, self.routed_us)
        return self.fixed + slowest + (spread + loads.pairs * self.pair_us) / _TIMES_A_SECOND


@dataclass(frozen=True)
class Prediction:
    """A way's batches, on average."""

    way: str
    seconds: float
    slowest: float
    """Seconds that the slowest partition works."""
    max_over_mean: float
    """Records of the fullest partition over the mean."""
    pairs: float


def predict(
    way: str,
    batches: Sequence[UInt64s],
    partitions: int,
    sources: int,
    work: Work,
    machine: Machine,
) -> Prediction:
    """What the batches of these key hashes take under one way."""
    figures = [
        (
            machine.batch_seconds(way, loads, work),
            float(loads.work_seconds(work).max()),
            float(loads.records.max() / loads.records.mean()),
            float(loads.pairs),
        )
        for loads in _spread(way, batches, partitions, sources, work)
    ]
    return Prediction(way, *(sum(column) / len(figures) for column in zip(*figures, strict=True)))


def _spread(
    way: str, batches: Sequence[UInt64s], partitions: int, sources: int, work: Work
) -> Iterator[Loads]:
    if way == LOCAL:
        for keys in batches:
            yield _count(keys, _contiguous_shares(keys.size, partitions), partitions)
        return
    name = "key" if way == HASHED else way
    routers = [
        create(name, partitions=partitions, source=source, sources=sources)
        for source in range(sources)
    ]
    feedback = None
    for number, keys in enumerate(batches):
        chosen = np.empty(keys.size, np.int32)
        for source, router in enumerate(routers):
            router.begin_batch(feedback if router.wants_feedback else None)
            share = np.ascontiguousarray(keys[source::sources])
            times = np.full(share.size, number, np.int64) * _TIMES_A_SECOND
            chunk = (share, times if router.wants_timestamps else None)
            chosen[source::sources] = np.concatenate(list(router.route_chunks([chunk])))
        loads = _count(keys, chosen, partitions)
        feedback = Feedback(loads.records, loads.work_seconds(work))
        yield loads


def _contiguous_shares(records: int, partitions: int) -> Int32s:
    shares: Int32s = (np.arange(records, dtype=np.int64) * partitions // records).astype(np.int32)
    return shares


def _count(keys: UInt64s, chosen: Int32s, partitions: int) -> Loads:
    """Records and distinct keys of each partition."""
    order = np.lexsort((keys, chosen))
    sorted_keys, sorted_parts = keys[order], chosen[order]
    is_first = np.ones(keys.size, np.bool_)
    is_first[1:] = (sorted_keys[1:] != sorted_keys[:-1]) | (sorted_parts[1:] != sorted_parts[:-1])
    return Loads(
        np.bincount(chosen, minlength=partitions).astype(np.int64),
        np.bincount(sorted_parts[is_first], minlength=partitions).astype(np.int64),
    )
