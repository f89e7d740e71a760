"""What FISH gains, and over what: the tables of docs/fish-findings.md.

    python -m benchmarks.fish_findings [--seeds 3] [--stream one-change ...]

128 partitions, 5 sources, 10^5 keys, 100 us a record; records arrive as fast as all partitions
together can serve them. Three streams: the ranking of the keys is another in the last fifth only,
as in the paper; in the last fifth of each of ten runs, coming back in between; or new and random in
every hundredth of the stream.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from benchmarks.tables import MEETS, Row, Table, machine, show, verdict
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.streams.traces import open_trace

STREAMS = {
    "one-change": "zipf-drift:records={},runs=1",
    "comes-back": "zipf-drift:records={},runs=10",
    "all-the-time": "zipf-drift:records={},drift_share=1,runs=100,ranking=random",
}
ZIPFS = (1.0, 1.4, 2.0)
RECORDS = 2_000_000
PARTITIONS = 128
_PUBLISHED = "fish:alpha=1,records_min=0,rule=w_choices,placement=modulo,assignment=records"
GROUPINGS = {
    "shuffle": "shuffle",
    "partial_key": "partial_key",
    "d_choices": "d_choices",
    "w_choices": "w_choices",
    "W-Choices as published, 100 counters": f"{_PUBLISHED},counters=100",
    "W-Choices as published, 1000 counters": f"{_PUBLISHED},counters=1000",
    "fish without epochs": "fish:alpha=1",
    "fish": "fish",
}


@dataclass(frozen=True)
class Figures:
    """Of one run."""

    seconds: float
    p99_ms: float
    window: float
    replication: float


def measure(grouping: str, trace: str, seed: int) -> Figures:
    """One grouping on one stream."""
    scenario = Scenario.model_validate({
        "partitions": PARTITIONS, "sources": 5, "cost_us": 100.0,
        "arrival_per_second": PARTITIONS * 1e4, "seed": seed, "points": 100,
    })  # fmt: skip
    opened = open_trace(f"{trace},keys=100000,seed={seed + 1}")
    report = simulate(opened, GroupingSpec.parse(grouping), scenario, time.perf_counter)
    assert report.execution is not None
    return Figures(
        report.execution.execution_seconds,
        report.execution.latency_p99_ms,
        max(report.over_time.window_max_over_mean),
        report.replication,
    )


def rows(names: Sequence[str], records: int, seeds: int) -> Iterator[Row]:
    """A row for each stream, skew and grouping; medians of the seeds."""
    for name in names:
        for z in ZIPFS:
            trace = f"{STREAMS[name].format(records)},z={z}"
            runs = {
                label: [measure(grouping, trace, seed) for seed in range(seeds)]
                for label, grouping in GROUPINGS.items()
            }
            for label, figures in runs.items():
                pairs = zip(figures, runs["shuffle"], strict=True)
                yield {
                    "stream": name,
                    "z": z,
                    "grouping": label,
                    "time": median(own.seconds / least.seconds for own, least in pairs),
                    "p99 ms": median(run.p99_ms for run in figures),
                    "window": median(run.window for run in figures),
                    "pairs": median(run.replication for run in figures),
                    MEETS: verdict({}),
                }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fish_findings")
    parser.add_argument("--stream", nargs="+", choices=list(STREAMS), default=list(STREAMS))
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--seeds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    formats = {"stream": "<12", "z": "4.1f", "grouping": "<38", "time": "6.2f", "p99 ms": "7.1f"}
    formats |= {"window": "6.2f", "pairs": "6.2f"}
    line = (
        f"{chosen.records} records, medians of {chosen.seeds} seeds; {machine()}. *time*: when the"
        " last record is served, over shuffle's. *p99*: of the records' latencies. *window*: the"
        " largest load over the mean in the worst hundredth of the stream. *pairs*: over keys."
    )
    measured = rows(chosen.stream, chosen.records, chosen.seeds)
    show(Table("what FISH gains, and over what", line, formats, measured))


if __name__ == "__main__":
    main()
