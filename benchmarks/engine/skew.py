"""What routing brings where a record's work is dear: batches as long as their slowest partition.

The operator `paced` sleeps a declared time a record, so that sixteen slots are sixteen on any
machine. What is left is what a batch of this engine costs beside the work itself.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.engine.measure import KEYS, Bench, Meter, Run, middle, settle, zipf
from benchmarks.tables import MEETS, Row, Table, verdict
from unskew.config.models.job import Job
from unskew.grouping.registry import GROUPINGS
from unskew.jobs.engine.service import Service
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_stats import BatchStats
from unskew.jobs.observe.batches.batch_time import split_seconds
from unskew.jobs.observe.follower import Follower

SLOTS = 16
MASTER = f"local[{SLOTS}]"
COST_US = 100
REFERENCE, BASELINE = "shuffle", "key"
# Those that are judged first: a run that is cut off has shown what matters most.
_FIRST = (REFERENCE, BASELINE, "level", "fish", "w_choices", "d_choices")
NAMES = (*_FIRST, "none", *(name for name in GROUPINGS if name not in _FIRST))
X_SHUFFLE_MAX = {"level": 1.05, "fish": 1.15, "w_choices": 1.15, "d_choices": 1.15}
X_KEY_MAX = 1.05
KEY_SLOWER_MIN = 3.0
JUDGED_EXPONENT = 1.4
REPLICATION_MAX = 1.1
LONG_SECONDS = 10.0
_WARM_RECORDS, _WARM_BATCHES = 100_000, 5


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 512_000
    batches: int = 3
    exponents: tuple[float, ...] = (1.4, 0.0, 2.0, 0.8, 1.1)
    names: tuple[str, ...] = NAMES


QUICK = Size(8000, 2, (1.4, 0.0), (REFERENCE, BASELINE, "none", "level"))


@dataclass(frozen=True)
class Cell:
    """One grouping on one topic."""

    run: Run
    stats: list[BatchStats] = field(default_factory=list)
    """The stats of the batches that count."""
    parts: list[Mapping[str, float]] = field(default_factory=list)
    """Where the time of these batches went."""

    @property
    def seconds(self) -> float:
        """The median time of a batch."""
        return middle(self.run.seconds)

    def mean(self, name: str) -> float:
        """The mean of one of the stats over the batches."""
        return float(np.mean([getattr(stats, name) for stats in self.stats]))

    def part_seconds(self) -> dict[str, float]:
        """The median seconds of each part of a batch; empty of a query by hand."""
        names = self.parts[0] if self.parts else ()
        return {name: round(middle(each[name] for each in self.parts), 3) for name in names}

    @property
    def work_seconds(self) -> float:
        """Busy seconds of all partitions together in a batch, median."""
        return middle(float(stats.busy_seconds.sum()) for stats in self.stats)

    @property
    def rest_seconds(self) -> float:
        """What a batch took beside the work of its slowest partition, median."""
        pairs = zip(self.run.seconds, self.stats, strict=True)
        return middle(seconds - float(stats.busy_seconds.max()) for seconds, stats in pairs)


def skew(bench: Bench, size: Size) -> Table:
    """Every grouping at every skew."""
    formats = {
        "z": "4.1f",
        "grouping": "<18",
        "records/s": "9,.0f",
        "p50 s": "6.2f",
        "p99 s": "6.2f",
        "x shuffle": "9.2f",
        "x key": "6.2f",
        "max/mean": "8.2f",
        "pairs/key": "9.2f",
        "rest s": "7.2f",
        "batches": "7",
    }
    ideal = size.records * COST_US / 1e6 / SLOTS
    line = (
        f"`paced` at {COST_US} us a record, {SLOTS} slots and partitions, {size.records:,} records"
        f" a batch ({ideal:.1f} s if all slots work to the end), {KEYS:,} keys, at most"
        f" {size.batches - 1} warm batches a row (p99 of so few is the longest). `rest s`: the"
        " batch without its slowest partition's work: reading, routing, shuffle, merge and what the"
        " table `tiny` shows to be fixed. At z = 1.4 `level` must be within 5 % of"
        " `shuffle` with pairs/key near 1, `fish`, `w_choices` and `d_choices` within 15 %, `key`"
        " at least 3 times slower; at z = 0 none may lose more than 5 % to `key`."
    )
    return Table("skew", line, formats, _skew(bench, size))


def _skew(bench: Bench, size: Size) -> Iterator[Row]:
    topics = {z: _topic(bench, z, size.records * size.batches) for z in size.exponents}
    with bench.spark(MASTER) as (spark, meter):
        warm_up(bench, spark, meter, size.records)
        # The reference comes first; measured cold it would flatter all others.
        first = paced(bench, topics[size.exponents[0]], size.records, {"type": REFERENCE})
        measure(spark, meter, first)
        for exponent, topic in topics.items():
            cells: dict[str, Cell] = {}
            for name in size.names:
                batches = _batches(name, exponent, size)
                job = paced(bench, topic, size.records, {"type": name}, batches=batches)
                cells[name] = measure(spark, meter, job)
                yield _row(exponent, name, cells)


def _topic(bench: Bench, exponent: float, records: int) -> str:
    topic = f"zipf-{exponent}"
    bench.fill(topic, zipf(records, exponent))
    return topic


def _batches(name: str, exponent: float, size: Size) -> int:
    """One warm batch where nothing is judged, or where the hottest key says that it takes long."""
    candidates = {"key": 1, "none": 1, "partial_key": 2}.get(name, SLOTS)
    hottest = float((zipf(10_000, exponent) == 0).mean())
    expected = size.records * COST_US / 1e6 * hottest / candidates
    judged = exponent in (0.0, JUDGED_EXPONENT)
    return size.batches if judged and expected < LONG_SECONDS else 2


def warm_up(bench: Bench, spark: SparkSession, meter: Meter, records: int) -> None:
    """Let the JVM compile and the workers start; no longer than the batches to come are."""
    size = min(_WARM_RECORDS, records)
    if "warm" not in bench.filled:
        bench.fill("warm", zipf(size * _WARM_BATCHES, 1.0))
    for name in ("level", "shuffle"):
        job = paced(bench, "warm", size, {"type": name}, {"cost": "1 us"})
        Service(job, spark).run()
    settle(meter)


def paced(
    bench: Bench,
    topic: str,
    records: int,
    grouping: Mapping[str, Any],
    options: Mapping[str, Any] | None = None,
    batches: int | None = None,
) -> Job:
    """A job that takes its time for each record."""
    operator = {"type": "paced", "key": "value", "cost": f"{COST_US} us", **(options or {})}
    more: dict[str, Any] = {"operator": operator, "partitions": SLOTS}
    if batches:
        more["source.start"] = bench.last(topic, records * batches)
    return bench.job(topic, records, grouping, **more)


def measure(spark: SparkSession, meter: Meter, job: Job, skip: int = 1) -> Cell:
    """Run a job to its end; its first batches, where all is cold or unlearned, do not count."""
    stats = _KeepStats()
    Service(job, spark, (stats,)).run()
    run = settle(meter)
    run.skip = skip
    numbers = [batch.number for batch in run.warm]
    return Cell(
        run,
        [stats.by_batch[number] for number in numbers],
        [stats.parts_by_batch[number] for number in numbers],
    )


class _KeepStats(Follower):
    """Keeps what the partitions reported, and where the time went."""

    def __init__(self) -> None:
        self.by_batch: dict[int, BatchStats] = {}
        self.parts_by_batch: dict[int, Mapping[str, float]] = {}

    def on_batch_done(self, done: BatchDone) -> None:
        if done.stats is not None:
            self.by_batch[done.batch] = done.stats
            self.parts_by_batch[done.batch] = split_seconds(done)


def _row(exponent: float, name: str, cells: Mapping[str, Cell]) -> Row:
    cell, reference, baseline = cells[name], cells[REFERENCE], cells.get(BASELINE)
    x_shuffle = cell.seconds / reference.seconds
    x_key = cell.seconds / baseline.seconds if baseline else None
    return {
        "z": exponent,
        "grouping": name,
        "records/s": cell.run.records_per_second,
        "p50 s": cell.seconds,
        "p99 s": float(np.percentile(cell.run.seconds, 99)),
        "x shuffle": x_shuffle,
        "x key": x_key,
        "max/mean": cell.mean("max_over_mean"),
        "pairs/key": cell.mean("replication"),
        "rest s": cell.rest_seconds,
        "batches": len(cell.run.warm),
        MEETS: verdict(_checks(exponent, name, cell, x_shuffle, x_key)),
    }


def _checks(
    exponent: float, name: str, cell: Cell, x_shuffle: float, x_key: float | None
) -> dict[str, bool | None]:
    if exponent == 0 and x_key is not None:
        return {"x key": x_key <= X_KEY_MAX if name not in (BASELINE, "none") else None}
    if exponent != JUDGED_EXPONENT:
        return {}
    if name == BASELINE:
        return {"slower": x_shuffle >= KEY_SLOWER_MIN}
    most = X_SHUFFLE_MAX.get(name)
    few_pairs = cell.mean("replication") <= REPLICATION_MAX if name == "level" else None
    return {"time": x_shuffle <= most if most else None, "pairs": few_pairs}
