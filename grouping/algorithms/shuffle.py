"""Shuffle grouping: round robin, whatever the key. The balance no grouping can beat.

Each partition gets every n-th record of a source, so the loads of one source differ by at most one
at every moment. The price is replication: a key with f records ends up in min(f, n) partitions.
State: one number, the next position, whatever the stream. Several sources start at evenly spread
offsets, so that they do not all send their first, and their odd last, records to the same
partitions.

Departures: the paper's baseline draws the target at random in some engines; here the partitions
take turns, as in Storm. When a partition is away, the turn goes to those that stay; every key is
everywhere anyway, so no key moves.

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> create("shuffle", partitions=4).route(np.array([7, 7, 8, 9, 7], np.uint64)).tolist()
[0, 1, 2, 3, 0]
>>> create("shuffle", partitions=4, source=1, sources=2).route(np.zeros(3, np.uint64)).tolist()
[2, 3, 0]

Reference: the "shuffle grouping" of Storm.
"""

import numpy as np

from unskew.grouping.base import Grouping, GroupingParams, Int32s, Int64s, Setting, UInt64s
from unskew.grouping.kernels import kernel

_PATTERN_MIN = 1024
"""The least length of the pattern of turns: few partitions would make short copies."""


class ShuffleParams(GroupingParams):
    """Shuffle grouping has no options."""


class Shuffle(Grouping):
    """Round robin: the partitions take turns."""

    name = "shuffle"
    Params = ShuffleParams

    def __init__(self, setting: Setting, params: ShuffleParams) -> None:
        super().__init__(setting, params)
        start = setting.source * setting.partitions // setting.sources
        self.state["position"] = np.array([start], np.int64)
        self._update_active()

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        _take_turns(self._pattern, self.state["position"], self.active.size, out)

    def _update_active(self) -> None:
        super()._update_active()
        self.state["position"] %= self.active.size
        self._pattern = np.tile(self.active, -(-_PATTERN_MIN // self.active.size))


@kernel
def _take_turns(pattern: Int32s, position: Int64s, active: int, out: Int32s) -> None:
    start = position[0]
    done = 0
    while done < out.size:
        run = min(pattern.size - start, out.size - done)
        out[done : done + run] = pattern[start : start + run]
        done += run
        start = 0
    position[0] = (position[0] + out.size) % active
