"""Aggregates of the user's own against the same query written by hand: what `aggregate` costs.

Kafka, JSON, a group for each user, Kafka: by `groupBy(...).agg(...)` as the documentation of Spark
leads to, by the same without the records that do not decode, and as jobs with dead letters under
`none` and `level`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.engine.measure import Bench, Meter, Run, middle, settle, zipf
from benchmarks.engine.overhead import MASTER
from benchmarks.engine.plain import aggregate_events
from benchmarks.tables import MEETS, Row, Table, cells_left, verdict
from unskew.config.models.job import Job
from unskew.jobs.engine.service import Service

EXPONENT = 1.1
RATIO_MAX = 1.05
HAND = "by hand"
CHECKED = "checked"
WAYS = (HAND, CHECKED, "none", "level")
SCHEMA = "user STRING, cents BIGINT, ms DOUBLE"


@dataclass(frozen=True)
class Cell:
    """Columns of a result, as a job has them and as Spark's SQL has them."""

    name: str
    columns: Mapping[str, Any]
    by_hand: Mapping[str, str]


_TOTALS = {"events": "count(*)", "revenue": "sum(cents)", "largest": "max(cents)"}
CELLS = (
    Cell("totals", _TOTALS, _TOTALS),
    Cell(
        "sketches",
        {"latency": {"quantiles": "ms", "at": 0.99}, "prices": {"distinct": "cents"}},
        {
            "latency": "kll_sketch_get_quantile_double(kll_sketch_agg_double(ms, 200), 0.99D)",
            "prices": "hll_sketch_estimate(hll_sketch_agg(cents, 12))",
        },
    ),
)


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 200_000
    batches: int = 3
    rounds: int = 2
    cells: tuple[Cell, ...] = CELLS


QUICK = Size(2000, 2, 1)


def left_of(size: Size, rows: Sequence[Row], patterns: Collection[str]) -> Size:
    """What is left of a table that has these rows; with patterns, of the cells that match one."""
    return replace(size, cells=cells_left(size.cells, rows, patterns))


def aggregates(bench: Bench, size: Size) -> Table:
    """CPU and wall time of a record, by hand, under `none` and under `level`."""
    formats = {"cell": "<9"}
    for way in WAYS:
        formats |= {f"{way} us": "11.2f", f"{way} cpu us": "15.2f"}
        formats |= {} if way == HAND else {f"{way} x": "8.2f"}
    line = (
        "Wall and CPU time of a record: aggregates of each user from JSON,"
        f" {size.records:,} records a batch, z = {EXPONENT}, 16 partitions on {MASTER}; medians of"
        f" {size.rounds} rounds of {size.batches - 1} warm batches, `x` the wall time over that of"
        " `groupBy(...).agg(...)` by hand in the same round. `totals` are count, sum and maximum,"
        " `sketches` a quantile and distinct values. `checked` is by hand without the records that"
        " do not decode, and without dead letters."
        f" `none` is to be within {RATIO_MAX}."
    )
    return Table("aggregate", line, formats, _aggregates(bench, size))


def _aggregates(bench: Bench, size: Size) -> Iterator[Row]:
    if not size.cells:
        return
    words = zipf(size.records * size.batches, EXPONENT)
    bench.fill("aggregate", words, make_record=_make_event)
    with bench.spark(MASTER) as (spark, meter):
        for cell in size.cells:
            runs = _measure(bench, spark, meter, cell, size)
            row: Row = {"cell": cell.name}
            for way in WAYS:
                row[f"{way} us"] = middle(run.wall_us_a_record() for run in runs[way])
                row[f"{way} cpu us"] = middle(run.cpu_us_a_record() for run in runs[way])
                row[f"{way} x"] = _ratio(runs[way], runs[HAND])
            met = float(str(row["none x"])) <= RATIO_MAX
            yield row | {MEETS: verdict({"none": met})}


def _make_event(user: int) -> bytes:
    return f'{{"user":"u{user}","cents":{user * 7919 % 10_007},"ms":{user * 31 % 997}.5}}'.encode()


def _measure(
    bench: Bench, spark: SparkSession, meter: Meter, cell: Cell, size: Size
) -> dict[str, list[Run]]:
    """Every way once a round, turn by turn; a round before them does not count."""
    runs: dict[str, list[Run]] = {way: [] for way in WAYS}
    for number in range(size.rounds + 1):
        for way in WAYS:
            job = _make_job(bench, cell, way, size)
            if way in (HAND, CHECKED):
                checked = way == CHECKED
                aggregate_events(spark, job, SCHEMA, "user", cell.by_hand, checked=checked)
            else:
                Service(job, spark).run()
            run = settle(meter)
            if number:
                runs[way].append(run)
    return runs


def _make_job(bench: Bench, cell: Cell, way: str, size: Size) -> Job:
    more = {
        "decode": {"type": "json", "schema": SCHEMA},
        "operator": {"type": "aggregate", "key": "user", "columns": dict(cell.columns)},
        "partitions": 16,
    }
    grouping = way if way == "level" else "none"
    return bench.job("aggregate", size.records, {"type": grouping}, **more)


def _ratio(runs: Sequence[Run], references: Sequence[Run]) -> float:
    """The median over the rounds: both runs of a round had the same machine."""
    pairs = zip(runs, references, strict=True)
    return middle(run.wall_us_a_record() / other.wall_us_a_record() for run, other in pairs)
