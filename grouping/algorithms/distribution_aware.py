"""Distribution-aware key grouping (Rivetti): learn the distribution once, then map whole keys.

For the first records it only counts: the heavy hitters with SpaceSaving, and all other keys in hash
*buckets*, a few a partition. Then hitters and buckets are mapped to partitions by greedy
multiprocessor scheduling, the heaviest first, each to the least loaded partition so far, and that
mapping is frozen. It is the static baseline of the DStream paper, where it is called DKG (not the
DKG of Dynamic Key Grouping, which is `dynamic_key` here).

What it guarantees and costs: for the weights that were learned, the largest load is at most
4/3 - 1/(3n) of the best that whole keys allow (Graham). It splits no key, so the hottest key's
share remains a lower bound: at z = 1.4 one key has a third of the records, and beyond n = 3 no
mapping helps. And it never learns again: **when the distribution drifts, the hitters keep what was
right for the old one**, and the new hot keys share buckets. With n = 10 and z = 1 the largest load
is 1.04 of the mean, and 1.8 after the ranking turned round, as with key grouping. A record costs a
bucket's hash and a look into the small table of hitters; while learning, SpaceSaving's count too.

A key is in at most two partitions a source: its home while learning, then its mapped one. But
**every source has its own mapping**, because it knows its own records only, and the greedy rule
turns small differences into other partitions: with 5 sources and n = 10 there are 4 pairs a key,
with 48 and n = 100 up to 30. `near_home` keeps most keys at home, hence together.

State: the SpaceSaving counters, epsilon_factor / theta of at most 68 bytes, and 8 bytes a bucket:
60 kB at n = 100 by default. The mapping follows from them and is not stored. How long a source
learns is part of the state from its first record on, since `sources` may change between batches.

*Departures.* While learning, records are routed by hash (the public code drops them). Hitters are
those with count - error >= theta x records, certain ones only, and weigh that much, so that no
bucket's remainder is negative. A bucket weighs one record more than was counted: else all those
without a record would go to one partition. Sources do not synchronise (nor do they in the public
code). `near_home` is ours. Where partitions are away, what the mapping gave them is scheduled again
over those that stay, and everything else remains; it returns when they do. The paper is not one of
our five: theta, the number of buckets and the length of learning are options with defaults of ours,
and epsilon is theta / 2 as in the author's code.

| paper | here |
|---|---|
| theta, epsilon | `theta`, theta / `epsilon_factor` |
| mu (`factor` in the code) | `buckets_per_partition` |
| k | the number of partitions |
| m, length of learning | `learning_records` |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> keys = np.tile(np.array([1, 2, 3, 4], np.uint64), 1000)
>>> grouping = create("distribution_aware", partitions=4, seed=1, learning_records=400)
>>> np.bincount(grouping.route(keys[:400]), minlength=4).tolist()
[300, 0, 0, 100]
>>> np.bincount(grouping.route(keys[400:]), minlength=4).tolist()
[900, 900, 900, 900]

Reference: N. Rivetti, L. Querzoni, E. Anceaume, Y. Busnel, B. Sericola, "Efficient key grouping for
near-optimal load balancing in stream processing systems", DEBS 2015.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unskew.grouping.base import (
    Float64s,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.hashing import mix64, pick, pick_active, salts
from unskew.grouping.kernels import borrowing_kernel, kernel
from unskew.grouping.parts.sketches import space_saving
from unskew.grouping.parts.sketches.space_saving import Counters, count

RECORDS_A_PARTITION = 1000
"""Learned by default, over all sources: a partition's load is then known to 3 %."""


class DistributionAwareParams(GroupingParams):
    """Options of distribution-aware grouping."""

    theta: float | None = Field(default=None, ge=1e-5, le=1, examples=[0.001])
    """Share of the records from which a key is a heavy hitter; by default 1/(5n)."""
    epsilon_factor: float = Field(default=2.0, ge=1, le=20)
    """theta / epsilon: SpaceSaving has this many counters for each possible hitter."""
    buckets_per_partition: int = Field(default=10, ge=1, le=100)
    """Hash buckets of the keys that are no hitters, as a multiple of the partitions."""
    learning_records: int | None = Field(default=None, ge=1, le=10**12, examples=[100_000])
    """Records that a source learns from; by default 1000 n / sources, at least 10 n."""
    near_home: bool = False
    """Leave at home what fits there under the mean load, and schedule only the rest greedily."""


class Mapping(NamedTuple):
    """The partition of every key, as a kernel takes it: derived from the learned counts."""

    hitter_keys: UInt64s
    """A hash table of heavy hitters, by entry."""
    hitter_partitions: Int32s
    """The heavy hitter's partition; -1 in an empty entry."""
    bucket_partitions: Int32s
    """The partition of each bucket."""


class DistributionAware(Grouping):
    """Static mapping of heavy hitters and buckets, made once from the first records."""

    name = "distribution_aware"
    version = 2
    Params = DistributionAwareParams
    checks = (space_saving.check,)

    def __init__(self, setting: Setting, params: DistributionAwareParams) -> None:
        super().__init__(setting, params)
        n = setting.partitions
        self._theta = params.theta or 1 / (5 * n)
        self._own_length = params.learning_records or max(
            10 * n, math.ceil(RECORDS_A_PARTITION * n / setting.sources)
        )
        self._near_home = params.near_home
        # Buckets are a finer cut of the same hash: `per_home` of them make up a partition's keys.
        self._per_home = params.buckets_per_partition
        self._salt = salts(setting.seed, 1)[0]
        self.state.update(space_saving.arrays(math.ceil(params.epsilon_factor / self._theta)))
        self.state["buckets"] = np.zeros(self._per_home * n, np.int64)
        self.state["learned"] = np.zeros(1, np.int64)
        # How many there are to learn: none before the first.
        self.state["length"] = np.zeros(1, np.int64)
        self._mapping: Mapping | None = None
        self._loads = np.zeros(n)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        if self._learned == 0:
            self.state["length"][0] = self._own_length
        learning = min(keys.size, max(0, self._length - self._learned))
        if learning:
            _learn(
                keys[:learning],
                space_saving.view(self.state),
                self.state["buckets"],
                self._salt,
                self.state["active"],
                self.active,
                out,
            )
            self.state["learned"] += learning
            self._map()
        if self._mapping is not None and learning < keys.size:
            _route_mapped(keys[learning:], self._mapping, self._salt, out[learning:])

    @property
    def _learned(self) -> int:
        return int(self.state["learned"][0])

    @property
    def _length(self) -> int:
        return int(self.state["length"][0])

    def hot_keys(self) -> UInt64s:
        """The mapped heavy hitters, heaviest first."""
        return np.empty(0, np.uint64) if self._mapping is None else self._hitters()[0]

    def signals(self) -> dict[str, float]:
        """How far learning is, and the balance that the mapping promises."""
        mean = float(self._loads.sum()) / self.active.size
        return {
            "learned_records": float(self._learned),
            "mapped": float(self._mapping is not None),
            "hitters": float(self.hot_keys().size),
            "mapped_max_over_mean": float(self._loads.max()) / mean if mean else 0.0,
        }

    def _update_active(self) -> None:
        super()._update_active()
        self._map()

    def _map(self) -> None:
        """Make the mapping if all is learned: a function of what was, and of who is active."""
        self._mapping = None
        self._loads = np.zeros(self.setting.partitions)
        if self._learned == 0 or self._learned < self._length:
            return
        keys, weights = self._hitters()
        rest = self.state["buckets"] + 1.0
        buckets = _take_out(keys, weights, rest, self._salt)
        items = np.concatenate([weights, rest])
        order = np.argsort(-items, kind="stable")
        assigned = np.full(items.size, -1, np.int32)
        everywhere = np.arange(self.setting.partitions, dtype=np.int32)
        if self._near_home:
            homes = np.concatenate([buckets, np.arange(rest.size)]) // self._per_home
            stay(items, order, homes, items.sum() / everywhere.size, self._loads, assigned)
        schedule(items, order, everywhere, self._loads, assigned)
        if self.active.size < everywhere.size:
            assigned[self.state["active"][assigned] == 0] = -1
            self._loads[self.state["active"] == 0] = 0
            schedule(items, order, self.active, self._loads, assigned)
        self._mapping = _as_mapping(keys, assigned)

    def _hitters(self) -> tuple[UInt64s, Float64s]:
        """The certain heavy hitters and their weights, heaviest first."""
        counters = space_saving.view(self.state)
        used = int(counters.used[0])
        sure = counters.counts[:used] - counters.errors[:used]
        chosen = np.flatnonzero(sure >= self._theta * self._length)
        order = np.lexsort((counters.keys[chosen], -sure[chosen]))
        return counters.keys[chosen][order], sure[chosen][order]


def _as_mapping(keys: UInt64s, assigned: Int32s) -> Mapping:
    entries = 4 << max(0, keys.size - 1).bit_length()
    table = Mapping(
        np.zeros(entries, np.uint64), np.full(entries, -1, np.int32), assigned[keys.size :].copy()
    )
    _enter_hitters(keys, assigned, table)
    return table


@borrowing_kernel
def _learn(
    keys: UInt64s,
    counters: Counters,
    buckets: Int64s,
    salt: np.uint64,
    mask: NDArray[np.uint8],
    active: Int32s,
    out: Int32s,
) -> None:
    for i in range(keys.size):
        key = keys[i]
        count(counters, key)
        buckets[pick(key, salt, buckets.size)] += 1
        out[i] = pick_active(key, salt, mask, active)


@kernel
def _route_mapped(keys: UInt64s, mapping: Mapping, salt: np.uint64, out: Int32s) -> None:
    last = np.uint64(mapping.hitter_keys.size - 1)
    for i in range(keys.size):
        key = keys[i]
        entry = mix64(key) & last
        partition = mapping.hitter_partitions[entry]
        while partition >= 0 and mapping.hitter_keys[entry] != key:
            entry = (entry + np.uint64(1)) & last
            partition = mapping.hitter_partitions[entry]
        if partition < 0:
            partition = mapping.bucket_partitions[pick(key, salt, mapping.bucket_partitions.size)]
        out[i] = partition


@kernel
def _take_out(keys: UInt64s, weights: Float64s, rest: Float64s, salt: np.uint64) -> Int64s:
    """Take the hitters out of their buckets, which are returned."""
    buckets = np.empty(keys.size, np.int64)
    for i in range(keys.size):
        buckets[i] = pick(keys[i], salt, rest.size)
        rest[buckets[i]] -= weights[i]
    return buckets


@kernel
def _enter_hitters(keys: UInt64s, assigned: Int32s, mapping: Mapping) -> None:
    last = np.uint64(mapping.hitter_keys.size - 1)
    for i in range(keys.size):
        entry = mix64(keys[i]) & last
        while mapping.hitter_partitions[entry] >= 0:
            entry = (entry + np.uint64(1)) & last
        mapping.hitter_keys[entry] = keys[i]
        mapping.hitter_partitions[entry] = assigned[i]


@kernel
def stay(
    weights: Float64s, order: Int64s, homes: Int64s, limit: float, loads: Float64s, assigned: Int32s
) -> None:
    """Each item to its home, but for those that would load it beyond `limit`."""
    for item in order:
        home = homes[item]
        if loads[home] + weights[item] <= limit:
            assigned[item] = home
            loads[home] += weights[item]


@kernel
def schedule(
    weights: Float64s, order: Int64s, partitions: Int32s, loads: Float64s, assigned: Int32s
) -> None:
    """Each item without a partition to the least loaded of `partitions`, the lowest of equals."""
    heap = partitions.copy()
    for root in range(heap.size // 2 - 1, -1, -1):
        _sink(heap, loads, root)
    for item in order:
        if assigned[item] < 0:
            assigned[item] = heap[0]
            loads[heap[0]] += weights[item]
            _sink(heap, loads, 0)


@kernel
def _sink(heap: Int32s, loads: Float64s, root: int) -> None:
    """Partition `heap[root]` has more load now: sink it in the heap."""
    partition = heap[root]
    node = root
    child = 2 * node + 1
    while child < heap.size:
        if child + 1 < heap.size and _before(loads, heap[child + 1], heap[child]):
            child += 1
        if not _before(loads, heap[child], partition):
            break
        heap[node] = heap[child]
        node = child
        child = 2 * node + 1
    heap[node] = partition


@kernel
def _before(loads: Float64s, left: np.int32, right: np.int32) -> bool:
    return bool(loads[left] < loads[right] or (loads[left] == loads[right] and left < right))
