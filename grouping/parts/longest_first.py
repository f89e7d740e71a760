"""Jobs on partitions: the longest first, each where the load is least.

Graham's rule for jobs that cannot be cut: the largest load is at most 4/3 - 1/(3n) of the least
that is possible.

`assign` adds two things to it. Hysteresis: a job stays at the partition it had before while the
load there is at most `1 + slack` times the largest that the rule alone gives, and else goes where
the load is least; should a load then be larger than that, the rule alone decides. So the largest
load is never more than `1 + slack` times the rule's. And a bound on moves: of the jobs that are to
move only that many do, those out of the fullest partitions first, and no more of them than make the
largest load least.

Costs: a path of a tournament tree for each job and pass, and n comparisons a bounded move. Loads
are sums of whole numbers held as floats, exact up to 2^53, so no order of summing changes them.

Departures: of equally loaded partitions the lowest gets the job.

Reference: R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied
Mathematics 17(2), 1969.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.tournament import find_winner, replay, tournament

Mask = NDArray[np.uint8]


def assign(work: Float64s, before: Int32s, active: Mask, slack: float, moves_max: int) -> Int32s:
    """A partition for each job, the jobs given with most work first.

    `before` is where they were, an active partition each; `active` has one entry a partition.
    """
    nowhere = np.full(work.size, -1, np.int32)
    fresh, kept = nowhere.copy(), nowhere.copy()
    limit = (1 + slack) * longest_first(work, nowhere, active, 0.0, fresh)
    if longest_first(work, before, active, limit, kept) > limit:
        kept = fresh
    if np.count_nonzero(kept != before) > moves_max:
        kept = first_moves(work, before, kept, active.size, moves_max)
    return kept


@kernel
def longest_first(work: Float64s, before: Int32s, active: Mask, limit: float, out: Int32s) -> float:
    """Assign each job; it stays where it was, if anywhere, while the load there is in the limit."""
    loads = np.zeros(active.size)
    tree = tournament(loads, active)
    for i in range(work.size):
        chosen = np.int64(before[i])
        if chosen < 0 or loads[chosen] + work[i] > limit:
            chosen = np.int64(find_winner(tree))
        out[i] = chosen
        loads[chosen] += work[i]
        replay(tree, int(chosen), loads[chosen])
    return float(loads.max())


@kernel
def first_moves(
    work: Float64s, before: Int32s, wanted: Int32s, partitions: int, moves_max: int
) -> Int32s:
    """`before` with at most `moves_max` of the changes that `wanted` has: those that help most."""
    loads = np.zeros(partitions)
    for i in range(work.size):
        loads[before[i]] += work[i]
    first, following = _queues(before, wanted, partitions)
    order = np.empty(moves_max, np.int64)
    least = loads.max()
    helpful = 0
    for moves in range(moves_max):
        # The fullest of the partitions that a job is to leave, and the longest such job there.
        p = np.int64(-1)
        for q in range(partitions):
            if first[q] >= 0 and (p < 0 or loads[q] > loads[p]):
                p = np.int64(q)
        job = first[p]
        first[p] = following[job]
        loads[p] -= work[job]
        loads[wanted[job]] += work[job]
        order[moves] = job
        largest = loads.max()
        if largest <= least:
            least = largest
            helpful = moves + 1
    out = before.copy()
    for job in order[:helpful]:
        out[job] = wanted[job]
    return out


@kernel
def _queues(before: Int32s, wanted: Int32s, partitions: int) -> tuple[Int64s, Int64s]:
    """By partition the first job that is to leave it, and by job the next one: longest first."""
    first = np.full(partitions, -1, np.int64)
    following = np.full(before.size, -1, np.int64)
    for i in range(before.size - 1, -1, -1):
        if wanted[i] != before[i]:
            following[i] = first[before[i]]
            first[before[i]] = i
    return first, following
