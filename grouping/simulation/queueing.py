"""Partitions as first-in first-out queues: when each record is done, and how long it took.

A record arrives, waits until its partition is free, and is worked on for its cost over the
partition's speed. Latencies go into a histogram of 128 bins an octave: every percentile is right
to 0.4 %, in bounded memory. In a closed loop a source sends its next record only when fewer than a
fixed number of its own are under way, so records arrive as the slowest partition lets them.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
        self.latency_sums = np.zeros(partitions)
        """The sum of the latencies of each partition's records."""

    def begin_batch(self, last_arrival: float) -> float:
        """A micro-batch starts when it is complete and the one before has ended; its start."""
        start = max(last_arrival, float(self.free_at.max()))
        self.free_at[:] = start
        return start

    def serve(
        self, routes: Int32s, arrivals: Float64s, costs: Float64s, speeds: Float64s
    ) -> Float64s:
        """Let the partitions work on these records, in order; the latency of each."""
        latencies = np.empty(routes.size)
        _serve(routes, arrivals, costs, speeds, self.free_at, self.busy, latencies)
        _note(latencies, latencies.view(np.int64), self.histogram, self.totals)
        self.latency_sums += np.bincount(routes, latencies, minlength=self.free_at.size)
        return latencies

    def serve_closed(
        self, routes: Int32s, costs: Float64s, speeds: Float64s, loop: "ClosedLoop"
    ) -> tuple[Float64s, Float64s]:
        """Serve all records, dealt round robin to sources that wait for their own.

        The latency of each, and when it is done.
        """
        latencies, done_at = np.empty(routes.size), np.empty(routes.size)
        _serve_closed(
            routes,
            costs,
            speeds,
            loop.gap,
            np.zeros((loop.sources, loop.pending)),
            self.free_at,
            self.busy,
            latencies,
            done_at,
        )
        _note(latencies, latencies.view(np.int64), self.histogram, self.totals)
        self.latency_sums += np.bincount(routes, latencies, minlength=self.free_at.size)
        return latencies, done_at


@dataclass(frozen=True)
class ClosedLoop:
    """Sources that have at most `pending` records under way, `gap` seconds between two at least."""

    sources: int
    pending: int
    gap: float = 0.0


def make_histogram(latencies: Float64s) -> Int64s:
    """How many of these are in each bin."""
    histogram = np.zeros(BINS, np.int64)
    _note(latencies, latencies.view(np.int64), histogram, np.zeros(2))
    return histogram


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
def _serve_closed(
    routes: Int32s,
    costs: Float64s,
    speeds: Float64s,
    gap: float,
    under_way: NDArray[np.float64],
    free_at: Float64s,
    busy: Float64s,
    latencies: Float64s,
    done_at: Float64s,
) -> None:
    # `under_way` holds a heap of completion times a source, the earliest first. Sending times never
    # decrease from one turn to the next, so partitions see records in the order of arrival.
    sources, pending = under_way.shape
    sizes = np.zeros(sources, np.int64)
    ready = np.zeros(sources)
    position = np.arange(sources)
    for _ in range(routes.size):
        source = -1
        now = np.inf
        for each in range(sources):
            if position[each] < routes.size:
                at = ready[each]
                if sizes[each] == pending:
                    at = max(at, under_way[each, 0])
                if at < now:
                    source = each
                    now = at
        i = position[source]
        partition = routes[i]
        seconds = (costs[i] if costs.size > 1 else costs[0]) / speeds[partition]
        done = max(now, free_at[partition]) + seconds
        free_at[partition] = done
        busy[partition] += seconds
        latencies[i] = done - now
        done_at[i] = done
        position[source] += sources
        ready[source] = now + gap
        heap = under_way[source]
        if sizes[source] == pending:
            _sift_down(heap, done, pending)
        else:
            _sift_up(heap, done, sizes[source])
            sizes[source] += 1


@kernel
def _sift_up(heap: Float64s, value: float, hole: int) -> None:
    while hole > 0 and heap[(hole - 1) // 2] > value:
        heap[hole] = heap[(hole - 1) // 2]
        hole = (hole - 1) // 2
    heap[hole] = value


@kernel
def _sift_down(heap: Float64s, value: float, size: int) -> None:
    # In the place of the least.
    hole = 0
    while 2 * hole + 1 < size:
        child = 2 * hole + 1
        if child + 1 < size and heap[child + 1] < heap[child]:
            child += 1
        if heap[child] >= value:
            break
        heap[hole] = heap[child]
        hole = child
    heap[hole] = value


@kernel
def _note(latencies: Float64s, bits: Int64s, histogram: Int64s, totals: Float64s) -> None:
    for i in range(latencies.size):
        index = (bits[i] >> _SHIFT) - _LOWEST
        histogram[min(max(index, 0), histogram.size - 1)] += 1
        totals[0] += latencies[i]
        totals[1] = max(totals[1], latencies[i])
