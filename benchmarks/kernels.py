"""How fast groupings route: `python -m benchmarks.kernels`, one core, warm and cold.

Zipf 1.4 over 10^5 keys. Rates are the best of several rounds, and every round times `key` beside
the grouping, so that the ratio holds on a busy machine too. Groupings that learn from reports get
them before they are timed. The cold start is that of a fresh process whose kernels are in numba's
cache: from an imported registry to the first routes. Seconds are those of the CPU, which on a quiet
machine are those of the clock. `--repeat 3` measures the whole table three times, some moments
apart, and keeps the best: for machines on which others work as well. `--sources 48` measures
several sources that route a batch together, and what agreeing takes them.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from statistics import median

import numpy as np

from benchmarks.tables import MEETS, UNJUDGED, Table, machine, show
from unskew.grouping.base import Chunk, Feedback, Grouping, UInt64s
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.simulation.streams.traces import open_trace

PARTITIONS = (100, 1000)
TRACE = "zipf:z=1.4,keys=100000,seed=1"
TRACES_OF_SOURCES = {"zipf 1.4": TRACE, "uniform": "uniform:keys=10000,seed=1"}
CHUNK_RECORDS = 100_000
WARM_BATCHES = 6
"""Enough for what learns from reports (`posg`) to leave its first states."""
_WARM_BATCHES_OF_SOURCES = 2
BASELINE = "key"
GOALS = {"key": 500e6, "shuffle": 500e6, "partial_key": 100e6, "level": 20e6}
GOAL = 10e6
COLD_GOAL_SECONDS = 1.0

COLD_START = """
import time
import numpy as np
from unskew.grouping.registry import create
keys = np.arange(1000, dtype=np.uint64)
began = time.process_time()
router = create({name!r}, partitions=100)
router.begin_batch()
times = np.arange(1000, dtype=np.int64) if router.wants_timestamps else None
for _ in router.route_chunks([(keys, times)]):
    pass
print(time.process_time() - began)
"""


@dataclass(frozen=True)
class Row:
    """One grouping's figures."""

    grouping: str
    records_per_second: dict[int, float]
    """By the number of partitions."""
    ratio_to_key: dict[int, float]
    """Time per record over that of `key` in the same rounds."""
    scaling: float
    """The rate with the most partitions over the rate with the fewest."""
    state_bytes: dict[int, int]
    cold_start_seconds: float


class Bench:
    """The records, and how to route them."""

    def __init__(self, records: int) -> None:
        trace = open_trace(f"{TRACE},records={records}")
        keys = np.concatenate([chunk.keys for chunk in trace.chunks()])
        times = np.arange(records, dtype=np.int64) * 100
        cuts = range(CHUNK_RECORDS, records, CHUNK_RECORDS)
        self._chunks = list(zip(np.split(keys, cuts), np.split(times, cuts), strict=True))

    def chunks(self) -> Iterator[Chunk]:
        """Yield the trace in chunks, as a source gets its share."""
        yield from self._chunks

    def rate(self, router: Grouping, feedback: Feedback | None = None) -> float:
        """Records a second over one batch."""
        router.begin_batch(feedback)
        began = time.thread_time()
        routed = sum(routes.size for routes in router.route_chunks(self.chunks()))
        return routed / (time.thread_time() - began)

    def feedback(self, router: Grouping) -> Feedback | None:
        """What partitions would report of the batch, if the grouping wants to know."""
        if not router.wants_feedback:
            return None
        keys = np.concatenate([keys for keys, _ in self._chunks])
        routes = np.concatenate(list(router.route_chunks(self.chunks())))
        pairs = np.unique(np.stack([routes.astype(np.uint64), keys]), axis=1, return_counts=True)
        partitions = pairs[0][0].astype(np.int32)
        size = router.setting.partitions
        records = np.bincount(routes, minlength=size)
        return Feedback(
            records=records.astype(np.int64),
            busy_seconds=records.astype(np.float64) * 1e-5,
            key_partitions=partitions,
            key_hashes=pairs[0][1].copy(),
            key_records=pairs[1].astype(np.int64),
            key_seconds=pairs[1].astype(np.float64) * 1e-5,
        )


def measure(name: str, bench: Bench, rounds: int) -> Row:
    """All figures of one grouping."""
    rates, ratios, sizes = {}, {}, {}
    for partitions in PARTITIONS:
        router = create(name, partitions=partitions)
        baseline = create(BASELINE, partitions=partitions)
        feedback = bench.feedback(router)
        for _ in range(WARM_BATCHES):
            bench.rate(router, feedback)
            bench.rate(baseline)
        pairs = [(bench.rate(router, feedback), bench.rate(baseline)) for _ in range(rounds)]
        rates[partitions] = max(rate for rate, _ in pairs)
        ratios[partitions] = max(base for _, base in pairs) / rates[partitions]
        sizes[partitions] = sum(array.nbytes for array in router.state.values())
    scaling = rates[PARTITIONS[-1]] / rates[PARTITIONS[0]]
    return Row(name, rates, ratios, scaling, sizes, cold_start(name))


def best(rows: Sequence[Row]) -> Row:
    """One grouping's best rates and cold start; the ratio is to the best `key` of all runs."""
    rates = {n: max(row.records_per_second[n] for row in rows) for n in PARTITIONS}
    baselines = {
        n: max(row.records_per_second[n] * row.ratio_to_key[n] for row in rows) for n in PARTITIONS
    }
    return Row(
        rows[0].grouping,
        rates,
        {n: baselines[n] / rates[n] for n in PARTITIONS},
        rates[PARTITIONS[-1]] / rates[PARTITIONS[0]],
        rows[0].state_bytes,
        min(row.cold_start_seconds for row in rows),
    )


def cold_start(name: str) -> float:
    """Seconds to the first routes in a fresh process, the better of two."""
    command = [sys.executable, "-c", COLD_START.format(name=name)]
    runs = [subprocess.run(command, capture_output=True, check=True, text=True) for _ in range(2)]
    return min(float(run.stdout) for run in runs)


def table(rows: Sequence[Row]) -> str:
    """One line a grouping; a mark where a goal is missed."""
    small, large = PARTITIONS
    head = (
        f"{'grouping':20}{f'M/s n={small}':>12}{'x key':>8}{f'M/s n={large}':>12}{'x key':>8}"
        f"{'scaling':>9}{'state kB':>10}{'cold s':>8}  goal"
    )
    return "\n".join([head, *map(_line, rows)])


def _line(row: Row) -> str:
    small, large = PARTITIONS
    return (
        f"{row.grouping:20}"
        f"{row.records_per_second[small] / 1e6:>12.1f}{row.ratio_to_key[small]:>8.1f}"
        f"{row.records_per_second[large] / 1e6:>12.1f}{row.ratio_to_key[large]:>8.1f}"
        f"{row.scaling:>9.2f}{row.state_bytes[large] / 1e3:>10,.0f}"
        f"{row.cold_start_seconds:>8.2f}  {', '.join(missed(row)) or 'met'}"
    )


def missed(row: Row) -> list[str]:
    """The goals that this run does not show."""
    goal = GOALS.get(row.grouping, GOAL)
    checks = {
        f"below {goal / 1e6:.0f} M/s": row.records_per_second[PARTITIONS[0]] < goal,
        "scaling below 0.25": row.scaling < 0.25,
        f"cold above {COLD_GOAL_SECONDS:.0f} s": row.cold_start_seconds > COLD_GOAL_SECONDS,
    }
    return [problem for problem, missed in checks.items() if missed]


def kernels_of_sources(names: Sequence[str], sources: int, records: int, rounds: int) -> Table:
    """Measure several sources: a batch is dealt to them round robin, and then all agree.

    With uniform keys `level` follows a plan from the second batch on, with Zipf's law it has none.
    """
    return Table(
        f"{sources} sources",
        f"Batches of {records} records, {PARTITIONS[0]} partitions, seconds of the CPU, medians of"
        f" {rounds} batches. *M/s*: all records over the seconds of all sources. *share us*: what"
        " the share of one source takes. *agree ms*: what sources share of the batch before,"
        " reckoned once. *state kB*: of one source.",
        {
            "grouping": "<18", "trace": "<8", "M/s": "7.1f", "share us": "9.0f",
            "agree ms": "9.1f", "state kB": "9.1f",
        },
        _rows_of_sources(names, sources, records, rounds),
    )  # fmt: skip


def _rows_of_sources(
    names: Sequence[str], sources: int, records: int, rounds: int
) -> Iterator[dict[str, object]]:
    for trace, spec in TRACES_OF_SOURCES.items():
        chunks = open_trace(
            f"{spec},records={records * (_WARM_BATCHES_OF_SOURCES + rounds)}"
        ).chunks()
        keys = np.concatenate([chunk.keys for chunk in chunks])
        batches = np.split(keys, _WARM_BATCHES_OF_SOURCES + rounds)
        for name in names:
            routing, agreeing, state = _measure_sources(name, sources, batches)
            yield {
                "grouping": name,
                "trace": trace,
                "M/s": records / routing / 1e6,
                "share us": routing / sources * 1e6,
                "agree ms": None if agreeing is None else agreeing * 1e3,
                "state kB": state / 1e3,
                MEETS: UNJUDGED,
            }


def _measure_sources(
    name: str, sources: int, batches: Sequence[UInt64s]
) -> tuple[float, float | None, int]:
    """Seconds of a batch's routing and of agreeing before it, and a source's bytes of state."""
    routers = [
        create(name, partitions=PARTITIONS[0], source=source, sources=sources)
        for source in range(sources)
    ]
    seconds = [_play_batch(routers, batch) for batch in batches][_WARM_BATCHES_OF_SOURCES:]
    routing, agreeing = (median(column) for column in zip(*seconds, strict=True))
    state = sum(array.nbytes for array in routers[0].state.values())
    return routing, agreeing if routers[0].wants_agreement else None, state


def _play_batch(routers: Sequence[Grouping], batch: UInt64s) -> tuple[float, float]:
    began = time.thread_time()
    agrees = routers[0].wants_agreement
    agreed = routers[0].agree([router.state for router in routers]) if agrees else None
    agreeing = time.thread_time() - began
    times = np.arange(batch.size, dtype=np.int64) * 100
    routing = 0.0
    for source, router in enumerate(routers):
        share = np.ascontiguousarray(batch[source :: len(routers)])
        times_of_share = np.ascontiguousarray(times[source :: len(routers)])
        began = time.thread_time()
        router.begin_batch(None, agreed)
        for _ in router.route_chunks([(share, times_of_share)]):
            pass
        routing += time.thread_time() - began
    return routing, agreeing


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--grouping", action="append", choices=list(GROUPINGS))
    parser.add_argument("--sources", type=int, default=1, help="a table of several sources")
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args(arguments)
    if chosen.sources > 1:
        if chosen.json:
            parser.error("--json: the table of several sources is text")
        names = chosen.grouping or list(GROUPINGS)
        print(f"{machine()}\n")
        show(kernels_of_sources(names, chosen.sources, chosen.records, chosen.rounds))
        return
    bench = Bench(chosen.records)
    names = chosen.grouping or list(GROUPINGS)
    runs = [[measure(name, bench, chosen.rounds) for name in names] for _ in range(chosen.repeat)]
    rows = [best(repeats) for repeats in zip(*runs, strict=True)]
    if chosen.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print(f"{machine()}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
