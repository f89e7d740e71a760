"""Round robin for the head, two choices for the tail: the paper's simple rival of W-Choices.

As W-Choices, but a record of the head goes to the next partition in turn, without a look at the
loads. The head alone is spread evenly; what the tail leaves uneven stays so, because two choices
can level only among themselves. Costs and state are those of W-Choices.

Departures: those of `w_choices`. Loads count all records, also the head's, so that the tail's two
choices see what the head has put on a partition. Sources begin their rounds at
different partitions.

| paper | here |
|---|---|
| H, theta | `hot_keys()`, `theta` |
| round robin over W | `state["turn"]` |
| L_i | `state["loads"]` |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> grouping = create("round_robin_head", partitions=4, seed=1)
>>> grouping.route(np.array([7] * 12, np.uint64)).tolist()
[2, 3, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]

Reference: M. A. U. Nasir, G. De Francisci Morales, N. Kourtellis, M. Serafini, "When two choices
are not enough: balancing at scale in distributed stream processing", ICDE 2016.
"""

import numpy as np

from unskew.grouping.base import Int32s, Int64s, Setting, UInt64s
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.heads import HeadGrouping, HeadParams
from unskew.grouping.parts.two_choices import UInt8s, less_loaded_of_two


class RoundRobinHeadParams(HeadParams):
    """Options of round robin for the head."""


class RoundRobinHead(HeadGrouping):
    """Round robin for the head, two choices for the tail."""

    name = "round_robin_head"
    Params = RoundRobinHeadParams

    def __init__(self, setting: Setting, params: RoundRobinHeadParams) -> None:
        super().__init__(setting, params)
        start = setting.source * setting.partitions // setting.sources
        self.state["turn"] = np.array([start], np.int64)

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        state, hot = self.state, self._mark_head(keys)
        _route_marked(
            keys,
            hot,
            state["loads"],
            state["turn"],
            self._salts,
            state["active"],
            self.active,
            out,
        )


@kernel
def _route_marked(
    keys: UInt64s,
    hot: Int32s,
    loads: Int64s,
    turn: Int64s,
    salts: UInt64s,
    mask: UInt8s,
    active: Int32s,
    out: Int32s,
) -> None:
    position = turn[0] % active.size
    for i in range(keys.size):
        if hot[i] >= 0:
            partition = np.int64(active[position])
            position += 1
            if position == active.size:
                position = 0
        else:
            partition = less_loaded_of_two(keys[i], loads, salts, mask, active)
        loads[partition] += 1
        out[i] = partition
    turn[0] = position
