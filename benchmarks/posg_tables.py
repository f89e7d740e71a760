"""The tables of paper 004 re-measured: speed-up over round robin of the mean completion time.

`python -m benchmarks.posg_tables [--seeds 5] [--table TEXT] [--json]` runs the streams of the
paper's section V-A (32,768 records of 4,096 keys, 64 costs from 1 to 64 ms given to keys at random,
5 instances) through first-in first-out queues and prints the median speed-up over the seeds beside
the paper's figure, where its text names one. Single records are reported every 64 records, as
completed.

`literal` is the paper's rule with its mu = 0.05; `lift` knows when instances idle. `mu 1` sends the
matrices at the first check: the paper's figure 10 enters RUN at record 10,690, after two windows of
each instance, where the relative error as it defines it is still 0.09, and sparse matrices (skewed
streams, small epsilon) never come down to 0.05 within a stream. `reports` synchronises with every
report as well. `full` is the greedy rule with exact costs and exact queues.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from unskew.grouping.base import Feedback, Float64s, Grouping, Int32s, UInt64s
from unskew.grouping.kernels import kernel
from unskew.grouping.registry import create

VARIANTS: dict[str, dict[str, Any]] = {
    "literal": {"tolerance": 0.05, "lift": False},
    "lift": {"tolerance": 0.05},
    "mu 1": {"tolerance": 1.0, "lift": False},
    "mu 1, lift": {"tolerance": 1.0},
    "mu 1, reports": {"tolerance": 1.0, "synchronise": "reports"},
}
INTERVAL = 64


@dataclass(frozen=True)
class Case:
    """One row of a table."""

    table: str
    value: str
    paper: str = ""
    z: float = 1.0
    over: float = 1.0
    partitions: int = 5
    values: int = 64
    cost_max: float = 64.0
    epsilon: float = 0.05
    records: int = 32_768
    turned_at: int | None = None
    keys: int = 4096


def cases() -> Iterator[Case]:
    """The paper's figures 4 to 10."""
    for z, paper in ((0.0, "1.06"), (0.5, "1.06"), (1.0, "1.25"), (1.5, ""), (2.0, ""), (2.5, "")):
        yield Case("distribution (fig. 4)", f"zipf-{z}", paper, z=z)
    figures = {0.95: "", 1.0: ">= 1.15", 1.02: "1.26", 1.05: ">= 1.15", 1.09: ">= 1.15"}
    for over, paper in {**figures, 1.15: "1.07"}.items():
        yield Case("provisioning (fig. 5)", f"{over:.0%}", paper, over=over)
    for cost_max in (16.0, 64.0, 256.0):
        yield Case("largest cost (fig. 6)", f"{cost_max:.0f} ms", "1.19", cost_max=cost_max)
    for values in (2, 16, 64, 1024):
        yield Case("values of cost (fig. 7)", str(values), "1.19", values=values)
    for partitions, paper in ((1, "1.00"), (2, ""), (3, ""), (5, ""), (10, "")):
        yield Case("instances (fig. 8)", str(partitions), paper, partitions=partitions)
    for epsilon, paper in ((1.0, "< 1"), (0.09, "> 1"), (0.05, ""), (0.01, ""), (0.001, "")):
        yield Case("precision (fig. 9)", str(epsilon), paper, epsilon=epsilon)
    yield Case("speeds turn (fig. 10)", "102%", over=1.02, records=150_000, turned_at=75_000)


def wanted(table: str, records: int | None) -> Iterator[Case]:
    """The cases of the tables with this text in their names, shortened if asked for."""
    for case in cases():
        if table in case.table:
            yield case if records is None else replace(case, records=records)


def stream(case: Case, seed: int) -> tuple[UInt64s, Float64s]:
    """Keys, and a cost in seconds a record (row) and instance (column)."""
    rng = np.random.default_rng(seed)
    shares = np.arange(1, case.keys + 1) ** -case.z
    drawn = rng.choice(case.keys, case.records, p=shares / shares.sum())
    levels = np.linspace(1.0, case.cost_max, case.values)
    of_key = rng.permutation(np.resize(np.repeat(levels, case.keys // case.values), case.keys))
    costs = np.repeat(of_key[drawn][:, None] * 1e-3, case.partitions, axis=1)
    if case.turned_at is not None:
        costs[: case.turned_at] *= [1.05, 1.025, 1.0, 0.975, 0.95]
        costs[case.turned_at :] *= [0.9, 0.95, 1.0, 1.05, 1.1]
    return drawn.astype(np.uint64), costs


@kernel
def serve(
    arrivals: Float64s,
    costs: Float64s,
    targets: Int32s,
    free: Float64s,
    done: Float64s,
    start: int,
    stop: int,
) -> None:
    """First in, first out."""
    for i in range(start, stop):
        op = targets[i]
        free[op] = max(arrivals[i], free[op]) + costs[i, op]
        done[i] = free[op]


@kernel
def full_knowledge(arrivals: Float64s, costs: Float64s) -> float:
    """Mean completion time of the greedy rule on exact costs and queues."""
    free = np.zeros(costs.shape[1])
    total = 0.0
    for i in range(arrivals.size):
        op = np.argmin(free)
        free[op] = max(arrivals[i], free[op]) + costs[i, op]
        total += free[op] - arrivals[i]
    return total / arrivals.size


def completion_times(router: Grouping, keys: UInt64s, costs: Float64s, gap: float) -> Float64s:
    """Seconds from a record's arrival to its completion."""
    n, m = costs.shape[1], keys.size
    arrivals: Float64s = np.arange(m, dtype=np.float64) * gap
    times = (arrivals * 1e6).astype(np.int64)
    done, targets, free = np.empty(m), np.zeros(m, np.int32), np.zeros(n)
    waiting = np.empty(0, np.int64)
    for start in range(0, m, INTERVAL):
        stop = min(start + INTERVAL, m)
        ready = done[waiting] <= arrivals[start]
        rows = waiting[ready][np.argsort(done[waiting[ready]], kind="stable")]
        router.begin_batch(report(rows, targets, keys, costs))
        targets[start:stop] = router.route(keys[start:stop], times[start:stop])
        serve(arrivals, costs, targets, free, done, start, stop)
        waiting = np.concatenate([waiting[~ready], np.arange(start, stop)])
    latencies: Float64s = done - arrivals
    return latencies


def report(rows: np.ndarray, targets: Int32s, keys: UInt64s, costs: Float64s) -> Feedback:
    """What these records took, one row each."""
    where, n = targets[rows], costs.shape[1]
    seconds = costs[rows, where]
    return Feedback(
        np.bincount(where, minlength=n).astype(np.int64),
        np.bincount(where, seconds, n).astype(np.float64),
        where,
        keys[rows],
        np.ones(rows.size, np.int64),
        seconds,
    )


def speed_ups(case: Case, seed: int) -> dict[str, float]:
    """Round robin's mean completion time over each variant's."""
    keys, costs = stream(case, seed)
    gap = float(costs.mean()) / case.partitions * case.over
    shuffle = create("shuffle", partitions=case.partitions)
    robin = float(completion_times(shuffle, keys, costs, gap).mean())
    ratios = {}
    for name, options in VARIANTS.items():
        chosen = {"memory": "stream", "epsilon": case.epsilon, **options}
        router = create("posg", partitions=case.partitions, seed=seed, **chosen)
        ratios[name] = robin / float(completion_times(router, keys, costs, gap).mean())
    ratios["full"] = robin / full_knowledge(np.arange(keys.size) * np.float64(gap), costs)
    return ratios


def measure(case: Case, seeds: int) -> dict[str, object]:
    """A row: the medians over the seeds."""
    samples = [speed_ups(case, seed) for seed in range(seeds)]
    medians = {
        name: round(float(np.median([sample[name] for sample in samples])), 3)
        for name in samples[0]
    }
    return {"table": case.table, "value": case.value, "paper": case.paper, **medians}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--table", default="", help="only tables whose name has this in it")
    parser.add_argument("--records", type=int, help="in place of the paper's numbers")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    names = ["table", "value", "paper", *VARIANTS, "full"]
    if not options.json:
        print("| " + " | ".join(names) + " |\n|" + "---|" * len(names))
    rows = []
    for case in wanted(options.table, options.records):
        row = measure(case, options.seeds)
        rows.append(row)
        if not options.json:
            print("| " + " | ".join(str(row[name]) for name in names) + " |", flush=True)
    if options.json:
        print(json.dumps(rows, indent=2))


if __name__ == "__main__":
    main()
