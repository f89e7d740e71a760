"""W-Choices: a hot key may go to any partition, a cold one to two.

SpaceSaving finds the head (see `grouping.parts.heads`); a record of the head goes to the least
loaded of all partitions, any other to the less loaded of its key's two. As long as the head has
enough records to fill what the tail leaves uneven, the loads of a source differ by about one
record, whatever the skew. The price is state: a hot key is on all n partitions, at most `n |head| +
2 |tail|` pairs. Costs a look into the table and two hashes a record; the least loaded partition is
found in O(1), amortised. State: 68 bytes a counter (4/theta = 20 n of them) and 8 a partition.

Departures: the margin against false heads and the two different choices (`grouping.parts.heads`,
`grouping.algorithms.partial_key`), and `memory: batch`, which lets loads begin at zero in every
micro-batch, while the counts fade by `decay` (with a single batch, or `memory: stream`, both are
the paper's). Of several sources with few records a partition each, a cold key's record goes to the
least loaded partition when both of its two are full (`grouping.parts.small_shares`).

| paper | here |
|---|---|
| H, theta | `hot_keys()`, `theta` |
| UPDATESPACESAVING | `mark_head`, `compute_hot_threshold` (grouping.parts.heads) |
| MINLOAD over W | `find_least_loaded` (grouping.parts.two_choices) |
| L_i | `state["loads"]` |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> grouping = create("w_choices", partitions=4, seed=1)
>>> grouping.route(np.array([7] * 12, np.uint64)).tolist()
[2, 3, 2, 3, 0, 1, 0, 1, 0, 1, 2, 3]
>>> grouping.hot_keys().tolist()
[7]

Reference: M. A. U. Nasir, G. De Francisci Morales, N. Kourtellis, M. Serafini, "When two choices
are not enough: balancing at scale in distributed stream processing", ICDE 2016.
"""

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.small_shares import SmallShareGrouping, SmallShareParams
from unskew.grouping.parts.two_choices import UInt8s, find_least_loaded, less_loaded_of_two


class WChoicesParams(SmallShareParams):
    """Options of W-Choices."""


class WChoices(SmallShareGrouping):
    """All partitions for the head, two choices for the tail."""

    name = "w_choices"
    Params = WChoicesParams

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        state, hot = self.state, self._mark_head(keys)
        _route_marked(
            keys,
            hot,
            state["loads"],
            self._least,
            self._order,
            self._salts,
            state["active"],
            self.active,
            self.full,
            out,
        )


@kernel
def _route_marked(
    keys: UInt64s,
    hot: Int32s,
    loads: Int64s,
    least: Int64s,
    order: Int32s,
    salts: UInt64s,
    mask: UInt8s,
    active: Int32s,
    full: int,
    out: Int32s,
) -> None:
    for i in range(keys.size):
        if hot[i] >= 0:
            partition = find_least_loaded(loads, order, least)
        else:
            partition = less_loaded_of_two(keys[i], loads, salts, mask, active)
            if loads[partition] >= full:
                partition = find_least_loaded(loads, order, least)
        loads[partition] += 1
        out[i] = partition
