"""What users do instead, with the same costly operator; and records that do not cost the same."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from benchmarks.engine.measure import Bench, Run, middle, settle, zipf
from benchmarks.engine.plain import (
    at_source,
    rebalance,
    repartition,
    salted,
    salted_by_offset,
    with_state,
)
from benchmarks.engine.skew import COST_US, MASTER, SLOTS, Cell, measure, paced, warm_up
from benchmarks.tables import MEETS, UNJUDGED, Row, Table
from unskew.config.models.job import Job

EXPONENT = 1.4
TIME_EXPONENT = 1.1
DEAR_FACTORS = [10.0] + [1.0] * 9
DEAR_COST_US = 50
SLOW_FACTORS = {"0": 2.0, "1": 2.0}
SLOW_COST_US = 80
LEARNED_AFTER = 2
BY_SECONDS = {"type": "level", "balance": "seconds"}
WHOLE_JOBS = ("level", "local", "none")
BY_HAND: Mapping[str, Callable[[SparkSession, Job], None]] = {
    "mapInArrow at the source": at_source,
    "repartition(key) + mapInArrow": repartition,
    "salted by hand + mapInArrow": salted,
    "salted by offset + mapInArrow": salted_by_offset,
    "REBALANCE in foreachBatch": rebalance,
    "transformWithStateInPandas": with_state,
}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 160_000
    batches: int = 3
    learning_records: int = 320_000
    learning_batches: int = 4


QUICK = Size(8000, 2, 8000, 3)


def instead(bench: Bench, size: Size) -> Table:
    """Side by side with what users write."""
    bench.fill("instead", zipf(size.records * size.batches, EXPONENT))
    formats = {
        "query": "<30",
        "p50 s": "6.2f",
        "records/s": "9,.0f",
        "x level": "7.2f",
        "cpu us": "6.1f",
        "batches": "7",
    }
    line = (
        f"The same operator ({COST_US} us a record, {SLOTS} slots and partitions), z = {EXPONENT},"
        f" {size.records:,} records a batch; `level`, `local` and `none` as whole jobs with dead"
        " letters and reports, the others as one would write them by hand. `cpu us` is all CPU of a"
        " record. Salting by hand draws from `rand()`, so a task that is retried loses and repeats"
        " rows; by a record's offset it does not. REBALANCE has a batch's totals only: no state."
    )
    return Table("instead", line, formats, _instead(bench, size))


def _instead(bench: Bench, size: Size) -> Iterator[Row]:
    settings = {"spark.sql.shuffle.partitions": str(SLOTS)}
    level: Run | None = None
    with bench.spark(MASTER) as (spark, meter):
        warm_up(bench, spark, meter, size.records)
        for name in WHOLE_JOBS:
            job = paced(bench, "instead", size.records, {"type": name})
            run = measure(spark, meter, job).run
            level = level or run
            yield _instead_row(name, run, level)
    # A query by hand has one number of partitions for all its shuffles.
    with bench.spark(MASTER, **settings) as (spark, meter):
        warm_up(bench, spark, meter, size.records)
        for name, start in BY_HAND.items():
            job = paced(bench, "instead", size.records, {"type": "none"})
            start(spark, job)
            assert level is not None
            yield _instead_row(name, settle(meter), level)


def _instead_row(name: str, run: Run, level: Run) -> Row:
    seconds = middle(run.seconds)
    return {
        "query": name,
        "p50 s": seconds,
        "records/s": run.records_per_second,
        "x level": seconds / middle(level.seconds),
        "cpu us": run.cpu_us_a_record(),
        "batches": len(run.warm),
        MEETS: UNJUDGED,
    }


def times(bench: Bench, size: Size) -> Table:
    """Keys that cost differently, partitions that are differently fast."""
    bench.fill("times", zipf(size.learning_records * size.learning_batches, TIME_EXPONENT))
    formats = {
        "case": "<14",
        "grouping": "<22",
        "p50 s": "6.2f",
        "x ideal": "7.2f",
        "x shuffle": "9.2f",
        "busy max/mean": "13.2f",
        "pairs/key": "9.2f",
        "batches": "7",
    }
    line = (
        f"Time, not counts: z = {TIME_EXPONENT}, {size.learning_records:,} records a batch."
        f" `dear keys`: one key in ten costs 10 times the {DEAR_COST_US} us of the others. `slow"
        f" partitions`: two of the {SLOTS} take twice the {SLOW_COST_US} us of the others. `ideal`:"
        f" all slots busy to the end. The first {LEARNED_AFTER} batches, which learn the costs,"
        " do not count."
    )
    return Table("time", line, formats, _times(bench, size))


def _times(bench: Bench, size: Size) -> Iterator[Row]:
    counted = {name: {"type": name} for name in ("shuffle", "partial_key")}
    timed = {name: {"type": name} for name in ("posg", "fish")}
    dear = {"cost": f"{DEAR_COST_US} us", "class_factors": DEAR_FACTORS}
    slow = {"cost": f"{SLOW_COST_US} us", "partition_factors": SLOW_FACTORS}
    by_speeds = {**BY_SECONDS, "speeds": "measured"}
    cases: list[tuple[str, Mapping[str, Any], Mapping[str, Mapping[str, Any]]]] = [
        ("dear keys", dear, {**counted, **timed, "level by seconds": BY_SECONDS}),
        ("slow partitions", slow, {**counted, **timed, "level by speeds": by_speeds}),
    ]
    with bench.spark(MASTER) as (spark, meter):
        warm_up(bench, spark, meter, size.records)
        for case, options, members in cases:
            reference: Cell | None = None
            for name, grouping in members.items():
                job = paced(bench, "times", size.learning_records, grouping, options)
                cell = measure(spark, meter, job, skip=LEARNED_AFTER)
                reference = reference or cell
                yield _times_row(case, name, cell, reference, size)


def _times_row(case: str, name: str, cell: Cell, reference: Cell, size: Size) -> Row:
    if case == "dear keys":
        ideal = cell.work_seconds / SLOTS
    else:
        speed = sum(1 / SLOW_FACTORS.get(str(number), 1.0) for number in range(SLOTS))
        ideal = size.learning_records * SLOW_COST_US / 1e6 / speed
    return {
        "case": case,
        "grouping": name,
        "p50 s": cell.seconds,
        "x ideal": cell.seconds / ideal,
        "x shuffle": cell.seconds / reference.seconds,
        "busy max/mean": cell.mean("busy_max_over_mean"),
        "pairs/key": cell.mean("replication"),
        "batches": len(cell.run.warm),
        MEETS: UNJUDGED,
    }
