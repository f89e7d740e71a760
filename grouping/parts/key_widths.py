"""To which of its partitions a record goes in Dynamic Key Grouping, and how many its key has.

The paper's algorithms 4 to 6 under their own names. A key's candidates are `width` neighbours on
the ring of active partitions, from `start` on.
"""

import numpy as np

from unskew.grouping.base import Int32s, Int64s
from unskew.grouping.kernels import borrowing_kernel

WIDTH_MIN = 2


@borrowing_kernel
def find_best_candidate(ring: Int32s, start: int, width: int, loads: Int64s) -> np.int32:
    """The least loaded of the candidates, the first of equals: CM."""
    best = ring[start]
    low = loads[best]
    for j in range(start + 1, start + width):
        load = loads[ring[j]]
        if load < low:
            low = load
            best = ring[j]
    return np.int32(best)


@borrowing_kernel
def choose_best_task(
    ring: Int32s,
    start: int,
    width: int,
    width_max: int,
    loads: Int64s,
    threshold: float,
    warming_up: bool,
    is_old: bool,
) -> tuple[np.int32, int]:
    """Algorithm 4: the partition of a record, and its key's width from now on."""
    best = find_best_candidate(ring, start, width, loads)
    if should_scale_out(warming_up, loads[best], threshold, is_old):
        following = np.int32(ring[start + width])
        if width < width_max and loads[following] < loads[best]:
            return following, width + 1
    elif should_scale_down(ring, start, width, loads, threshold):
        return find_best_candidate(ring, start, width - 1, loads), width - 1
    return best, width


@borrowing_kernel
def should_scale_out(
    warming_up: bool, least_load: np.int64, threshold: float, is_old: bool
) -> bool:
    """Algorithm 5: the warm-up is over, all candidates are above T, and the key is in OS."""
    if warming_up:
        return False
    if least_load < threshold:
        return False
    return is_old


@borrowing_kernel
def should_scale_down(
    ring: Int32s, start: int, width: int, loads: Int64s, threshold: float
) -> bool:
    """Algorithm 6: more than two candidates, and at least two are below the threshold (NLL)."""
    if width > WIDTH_MIN:
        below = 0
        for j in range(start, start + width):
            below += loads[ring[j]] < threshold
            if below == 2:
                return True
    return False
