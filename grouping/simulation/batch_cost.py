"""What a batch takes under each way to spread its work over partitions: the cost model.

    batch = fixed
          + records x read                      read and decode
          + route_seconds + records x route     routed ways
          + shuffle_seconds + records x move    all but `local`
          + the slowest partition's (records x cost + keys x setup)
          + pairs x (pair + bytes x byte)       merge
          + distinct x (state + bytes x state_byte)   what is kept of each key

`cost` is the operator's time for a record, `setup` what it costs a task to meet a key, `pairs` the
(key, partition) pairs, each a partial result that the merge takes, and `distinct` the batch's keys.
Where Spark computes the operator itself (`native`), `none` combines before its shuffle: nothing is
moved but partials.

All but the operator's are wall time of the whole machine, not of one core. The defaults are of
sixteen slots on two quiet cores (`make bench-model` compares them with what was measured, `unskew
calibrate` measures those of another machine).
"""

import heapq
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields

import numpy as np

from unskew.grouping.base import Float64s, Int64s, UInt64s
from unskew.grouping.simulation.loads import HASHED, LOCAL, WAYS, KeyBatch, Loads, Work, spread

__all__ = ["HASHED", "LOCAL", "WAYS", "Constants", "Machine", "Parts", "Prediction", "Work"]
Begun = Callable[[str], None]
_MICRO, _NANO = 1e-6, 1e-9


@dataclass(frozen=True)
class Constants:
    """What a machine takes for a batch beside the operator's work."""

    fixed_seconds: float = 0.1
    """A batch with next to no records."""
    read_us: float = 1.9
    """Reading and decoding a record."""
    route_us: float = 0.5
    """Routing it."""
    move_us: float = 0.2
    """Taking it to another partition."""
    pair_us: float = 1.3
    """Merging a partial result."""
    byte_ns: float = 1.8
    """Merging a byte of one, beyond key and count."""
    route_seconds: float = 0.1
    """Routing at all, however few the records are."""
    shuffle_seconds: float = 0.05
    """A stage more, behind a shuffle of the records."""
    state_us: float = 4.8
    """Keeping what a key's partial results add up to."""
    state_byte_ns: float = 2.1
    """Keeping a byte of it, beyond key and count."""


@dataclass(frozen=True)
class Parts:
    """The seconds of a batch."""

    fixed: float
    read: float
    route: float
    move: float
    work: float
    """The time of the slowest partition, with the setup of its keys."""
    merge: float

    @property
    def seconds(self) -> float:
        """The whole batch."""
        return float(sum(getattr(self, each.name) for each in fields(self)))


@dataclass(frozen=True)
class Machine:
    """How many partitions are worked on at once, and what the rest of a batch costs."""

    slots: int
    constants: Constants = Constants()

    def batch_parts(self, way: str, loads: Loads, work: Work) -> Parts:
        """Predict the parts of a batch."""
        constants, records = self.constants, int(loads.records.sum())
        combined = way == HASHED and work.native
        routed = way not in (LOCAL, HASHED)
        moved = way != LOCAL and not combined
        pair = constants.pair_us * _MICRO + work.partial_bytes * constants.byte_ns * _NANO
        state = constants.state_us * _MICRO + work.partial_bytes * constants.state_byte_ns * _NANO
        return Parts(
            constants.fixed_seconds,
            records * constants.read_us * _MICRO,
            (constants.route_seconds + records * constants.route_us * _MICRO) * routed,
            (constants.shuffle_seconds + records * constants.move_us * _MICRO) * moved,
            0.0 if combined else self.work_seconds(loads, work),
            loads.pairs * pair + loads.distinct * state,
        )

    def work_seconds(self, loads: Loads, work: Work) -> float:
        """Seconds until the slowest partition is done; with more of them than slots, the last."""
        seconds = loads.work_seconds(work)
        return float(seconds[find_last_slot(seconds, self.slots)].sum())


def find_last_slot(seconds: Float64s, slots: int) -> Int64s:
    """The partitions that the slot works on which is done last.

    Spark begins the partitions in their order, each in the first slot that is free.
    """
    if seconds.size <= slots:
        return np.array([seconds.argmax()], np.int64)
    free = [(0.0, slot) for slot in range(max(1, slots))]
    taken = np.empty(seconds.size, np.int64)
    for partition, each in enumerate(seconds.tolist()):
        began, taken[partition] = free[0]
        heapq.heapreplace(free, (began + each, int(taken[partition])))
    return np.flatnonzero(taken == max(free)[1]).astype(np.int64)


@dataclass(frozen=True)
class Prediction:
    """A way's batches, on average."""

    way: str
    records: float
    parts: Parts
    max_over_mean: float
    """Records of the fullest partition over the mean."""
    pairs: float

    @property
    def seconds(self) -> float:
        """How long a batch takes."""
        return self.parts.seconds

    @property
    def records_per_second(self) -> float:
        """When one batch follows the other."""
        return self.records / self.seconds


def predict(
    ways: Iterable[str],
    batches: Sequence[UInt64s],
    partitions: int,
    sources: int,
    work: Work,
    machine: Machine,
    begun: Begun = lambda _: None,
) -> list[Prediction]:
    """Predict batches of these key hashes under each way; the first of several only teaches.

    `begun` is called with each way: the first use of one compiles its kernels.
    """
    numbered = [KeyBatch.from_hashes(hashes) for hashes in batches]
    predictions = []
    for way in ways:
        begun(way)
        loads = list(spread(way, numbered, partitions, sources, work))
        predictions.append(summarise(way, loads[1:] or loads, work, machine))
    return predictions


def summarise(way: str, loads: Sequence[Loads], work: Work, machine: Machine) -> Prediction:
    """The mean batch of these loads."""
    batches = [machine.batch_parts(way, each, work) for each in loads]
    means = {
        each.name: float(np.mean([getattr(batch, each.name) for batch in batches]))
        for each in fields(Parts)
    }
    return Prediction(
        way,
        float(np.mean([each.records.sum() for each in loads])),
        Parts(**means),
        float(np.mean([each.records.max() / each.records.mean() for each in loads])),
        float(np.mean([each.pairs for each in loads])),
    )
