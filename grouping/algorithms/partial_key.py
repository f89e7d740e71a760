"""Partial key grouping: two choices a key, the less loaded of them.

Two hashes give each key two candidate partitions; every record goes to the one to which this source
has sent less. A key is on at most two partitions, and balance holds as long as no key has more than
the fair share of two: with a most frequent key of share p1 > 2/n the imbalance is at least
p1/2 - 1/n, however long the stream. Costs two hashes a record; the state is one counter a
partition.

Departures: the two candidates are always different partitions (while two are active). With
independent hashes one key in n has one candidate only, a fifth of all keys at n = 5, and a hot one
among them is not split at all. With `memory: batch`, the default, loads start at zero with every
micro-batch; with a single batch, or `memory: stream`, they are the paper's. A partition that comes
(back) starts with the least load of the others, so that it is not flooded.

| paper | here |
|---|---|
| F1, F2 | `two_choices` (grouping.parts.two_choices) |
| L_i | `state["loads"]` |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> create("partial_key", partitions=4, seed=1).route(np.array([7] * 6, np.uint64)).tolist()
[2, 3, 2, 3, 2, 3]

Reference: M. A. U. Nasir, G. De Francisci Morales, D. Garcia-Soriano, N. Kourtellis, M. Serafini,
"The power of both choices: practical load balancing for distributed stream processing engines",
ICDE 2015; the tail of "When two choices are not enough", ICDE 2016.
"""

import numpy as np

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.hashing import pick
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.two_choices import LoadGrouping, LoadParams, UInt8s, two_choices

_BLOCK = 256


class PartialKeyParams(LoadParams):
    """Options of partial key grouping."""


class PartialKey(LoadGrouping):
    """The less loaded of two choices."""

    name = "partial_key"
    Params = PartialKeyParams

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        state = self.state
        _route_two(keys, state["loads"], self._salts, state["active"], self.active, out)


@kernel
def _route_two(
    keys: UInt64s, loads: Int64s, salts: UInt64s, mask: UInt8s, active: Int32s, out: Int32s
) -> None:
    # All hashes of a block first: that loop has no dependency and becomes vector instructions.
    salt_first, salt_second, partitions = salts[0], salts[1], mask.size
    some_away = active.size < partitions
    firsts = np.empty(_BLOCK, np.int32)
    seconds = np.empty(_BLOCK, np.int32)
    for start in range(0, keys.size, _BLOCK):
        size = min(_BLOCK, keys.size - start)
        for i in range(size):
            firsts[i] = pick(keys[start + i], salt_first, partitions)
            seconds[i] = pick(keys[start + i], salt_second, partitions)
        for i in range(size):
            if firsts[i] == seconds[i] or some_away:
                firsts[i], seconds[i] = two_choices(keys[start + i], salts, mask, active)
        for i in range(size):
            first, second = firsts[i], seconds[i]
            partition = first if loads[first] <= loads[second] else second
            loads[partition] += 1
            out[start + i] = partition
