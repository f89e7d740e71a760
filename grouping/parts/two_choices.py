"""What every grouping with a load vector shares: the loads, two choices, the least loaded of all.

A load is what this source has sent to a partition, in records: the estimate that partial key
grouping showed to be enough. Ties go to the earlier of two candidates; of all partitions, or of a
hot key's, to the next one from a position that differs by source: with many sources and small
batches every load is 0 or 1, and sources that all begin with the lowest partition fill that one.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import (
    Feedback,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.hashing import heaviest, mix64, partition_weight, pick, pick_active, salts
from unskew.grouping.kernels import kernel

UInt8s = NDArray[np.uint8]

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_HIGH = np.uint64(32)
_REDRAWS = 64


class LoadParams(GroupingParams):
    """The option of every grouping with a load vector."""

    memory: Literal["batch", "stream"] = "batch"
    """How long loads are remembered. `batch`: they begin at zero with every micro-batch, because
    all partitions are idle then. `stream`: for ever, as in the papers, which know no batches."""


class LoadGrouping(Grouping):
    """A grouping with a load vector and two choices for (at least) its cold keys."""

    params: LoadParams

    def __init__(self, setting: Setting, params: LoadParams, candidates: int = 2) -> None:
        super().__init__(setting, params)
        self.state["loads"] = np.zeros(setting.partitions, np.int64)
        self._salts: UInt64s = salts(setting.seed, candidates)
        self._least = np.zeros(2, np.int64)
        self._order = self._rotated(self.active)

    def set_active(self, partitions: Sequence[int]) -> None:
        """Route only to these partitions from now on; new ones start at the least load."""
        before = self.state["active"].copy()
        super().set_active(partitions)
        loads = self.state["loads"]
        stayed = (before != 0) & (self.state["active"] != 0)
        if stayed.any():
            came = (before == 0) & (self.state["active"] != 0)
            loads[came] = np.maximum(loads[came], loads[stayed].min())
        self._forget_least()

    def _begin_batch(self, feedback: Feedback | None) -> None:
        if self.params.memory == "batch":
            self.state["loads"][:] = 0
            self._forget_least()

    def _update_active(self) -> None:
        super()._update_active()
        self._order = self._rotated(self.active)
        self._forget_least()

    def _rotated(self, order: Int32s) -> Int32s:
        """`order` from this source's part of it on: among equals, each source takes another."""
        first = self.setting.source * order.size // self.setting.sources
        return np.roll(order, -first)

    def _forget_least(self) -> None:
        self._least[:] = 0


@kernel
def two_choices(
    key: np.uint64, salts_: UInt64s, mask: UInt8s, active: Int32s
) -> tuple[np.int64, np.int64]:
    """The two candidates of `key`: different partitions, where there are two."""
    first = pick(key, salts_[0], mask.size)
    second = pick(key, salts_[1], mask.size)
    if first == second or mask[first] == 0 or mask[second] == 0:
        first, second = _two_drawn_again(key, salts_[0], salts_[1], mask, active)
    return first, second


@kernel
def less_loaded_of_two(
    key: np.uint64, loads: Int64s, salts_: UInt64s, mask: UInt8s, active: Int32s
) -> np.int64:
    """The less loaded of the two candidates of `key`; the first when they are equal."""
    first, second = two_choices(key, salts_, mask, active)
    return first if loads[first] <= loads[second] else second


@kernel
def draw_another(
    key: np.uint64, salt: np.uint64, mask: UInt8s, active: Int32s, taken: UInt8s
) -> np.int64:
    """The candidate of `key` with this salt, drawn again while it is away or already taken.

    At least one active partition must not be taken.
    """
    value = mix64(key ^ salt)
    partitions = np.uint64(mask.size)
    for _ in range(_REDRAWS):
        partition = np.int64(((value >> _HIGH) * partitions) >> _HIGH)
        if mask[partition] != 0 and taken[partition] == 0:
            return partition
        value = mix64(value + _GOLDEN)
    best = np.int64(-1)
    most = np.uint64(0)
    for i in range(active.size):
        weight = partition_weight(key, salt, active[i])
        if taken[active[i]] == 0 and (best < 0 or weight > most):
            best, most = np.int64(active[i]), weight
    return best


@kernel
def _two_drawn_again(
    key: np.uint64, salt_first: np.uint64, salt_second: np.uint64, mask: UInt8s, active: Int32s
) -> tuple[np.int64, np.int64]:
    if active.size == 1:
        return np.int64(active[0]), np.int64(active[0])
    first = pick_active(key, salt_first, mask, active)
    value = mix64(key ^ salt_second)
    partitions = np.uint64(mask.size)
    for _ in range(_REDRAWS):
        second = np.int64(((value >> _HIGH) * partitions) >> _HIGH)
        if mask[second] != 0 and second != first:
            return first, second
        value = mix64(value + _GOLDEN)
    return first, heaviest(key, salt_second, active, first)


@kernel
def find_least_loaded(loads: Int64s, active: Int32s, least: Int64s) -> np.int64:
    """The first of the least loaded active partitions.

    Loads only grow, so the search goes on where it stopped: `least` holds a load that no partition
    is below, and a position in `active` before which all are above it. A whole round is needed only
    when the least load has risen, at most once in as many records as there are partitions: O(1) a
    record, amortised, and the same answer as a scan.
    """
    level, position = least[0], least[1]
    while loads[active[position]] != level:
        position += 1
        if position == active.size:
            position = 0
            level = loads[active[0]]
            for i in range(1, active.size):
                level = min(level, loads[active[i]])
    least[0], least[1] = level, position
    return np.int64(active[position])
