"""The figures of time at the end of a trace, and what full knowledge would have made of them.

Full knowledge is the greedy rule with exact costs and exact queues: each record goes to the
partition that will be done with it first. It is no optimum (its makespan is at most 2 - 1/n times
that, for n partitions of one speed), but no grouping knows more.
"""

import numpy as np

from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.kernels import kernel
from unskew.grouping.simulation.queueing import Queues, percentile
from unskew.grouping.simulation.reports import Execution, max_over_mean


class FullKnowledge:
    """Queues that are filled by the greedy rule."""

    def __init__(self, partitions: int) -> None:
        self._free_at = np.zeros(partitions)
        self._totals = np.zeros(2)  # latencies, and busy time

    def serve(self, records: int, arrivals: Float64s, costs: Float64s, speeds: Float64s) -> None:
        """Give these records to the partitions, in order."""
        _serve_greedily(records, arrivals, costs, speeds, self._free_at, self._totals)

    def mean_ms(self, records: int) -> float:
        """The mean latency, over this number of records."""
        return float(self._totals[0]) / records * 1e3

    @property
    def utilisation(self) -> float:
        """Busy seconds over the seconds until the last record is done."""
        return float(self._totals[1]) / (self._free_at.size * float(self._free_at.max()))


def summarise_times(queues: Queues, loads: Int64s, ideal: FullKnowledge | None) -> Execution:
    """Sum up the times of the queues."""
    records = int(loads.sum())
    seconds = float(queues.free_at.max())
    means = queues.latency_sums / np.maximum(loads, 1) * 1e3
    percents = [percentile(queues.histogram, percent / 100) * 1e3 for percent in range(1, 100)]
    return Execution(
        execution_seconds=seconds,
        throughput_per_second=records / seconds,
        latency_mean_ms=float(queues.totals[0]) / records * 1e3,
        latency_p50_ms=percents[49],
        latency_p95_ms=percents[94],
        latency_p99_ms=percents[98],
        latency_max_ms=float(queues.totals[1]) * 1e3,
        latency_mean_max_ms=float(means.max()),
        cost_mean_us=float(queues.busy.sum()) / records * 1e6,
        busy_max_over_mean=max_over_mean(queues.busy),
        utilisation=float(queues.busy.mean()) / seconds,
        latency_means_ms=means.tolist(),
        latency_percentiles_ms=percents,
        full_knowledge_mean_ms=ideal.mean_ms(records) if ideal else None,
        full_knowledge_utilisation=ideal.utilisation if ideal else None,
    )


@kernel
def _serve_greedily(
    records: int,
    arrivals: Float64s,
    costs: Float64s,
    speeds: Float64s,
    free_at: Float64s,
    totals: Float64s,
) -> None:
    # One cost or one arrival stands for all records.
    for i in range(records):
        arrival = arrivals[i] if arrivals.size > 1 else arrivals[0]
        cost = costs[i] if costs.size > 1 else costs[0]
        first = np.inf
        chosen = 0
        for partition in range(free_at.size):
            done = max(arrival, free_at[partition]) + cost / speeds[partition]
            if done < first:
                first = done
                chosen = partition
        free_at[chosen] = first
        totals[0] += first - arrival
        totals[1] += cost / speeds[chosen]
