"""Tables of `benchmarks.balance` on `level` from batch to batch: its memory, and its `slack`."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from statistics import NormalDist

import numpy as np

from benchmarks.kept_figures import Figures
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

CURVE_PARTITIONS = 100
CURVE_ZIPFS = (0.0, 0.3, 0.5)
CURVE_SLACKS = (None, 0.14, 0.1, 0.07, 0.035, 0.017, 0.0)
CURVE_KEYS = 10_000


@dataclass(frozen=True)
class Batch:
    """One batch, all sources together."""

    max_over_mean: float
    replication: float
    least: float
    """The replication that a largest load of `LARGEST_MAX` times the mean needs, whoever routes."""


_FIGURES = tuple(each.name for each in fields(Batch))


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
                    row = _row(options, trace, records, BATCHES, n, sources)
                    yield {**row, "trace": "zipf", "z": zipf}
        for n in options.widths((20, 100)):
            for sources in SOURCES[1:]:
                for trace in DRIFTS:
                    yield _row(options, trace, records, DRIFT_BATCHES, n, sources)


def _played(
    options: Options,
    trace: str,
    records: int,
    batches: int,
    n: int,
    sources: int,
    **slack: float | None,
) -> list[list[Batch]]:
    """The batches of every seed."""
    slack = {name: value for name, value in slack.items() if value is not None}
    label = "level" + "".join(f":{name}={value}" for name, value in slack.items())
    run = f"play {trace},records={records * batches} {batches=} partitions={n} {sources=}"

    def batches_of(seed: int) -> list[Batch]:
        def measure() -> Figures:
            played = list(play(trace, records, batches, n, sources, seed, **slack))
            return {each: [getattr(batch, each) for batch in played] for each in _FIGURES}

        kept = options.kept.figures(label, f"{run} {seed=}", measure)
        return [Batch(*values) for values in zip(*(kept[each] for each in _FIGURES), strict=True)]

    return [batches_of(seed) for seed in range(options.seeds)]


def _row(options: Options, trace: str, records: int, batches: int, n: int, sources: int) -> Row:
    runs = _played(options, trace, records, batches, n, sources)
    first = max(run[0].replication for run in runs)
    later = [batch for run in runs for batch in run[1:]]
    then, largest = (
        max(getattr(batch, name) for batch in later) for name in ("replication", "max_over_mean")
    )
    exact = None
    if batches == DRIFT_BATCHES:
        again = _played(options, trace, records, batches, n, sources, slack=0.0)
        exact = max(batch.replication for run in again for batch in run[1:])
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


def curve(options: Options) -> Table:
    """Replication over largest load, by `slack`, beside what theory says."""
    return Table(
        "curve: pairs over the largest load, by slack",
        f"The second batch of {BATCH_RECORDS} records of Zipf's law over {CURVE_KEYS} keys, by"
        " `slack` (*default*: 2.75 standard deviations of a source's own share). *pairs*: over"
        " keys, and *max/mean*, means of the seeds; *least* and *most* of them. *theory*: the"
        " largest load, on average, if with so many pairs each source did the best it can with its"
        " own share alone, every shared key in two partitions: docs/level.md. With `slack: 0`"
        " there is no plan, and each source is exact.",
        {
            "sources": "7", "n": "4", "z": "4.1f", "slack": ">8", "pairs": "6.3f",
            "max/mean": "8.4f", "least": "6.4f", "most": "6.4f", "theory": "6.4f",
        },
        _curve_rows(options),
    )  # fmt: skip


def _curve_rows(options: Options) -> Iterator[Row]:
    n = CURVE_PARTITIONS
    for records in options.sizes([BATCH_RECORDS]):
        for sources in SOURCES[1:]:
            for zipf in options.skews(CURVE_ZIPFS):
                for slack in CURVE_SLACKS:
                    trace = f"zipf:z={zipf},keys={CURVE_KEYS}"
                    runs = _played(options, trace, records, 2, n, sources, slack=slack)
                    later = [run[1] for run in runs]
                    pairs = float(np.mean([batch.replication for batch in later]))
                    loads = [batch.max_over_mean for batch in later]
                    yield {
                        "sources": sources,
                        "n": n,
                        "z": zipf,
                        "slack": "default" if slack is None else f"{slack:g}",
                        "pairs": pairs,
                        "max/mean": float(np.mean(loads)),
                        "least": min(loads),
                        "most": max(loads),
                        "theory": least_expected(pairs - 1.0, records, zipf, n, sources),
                        MEETS: verdict({}),
                    }


def least_expected(extra: float, records: int, zipf: float, partitions: int, sources: int) -> float:
    """The largest load over the mean with `extra` pairs a key, at best and on average.

    The largest `extra` of the keys are shared, in two partitions each. A source's other records of
    a partition depart from their part by chance, with a deviation of d = sqrt(others * partitions *
    sources / records) of it, others being their part of all records. It can move at most what its
    shared keys have. So what stays of a normal variable is what is beyond that part a of it, with
    the variance below; the sum over sources has 1 / sqrt(sources) of its deviation, and the fullest
    partition is the largest of so many that are independent.

    >>> [round(least_expected(extra, 10**6, 0.0, 100, 48), 4) for extra in (0.0, 0.05, 1.0)]
    [1.0251, 1.0125, 1.0]
    """
    normal = NormalDist()
    shares = np.arange(1, CURVE_KEYS + 1.0) ** -zipf
    shared = float(shares[: round(extra * CURVE_KEYS)].sum() / shares.sum())
    if shared >= 1.0:
        return 1.0
    a = shared / ((1.0 - shared) * partitions * sources / records) ** 0.5
    left = (1.0 - shared) * 2 * ((1 + a * a) * normal.cdf(-a) - a * normal.pdf(a))
    grid = np.linspace(-8.0, 8.0, 4001)
    below = np.array([normal.cdf(x) for x in grid]) ** partitions
    largest = float((grid[1:] * np.diff(below)).sum())
    return 1.0 + float(largest * np.sqrt(max(left, 0.0) * partitions / records))
