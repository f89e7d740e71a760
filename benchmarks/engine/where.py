"""Where routing pays: one operator at the source, routed by `level`, and hashed, over a grid.

A cell is a name: what a record costs, what it costs a task to meet a key, how large a partial is,
and what the topic is like. The grid is chosen so that each border between two winners is crossed.
Rows that are there already are not measured again, so a run may be cut off and go on later; the
ratios of a row are of one run in one session. `docs/when.md` follows from the rows that are there.
"""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.engine.measure import Bench, Meter, settle, zipf
from benchmarks.engine.plain import at_source
from benchmarks.engine.skew import MASTER, SLOTS, measure, warm_up
from benchmarks.engine.skew import Cell as Measured
from benchmarks.tables import MEETS, UNJUDGED, Row, Table, cells_left
from unskew.config.models.job import Job

HAND = "by hand"
"""`mapInArrow` in the tasks that read and a sum behind it: no dead letters, no reports."""
WAYS = ("local", "level", "none", HAND)
WINS_BY = 1.05
"""Ways within this ratio count as equally fast."""
_LONG_BURN_US = 100.0
_WARM_ROUNDS = 3


@dataclass(frozen=True)
class Cell:
    """One point of the grid."""

    exponent: float
    record_us: float
    key_ms: float = 0.0
    partial_bytes: int = 0
    keys: int = 10_000
    keyed: bool = False
    """Is the topic keyed by the key, so that a Kafka partition is as skewed as its keys?"""
    spend: str = "sleep"

    @property
    def name(self) -> str:
        """How the cell is asked for, and found again."""
        parts = [f"z{self.exponent:g}", f"{self.record_us:g}us", f"{self.key_ms:g}ms"]
        parts += [f"{self.partial_bytes}B", f"{self.keys}keys"]
        parts += ["keyed"] * self.keyed + [self.spend] * (self.spend != "sleep")
        return "-".join(parts)

    @property
    def is_long(self) -> bool:
        """Do its batches keep two cores busy for a long time?"""
        return self.spend == "burn" and self.record_us >= _LONG_BURN_US

    @property
    def topic(self) -> str:
        """The topic that it reads; cells may share one."""
        return f"where-{self.exponent:g}-{self.keys}{'-keyed' * self.keyed}"


def make_grid() -> tuple[Cell, ...]:
    """The sixty cells, those that say most first."""
    skews = (1.4, 0.0, 0.8)
    work = (100.0, 10.0, 1.0)
    cells = [Cell(z, us, ms) for ms in (0.0, 1.0, 0.1) for us in work for z in skews]
    cells += [Cell(z, us, partial_bytes=4096) for us in (10.0, 100.0) for z in skews]
    cells += [
        Cell(z, us, ms, keyed=True) for ms in (0.0, 1.0) for us in (10.0, 100.0) for z in (1.4, 0.8)
    ]
    # Of fewer keys: ten milliseconds for each of 10,000 keys in each of 16 tasks are 100 s.
    cells += [Cell(z, 10.0, 10.0, keys=1000) for z in skews]
    cells += [Cell(z, us, keys=1_000_000) for us in (10.0, 100.0) for z in skews]
    cells += [Cell(z, 10.0, 0.1, keys=1_000_000) for z in skews]
    cells += [Cell(z, us, spend="burn") for us in (10.0, 100.0) for z in skews]
    return (*cells, Cell(1.4, 10.0, 0.1, spend="burn"))


BORDERS = (
    Cell(1.4, 100.0, 1.0),
    Cell(0.0, 10.0, 1.0),
    Cell(1.4, 10.0),
    Cell(1.4, 100.0),
    Cell(0.8, 100.0, 1.0),
)
"""Cells of the grid among which each way wins, for tables that measure few."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 160_000
    """So few that a cell with all its ways takes less than a minute."""
    batches: int = 4
    """A cold one, and three."""
    cells: tuple[Cell, ...] = make_grid()
    ways: tuple[str, ...] = WAYS
    warm_rounds: int = _WARM_ROUNDS


_WARM = Cell(1.4, 1.0)
QUICK = Size(4000, 2, (Cell(1.4, 10.0), Cell(0.0, 10.0, 0.1, keys=100)), warm_rounds=1)


def left_of(size: Size, rows: Sequence[Row], patterns: Collection[str]) -> Size:
    """What is left of a table that has these rows; with patterns, of the cells that match one."""
    return replace(size, cells=cells_left(size.cells, rows, patterns))


def where(bench: Bench, size: Size) -> Table:
    """Every cell with every way to do its work."""
    formats = {"cell": "<34"}
    for way in size.ways:
        formats |= {f"{way} s": "9.2f", f"{way} cpu": "11.2f"}
        formats |= {f"{way} pairs": "11.2f", f"{way} merge": "11.2f"} if way != HAND else {}
    formats |= {"MB of partials": "14.1f", "best": "<7", "next x": "6.2f", "level x": "7.2f"}
    formats |= {"load": "4.1f", "measured": "<16"}
    line = (
        f"`paced`, {SLOTS} slots and partitions, {size.records:,} records a batch, medians of"
        f" {size.batches - 1} warm batches (one where 100 us are computed): seconds and CPU seconds"
        " a batch, (key, partition) pairs a key, seconds of the stages from the merge on, size of"
        " the partials under `local`. A cell is"
        " named by skew, slept time a record, time a key that a task meets, bytes a partial"
        " carries, keys; `keyed` topics are as skewed as their keys, `burn` is processor time."
        " `best`: the fastest, `next x` how much slower the second is"
        f" (below {WINS_BY} a draw), `level x` how far `level` is behind the best. `load`: the"
        " machine's load average just before the cell."
    )
    return Table("where", line, formats, _where(bench, size))


def _where(bench: Bench, size: Size) -> Iterator[Row]:
    if not size.cells:
        return
    with bench.spark(MASTER) as (spark, meter):
        warm_up(bench, spark, meter, size.records)
        yield from measure_cells(bench, spark, meter, size)


def measure_cells(
    bench: Bench,
    spark: SparkSession,
    meter: Meter,
    size: Size,
    describe_more: Callable[[Mapping[str, Measured]], Row] = lambda _: {},
) -> Iterator[Row]:
    """A row of each cell; `describe_more` adds columns by what was measured of each way."""

    def measure_cell(cell: Cell) -> Row:
        _fill(bench, cell, size)
        return _measure_cell(bench, spark, meter, cell, size, describe_more)

    # Each way some times, or the first cells would pay for what the JVM compiles.
    for _ in range(size.warm_rounds):
        measure_cell(_WARM)
    for cell in size.cells:
        yield measure_cell(cell)


def _fill(bench: Bench, cell: Cell, size: Size) -> None:
    if cell.topic not in bench.filled:
        words = zipf(size.records * size.batches, cell.exponent, cell.keys)
        bench.fill(cell.topic, words, keyed=cell.keyed)


def _measure_cell(
    bench: Bench,
    spark: SparkSession,
    meter: Meter,
    cell: Cell,
    size: Size,
    describe_more: Callable[[Mapping[str, Measured]], Row],
) -> Row:
    # What is written by hand sleeps, and has partials of a count alone.
    by_hand = not cell.partial_bytes and cell.spend == "sleep"
    ways = [way for way in size.ways if way != HAND or by_hand]
    began, load = datetime.now(UTC), os.getloadavg()[0]
    measured = {way: _measure(bench, spark, meter, cell, way, size) for way in ways}
    seconds = {way: result.seconds for way, result in measured.items()}
    ranked = sorted(seconds, key=seconds.__getitem__)
    row: Row = {"cell": cell.name, f"{HAND} s": None, f"{HAND} cpu": None}
    for way, result in measured.items():
        row |= {f"{way} s": result.seconds}
        row |= {f"{way} cpu": result.run.cpu_seconds / len(result.run.warm)}
        row |= {f"{way} pairs": result.mean("replication")} if result.stats else {}
        if result.parts:
            parts = result.part_seconds()
            row |= {f"{way} merge": parts["merge"], f"{way} parts": parts}
        row |= {f"{way} batches": [round(each, 3) for each in result.run.seconds]}
    return (
        row
        | describe_more(measured)
        | {
            "MB of partials": _partial_megabytes(measured[size.ways[0]]),
            "best": ranked[0],
            "next x": seconds[ranked[1]] / seconds[ranked[0]],
            "level x": seconds["level"] / seconds[ranked[0]],
            "load": load,
            "records": size.records,
            "measured": f"{began:%Y-%m-%d %H:%M}",
            MEETS: UNJUDGED,
        }
    )


def _measure(
    bench: Bench, spark: SparkSession, meter: Meter, cell: Cell, way: str, size: Size
) -> Measured:
    if way != HAND:
        return measure(spark, meter, _make_job(bench, cell, way, size))
    at_source(spark, _make_job(bench, cell, "none", size))
    return Measured(settle(meter))


def _partial_megabytes(measured: Measured) -> float:
    sizes = [float(stats.numbers["state_bytes"].sum()) for stats in measured.stats]
    return sum(sizes) / len(sizes) / 1e6


def describe_work(cell: Cell) -> dict[str, Any]:
    """The operator of a cell, as a job has it."""
    return {
        "type": "paced",
        "key": "value",
        "cost": f"{cell.record_us:g} us",
        "key_cost": f"{cell.key_ms * 1000:g} us",
        "partial_bytes": cell.partial_bytes,
        "spend": cell.spend,
    }


def _make_job(bench: Bench, cell: Cell, way: str, size: Size) -> Job:
    more: dict[str, Any] = {"operator": describe_work(cell), "partitions": SLOTS}
    if cell.is_long:
        more["source.start"] = bench.last(cell.topic, 2 * size.records)
    return bench.job(cell.topic, size.records, {"type": way}, **more)
