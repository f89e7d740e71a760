"""Sources of `level` that route batches together."""

import numpy as np

from unskew.grouping.algorithms.level import Level, LevelParams
from unskew.grouping.base import Int32s, Setting, UInt64s
from unskew.grouping.hashing import mix64
from unskew.grouping.simulation.simulate import begin_all

KEYS = np.array([mix64(np.uint64(number + 1)) for number in range(10_000)], np.uint64)


def make(partitions: int, sources: int, **options: object) -> list[Level]:
    return [
        Level(Setting(partitions, source, sources, 1), LevelParams(**options))
        for source in range(sources)
    ]


def stream(z: float, records: int, seed: int, keys: UInt64s = KEYS) -> UInt64s:
    upto = np.cumsum(np.arange(1, keys.size + 1.0) ** -z)
    draws = np.random.default_rng(seed).random(records) * upto[-1]
    return keys[np.searchsorted(upto, draws)]


def play(routers: list[Level], batch: UInt64s) -> Int32s:
    """Route one batch, dealt round robin."""
    begin_all(routers, None)
    routes = np.empty(batch.size, np.int32)
    for source, router in enumerate(routers):
        routes[source :: len(routers)] = router.route(batch[source :: len(routers)])
    return routes


def replication(batch: UInt64s, routes: Int32s) -> float:
    keys, numbers = np.unique(batch, return_inverse=True)
    return np.unique(numbers * 10_000 + routes).size / keys.size


def largest(routes: Int32s, partitions: int) -> float:
    return float(np.bincount(routes, minlength=partitions).max() * partitions / routes.size)
