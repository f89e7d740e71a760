"""The table of `benchmarks.balance` on `level` from batch to batch: what its memory gives."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from benchmarks.simulated import BATCH_RECORDS, LEVEL_PARTITIONS, SOURCES, Options
from benchmarks.tables import MEETS, Row, Table, verdict
from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.registry import create
from unskew.grouping.simulation.shares import Cursor
from unskew.grouping.simulation.simulate import begin_all
from unskew.grouping.simulation.streams.traces import open_trace

ZIPFS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.8, 1.0, 1.2, 1.4, 1.6, 1.8, 1.9, 2.0)
BATCHES = 3
DRIFTS = (
    "zipf-drift:z=0.2,keys=10000,runs=2",
    "zipf-drift:z=0.2,keys=10000,drift_share=1,runs=80,ranking=random",
    "flash:z=0.2,share=0.02",
    "country:r=20",
    "half-skew:r=5",
    "trades-like:phases=4",
)
DRIFT_BATCHES = 8
LARGEST_MAX = 1.02
REPLICATION_MAX = 1.05


@dataclass(frozen=True)
class Batch:
    """One batch, all sources together."""

    max_over_mean: float
    replication: float
    least: float
    """The replication that a largest load of `LARGEST_MAX` times the mean needs, whoever routes."""


def play(
    trace: str,
    records: int,
    batches: int,
    partitions: int,
    sources: int,
    seed: int,
    **options: object,
) -> Iterator[Batch]:
    """Route batches with `level`; records are dealt round robin."""
    opened = open_trace(f"{trace},records={records * batches},seed={seed + 1}")
    cursor = Cursor(opened.chunks(), opened.records)
    routers = [
        create("level", partitions=partitions, source=source, sources=sources, seed=seed, **options)
        for source in range(sources)
    ]
    for number in range(batches):
        begin_all(routers, None)
        keys = _take(cursor, (number + 1) * records)
        routes = np.empty(keys.size, np.int64)
        for source, router in enumerate(routers):
            share = np.ascontiguousarray(keys[source::sources])
            routes[source::sources] = np.concatenate(list(router.route_chunks([(share, None)])))
        yield _measure(keys, routes, partitions)


def _take(cursor: Cursor, stop: int) -> UInt64s:
    parts = []
    while (piece := cursor.take(stop)) is not None:
        parts.append(piece.chunk.keys)
    return np.concatenate(parts)


def _measure(keys: UInt64s, routes: Int64s, partitions: int) -> Batch:
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    pairs = np.unique(numbers * partitions + routes).size
    fair = keys.size / partitions
    return Batch(
        float(np.bincount(routes).max() / fair),
        pairs / counts.size,
        float(np.ceil(counts / (LARGEST_MAX * fair)).sum() / counts.size),
    )


def level_later(options: Options) -> Table:
    """`level` from the second batch on."""
    return Table(
        "level-later: level from the second batch on",
        f"Batches of {BATCH_RECORDS} records; {BATCHES} of Zipf's law over 10^4 keys,"
        f" {DRIFT_BATCHES} of the streams that change. *first*: pairs over keys in the first batch,"
        " where nothing is known of a batch before; *then* and *max/mean*: in the worst of the"
        f" batches and seeds after it, at most {REPLICATION_MAX} and {LARGEST_MAX}. *exact*: as"
        " *then*, with `slack: 0`. *least*: the pairs over keys without which no routing, whatever"
        f" it knows, has a largest load of {LARGEST_MAX} times the mean.",
        {
            "trace": "<66", "z": "4.1f", "n": "4", "sources": "7", "first": "6.3f",
            "then": "6.3f", "max/mean": "8.4f", "exact": "6.3f", "least": "6.3f",
        },
        _rows(options),
    )  # fmt: skip


def _rows(options: Options) -> Iterator[Row]:
    for records in options.sizes([BATCH_RECORDS]):
        for n in options.widths(LEVEL_PARTITIONS):
            for sources in SOURCES:
                for zipf in options.skews(ZIPFS):
                    trace = f"zipf:z={zipf},keys=10000"
                    row = _row(trace, records, BATCHES, n, sources, options.seeds)
                    yield {**row, "trace": "zipf", "z": zipf}
        for n in options.widths((20, 100)):
            for sources in SOURCES[1:]:
                for trace in DRIFTS:
                    yield _row(trace, records, DRIFT_BATCHES, n, sources, options.seeds)


def _row(trace: str, records: int, batches: int, n: int, sources: int, seeds: int) -> Row:
    runs = [list(play(trace, records, batches, n, sources, seed)) for seed in range(seeds)]
    first = max(run[0].replication for run in runs)
    later = [batch for run in runs for batch in run[1:]]
    then, largest = (
        max(getattr(batch, name) for batch in later) for name in ("replication", "max_over_mean")
    )
    exact = None
    if batches == DRIFT_BATCHES:
        again = [
            play(trace, records, batches, n, sources, seed, slack=0.0) for seed in range(seeds)
        ]
        exact = max(batch.replication for run in again for batch in list(run)[1:])
    return {
        "trace": trace,
        "z": None,
        "n": n,
        "sources": sources,
        "first": first,
        "then": then,
        "max/mean": largest,
        "exact": exact,
        "least": max(batch.least for batch in later),
        MEETS: verdict({
            "balance": largest <= LARGEST_MAX,
            "replication": then <= max(REPLICATION_MAX, exact or 0.0),
        }),
    }  # fmt: skip
