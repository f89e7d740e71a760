"""Streams whose batches follow the cost model, for the decider of `grouping: auto`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from unskew.grouping.base import UInt64s
from unskew.grouping.choice.decider import Decider
from unskew.grouping.choice.key_counts import KeyCounts
from unskew.grouping.choice.ways import KEY, LEVEL, LEVEL_SECONDS, WAYS, MeasuredBatch
from unskew.grouping.simulation.batch_cost import Constants, Machine
from unskew.grouping.simulation.loads import HASHED, KeyBatch, Loads, Work, spread
from unskew.grouping.simulation.streams.traces import open_trace

PARTITIONS = 16
RECORDS = 160_000
CHANGE_SECONDS = 2.0


@cache
def draw_keys(z: float, keys: int) -> UInt64s:
    """One batch of Zipf's law."""
    kind = f"zipf:z={z}" if z else "uniform:"
    spec = f"{kind}{',' if z else ''}keys={keys},records={RECORDS}"
    return np.concatenate([chunk.keys for chunk in open_trace(spec).chunks()])


@cache
def spread_keys(z: float, keys: int, way: str) -> Loads:
    """What partitions get of it."""
    name = LEVEL if way == LEVEL_SECONDS else way
    batch = [KeyBatch.from_hashes(draw_keys(z, keys))] * 2
    return list(spread(name, batch, PARTITIONS, 4, Work(0.0)))[-1]


def count_hashes(hashes: UInt64s) -> KeyCounts:
    """The keys of a batch, given the hash of each record's key."""
    counts = np.unique(hashes, return_counts=True)[1]
    records, keys = np.unique(counts, return_counts=True)
    return KeyCounts(records.astype(np.float64), keys.astype(np.float64))


@cache
def count_keys(z: float, keys: int) -> KeyCounts:
    return count_hashes(draw_keys(z, keys))


@dataclass(frozen=True)
class World:
    """What a batch is like, and the machine that it runs on."""

    z: float
    work: Work
    keys: int = 10_000
    constants: Constants = field(default_factory=Constants)
    unevenness: float = 1.0
    """How much longer one partition works under `level`, by the costs of its keys."""

    def seconds(self, way: str) -> float:
        """What a batch takes."""
        loads = spread_keys(self.z, self.keys, way)
        name = LEVEL if way == LEVEL_SECONDS else way
        parts = Machine(PARTITIONS, self.constants).batch_parts(name, loads, self.work)
        return parts.seconds + (self._factors(way).max() - 1) * parts.work

    def best(self) -> float:
        """What the best fixed choice takes."""
        return min(map(self.seconds, WAYS))

    def _factors(self, way: str) -> np.ndarray:
        factors = np.ones(PARTITIONS)
        if way == LEVEL:
            factors[3] = self.unevenness
        return factors

    def batch(self, way: str, noise: float, rng: np.random.Generator) -> MeasuredBatch:
        """A batch as its reports tell it."""
        loads = spread_keys(self.z, self.keys, way)
        busy = loads.work_seconds(self.work) * self._factors(way)
        return MeasuredBatch(
            way=way,
            seconds=self.seconds(way) * float(np.exp(noise * rng.standard_normal())),
            records=loads.records,
            keys=loads.keys,
            opened=loads.keys,
            busy_seconds=busy * np.exp(0.05 * rng.standard_normal(PARTITIONS)),
            under_key=spread_keys(self.z, self.keys, KEY).records,
            under_hash=spread_keys(self.z, self.keys, HASHED).records,
            key_counts=count_keys(self.z, self.keys),
            partial_bytes=self.work.partial_bytes,
            slots=PARTITIONS,
        )


@dataclass(frozen=True)
class Run:
    """What the decider made of a stream."""

    ways: Sequence[str]
    """Of each batch."""
    seconds: float
    """All batches and changes, without noise."""

    @property
    def changes(self) -> int:
        """How often a batch had another way than the one before."""
        return sum(a != b for a, b in zip(self.ways, self.ways[1:], strict=False))


def follow(
    decider: Decider,
    world_of: Callable[[int], World],
    batches: int,
    *,
    noise: float = 0.03,
    seed: int = 1,
) -> Run:
    """Run a stream; the batch after a change is not learnt from, as in the service."""
    rng = np.random.default_rng(seed)
    ways: list[str] = []
    seconds = 0.0
    for number in range(batches):
        way, world = decider.way, world_of(number)
        changed = bool(ways) and ways[-1] != way
        ways.append(way)
        seconds += world.seconds(way) + CHANGE_SECONDS * changed
        batch = world.batch(way, noise, rng)
        if changed:
            decider.take_change(CHANGE_SECONDS)
        elif number:
            decider.decide(batch)
    return Run(ways, seconds)
