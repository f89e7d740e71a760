"""What a source of `fish` has sent to the partitions and they have not served: algorithm 3."""

import math
from typing import NamedTuple

import numpy as np

from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.kernels import borrowing_kernel
from unskew.grouping.parts.fish.candidates import Rule

_STARTED, _PRIOR, _SINCE = 0, 1, 2  # indices of the clock


class Load(NamedTuple):
    """The partitions as this source sees them."""

    backlog: Float64s
    """C_w: unserved records of this source."""
    cost: Float64s
    """P_w: seconds a record, or 1 each."""
    waiting: Float64s
    """T_w: their product."""
    served: Float64s
    clock: Int64s
    """Has it started; the time (microseconds) it was last read; records since."""


@borrowing_kernel
def clock_turned(times: Int64s, i: int, rule: Rule, load: Load) -> bool:
    """Reduce the backlogs by what was served if an interval is over: algorithm 3, lines 2-10."""
    clock = load.clock
    intervals = 0.0
    if times.size == 0:
        intervals = 1.0 if clock[_SINCE] >= rule.interval else 0.0
    elif clock[_STARTED] == 0:
        clock[_STARTED] = 1
        clock[_PRIOR] = times[i]
    else:
        elapsed = float(times[i]) - float(clock[_PRIOR])
        if elapsed > rule.interval:
            intervals = math.floor(elapsed / rule.interval)
            # Back from now: forth from then would overflow where times jump across their type.
            clock[_PRIOR] = times[i] - np.int64(max(0.0, elapsed - intervals * rule.interval))
    turned = intervals > 0
    if turned:
        times_served = intervals if rule.measured else float(clock[_SINCE])
        for partition in range(load.backlog.size):
            left = load.backlog[partition] - times_served * load.served[partition]
            load.backlog[partition] = max(left, 0.0)
            load.waiting[partition] = load.backlog[partition] * load.cost[partition]
        clock[_SINCE] = 0
    clock[_SINCE] += 1
    return turned
