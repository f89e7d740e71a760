"""Partitions as first-in first-out queues: when each record is done, and how long it took.

A record arrives, waits until its partition is free, and is worked on for its cost over the
partition's speed. Latencies go into a histogram of 128 bins an octave: every percentile is right
to 0.4 %, in bounded memory.
"""

import numpy as np

from unskew.grouping.base import Float64s, Int32s, Int64s
from unskew.grouping.kernels import kernel

_SHIFT = 45  # leaves the exponent and the 7 highest bits of the mantissa
_LOWEST = (1023 - 30) << 7  # a nanosecond
BINS = 66 * 128


class Queues:
    """The partitions' queues on the way through a trace."""

    def __init__(self, partitions: int) -> None:
        self.free_at = np.zeros(partitions)
        self.busy = np.zeros(partitions)
        self.histogram = np.zeros(BINS, np.int64)
        self.totals = np.zeros(2)
        """Sum and maximum of the latencies, in seconds."""

    def begin_batch(self, last_arrival: float) -> float:
        """A micro-batch starts when it is complete and the one before has ended; its start."""
        start = max(last_arrival, float(self.free_at.max()))
        self.free_at[:] = start
        return start

    def serve(self, routes: Int32s, arrivals: Float64s, costs: Float64s, speeds: Float64s) -> None:
        """Let the partitions work on these records, in order."""
        latencies = np.empty(routes.size)
        _serve(routes, arrivals, costs, speeds, self.free_at, self.busy, latencies)
        _note(latencies, latencies.view(np.int64), self.histogram, self.totals)


def percentile(histogram: Int64s, share: float) -> float:
    """The latency in seconds that `share` of the records do not exceed; 0 for no records."""
    total = int(histogram.sum())
    if total == 0:
        return 0.0
    rank = max(1, int(np.ceil(share * total)))
    index = int(np.searchsorted(np.cumsum(histogram), rank))
    if index == 0:
        return 0.0
    edges = np.array([index + _LOWEST, index + 1 + _LOWEST], np.int64) << _SHIFT
    return float(edges.view(np.float64).mean())


@kernel
def _serve(
    routes: Int32s,
    arrivals: Float64s,
    costs: Float64s,
    speeds: Float64s,
    free_at: Float64s,
    busy: Float64s,
    latencies: Float64s,
) -> None:
    # One cost or one arrival stands for all records.
    for i in range(routes.size):
        partition = routes[i]
        arrival = arrivals[i] if arrivals.size > 1 else arrivals[0]
        cost = costs[i] if costs.size > 1 else costs[0]
        seconds = cost / speeds[partition]
        done = max(arrival, free_at[partition]) + seconds
        free_at[partition] = done
        busy[partition] += seconds
        latencies[i] = done - arrival


@kernel
def _note(latencies: Float64s, bits: Int64s, histogram: Int64s, totals: Float64s) -> None:
    for i in range(latencies.size):
        index = (bits[i] >> _SHIFT) - _LOWEST
        histogram[min(max(index, 0), histogram.size - 1)] += 1
        totals[0] += latencies[i]
        totals[1] = max(totals[1], latencies[i])
