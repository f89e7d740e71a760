"""`grouping: auto` beside each fixed way, on the same topic: what it takes, and how far behind.

`auto` begins as a user's job does: with a sample, the constants of this machine if `unskew
calibrate` has measured them, and nothing that it has learnt. Its first batches try ways; those from
the fifth on are compared with the best fixed way, and so is all of its time.
"""

import itertools
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.engine.measure import Bench, Meter, is_whole, middle, settle, zipf
from benchmarks.engine.skew import MASTER, SLOTS, warm_up
from benchmarks.engine.where import BORDERS, Cell, describe_work, make_grid
from benchmarks.tables import MEETS, Row, Table, cells_left, verdict
from unskew.config.models.job import Job
from unskew.jobs.engine.service import Service
from unskew.jobs.local.machine_constants import find_calibration
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower

WAYS = ("local", "level", "key", "none")
AUTO = "auto"
LEARNED_AFTER = 4
BEHIND_MAX = 1.05
STREAM_BATCHES = 100
_WARM_ROUNDS = 2
CELLS = (
    *BORDERS,
    Cell(0.0, 100.0, 0.1),
    Cell(0.8, 10.0),
    Cell(0.0, 10.0, 10.0, keys=1000),
)
"""Those of the grid that are measured unless others are named."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 160_000
    batches: int = 13
    """Of `auto`; the first is cold and in no figure."""
    fixed_batches: int = 5
    cells: tuple[Cell, ...] = CELLS


QUICK = Size(4000, 7, 3, (Cell(1.4, 10.0),))


def left_of(size: Size, rows: Sequence[Row], patterns: Collection[str]) -> Size:
    """What is left of a table that has these rows; with patterns, any of the grid's cells."""
    cells = make_grid() if patterns else size.cells
    return replace(size, cells=cells_left(cells, rows, patterns))


def auto(bench: Bench, size: Size) -> Table:
    """Some cells of `where`, with `auto` beside each way that it takes."""
    formats = {"cell": "<34"} | {f"{way} s": "8.2f" for way in WAYS}
    formats |= {"auto s": "8.2f", "x best": "6.2f", "x total": "7.2f"}
    formats |= {f"x {STREAM_BATCHES}": "6.2f", "changes": "7", "changes s": "9.1f"}
    formats |= {"first s": "7.1f", "took": "<40", "measured": "<16"}
    constants = "measured" if find_calibration() else "the defaults"
    line = (
        f"`auto` beside each fixed way: {SLOTS} slots and partitions, {size.records:,} records a"
        f" batch, constants of the model {constants}. Of each job the first batch is cold and"
        f" counts nowhere; fixed ways: medians of the {size.fixed_batches - 1} behind it. `auto s`:"
        f" the median of its batches from the fifth to the last, {size.batches}th, without those"
        " that begin a changed query; `x best`: that over the best fixed way, at most"
        f" {BEHIND_MAX}. `x total`: all its time from the end of its first batch to that of its"
        " last, with what changes took and threw away, over as many batches of the best way."
        f" `x {STREAM_BATCHES}`: the same of {STREAM_BATCHES} batches, those that were not measured"
        f" counted as `auto s`, at most {BEHIND_MAX}. `changes s`: as the job itself reports it."
        " `first s`: from its start to the end of its first batch, with the sample and the first"
        " choice. `took`: its ways in their order, with the batches of each."
    )
    return Table(AUTO, line, formats, _auto(bench, size))


def _auto(bench: Bench, size: Size) -> Iterator[Row]:
    if not size.cells:
        return
    with bench.spark(MASTER) as (spark, meter):
        warm_up(bench, spark, meter, size.records)
        # Each way some times, or the first cells would pay for what the JVM compiles.
        for _ in range(_WARM_ROUNDS):
            for way in WAYS:
                _run(bench, spark, meter, size.cells[0], way, size, 2)
        for cell in size.cells:
            yield _measure_cell(bench, spark, meter, cell, size)


def _measure_cell(bench: Bench, spark: SparkSession, meter: Meter, cell: Cell, size: Size) -> Row:
    began = time.gmtime()
    fixed = {way: _run(bench, spark, meter, cell, way, size, size.fixed_batches) for way in WAYS}
    taken = _run(bench, spark, meter, cell, AUTO, size, size.batches)
    return {
        "cell": cell.name,
        **describe_run(fixed, taken),
        "records": size.records,
        "measured": time.strftime("%Y-%m-%d %H:%M", began),
    }


def describe_run(fixed: Mapping[str, "KeptBatches"], taken: "KeptBatches") -> Row:
    """A row without its cell: what `auto` took beside the fixed ways."""
    seconds = {way: middle(run.seconds[1:]) for way, run in fixed.items()}
    best = min(seconds, key=seconds.__getitem__)
    settled = middle(taken.settled_seconds())
    count = len(taken.seconds) - 1
    total, total_best = taken.warm_seconds, fixed[best].warm_seconds / (len(fixed[best].ends) - 1)
    stream = (total + (STREAM_BATCHES - count) * settled) / (
        count * total_best + (STREAM_BATCHES - count) * seconds[best]
    )
    x_best = settled / seconds[best]
    runs = [(way, len(list(group))) for way, group in itertools.groupby(taken.ways)]
    return {
        **{f"{way} s": each for way, each in seconds.items()},
        "auto s": settled,
        "x best": x_best,
        "x total": total / (count * total_best),
        f"x {STREAM_BATCHES}": stream,
        "changes": len(runs) - 1,
        "changes s": sum(taken.change_seconds),
        "first s": taken.ends[0] - taken.began,
        "took": ", ".join(f"{way} {batches}" for way, batches in runs),
        "batches": [round(each, 3) for each in taken.seconds],
        **{
            f"{way} batches": [round(each, 3) for each in run.seconds] for way, run in fixed.items()
        },
        MEETS: verdict({"x best": x_best <= BEHIND_MAX, "x 100": stream <= BEHIND_MAX}),
    }


class KeptBatches(Follower):
    """Keeps the whole batches of a job: how long each took, when it was done, what it had."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.seconds: list[float] = []
        self.ends: list[float] = []
        self.ways: list[str] = []
        self.change_seconds: list[float] = []
        self._most = 0

    def on_batch_done(self, done: BatchDone) -> None:
        """Keep a batch; an incomplete last one is left out."""
        self._most = max(self._most, done.source_records)
        if not is_whole(done.source_records, self._most):
            return
        self.seconds.append(done.seconds)
        self.ends.append(time.monotonic())
        self.ways.append(done.choice.way if done.choice else "")
        self.change_seconds.append((done.choice and done.choice.change_seconds) or 0.0)

    @property
    def warm_seconds(self) -> float:
        """From the end of the first batch to that of the last."""
        return self.ends[-1] - self.ends[0]

    def settled_seconds(self) -> Sequence[float]:
        """The batches from the fifth on, but those that began a changed query, if others are."""
        late = range(LEARNED_AFTER, len(self.seconds))
        same = [number for number in late if self.ways[number] == self.ways[number - 1]]
        return [self.seconds[number] for number in same or late]


def _run(
    bench: Bench,
    spark: SparkSession,
    meter: Meter,
    cell: Cell,
    way: str,
    size: Size,
    batches: int,
) -> KeptBatches:
    topic = f"{AUTO}-{cell.topic}"
    if topic not in bench.filled:
        words = zipf(size.records * size.batches, cell.exponent, cell.keys)
        bench.fill(topic, words, keyed=cell.keyed)
    more: dict[str, Any] = {"operator": describe_work(cell), "partitions": SLOTS}
    more["source.start"] = bench.last(topic, size.records * batches)
    job: Job = bench.job(topic, size.records, {"type": way}, **more)
    kept = KeptBatches()
    Service(job, spark, (kept,)).run()
    settle(meter)
    return kept
