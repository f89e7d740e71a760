"""What is lost where a partition is worked on by another process in the next batch.

`level` keeps keys at their homes, so with its partitions at the same worker process in every batch
a key would be opened once, in the first batch. Which process works on which partition is Spark's
choice. `local` meets most keys in all partitions, whichever process works on them.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pyspark.sql import SparkSession

from benchmarks.engine import opening_operator
from benchmarks.engine.cluster import EXECUTOR_CORES, WORKERS, cluster_settings, share_that_stays
from benchmarks.engine.measure import Bench, Meter, zipf
from benchmarks.engine.skew import MASTER, SLOTS, measure, warm_up
from benchmarks.tables import MEETS, UNJUDGED, Row, Table
from unskew.jobs.observe.batches.batch_stats import BatchStats

EXPONENT, KEYS, ROOM = 0.8, 5_000, 100_000
TOPIC = "placement"


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int = 40_000
    batches: int = 8
    ways: tuple[str, ...] = ("level", "local")


QUICK = Size(2000, 3, ("level",))


def placement(bench: Bench, size: Size) -> Table:
    """What is opened, batch by batch, in one JVM and on a cluster."""
    shown = [number for number in (1, 2, 4, 8) if number <= size.batches]
    formats = {"where": "<28", "grouping": "<9", "stays": "5.2f", "pairs": "9,.0f"}
    formats |= {f"opened {number}": "9,.0f" for number in shown}
    formats |= {f"batch {number} s": "9.2f" for number in shown}
    took = f"{1000 * opening_operator.OPENING_SECONDS:g} ms each"
    line = (
        f"An operator that opens something for each key, {took}, with room for all: {SLOTS} slots"
        f" and partitions, {size.records:,} records a batch, z = {EXPONENT}. `pairs` of a key and a"
        " partition in a batch: as often something would be opened if nothing was kept. `opened N`:"
        " how often it was in the N-th batch. Were each partition of `level` worked on by the same"
        " process in every batch, that would be nearly never from the second on. `stays`: of the"
        " partitions, those on the executor that they had in the batch before."
    )
    return Table("placement", line, formats, _placement(bench, size, shown))


def _placement(bench: Bench, size: Size, shown: Sequence[int]) -> Iterator[Row]:
    bench.fill(TOPIC, zipf(size.records * size.batches, EXPONENT, KEYS))
    for name in ("one JVM", f"{SLOTS // EXECUTOR_CORES} executors, {WORKERS} workers"):
        with ExitStack() as stack:
            master, settings = MASTER, {}
            if name != "one JVM":
                settings = stack.enter_context(cluster_settings(Path(bench.checkpoint())))
                master = settings.pop("spark.master")
            spark, meter = stack.enter_context(bench.spark(master, **settings))
            warm_up(bench, spark, meter, size.records)
            for way in size.ways:
                yield _measure(bench, spark, meter, name, way, size, shown)


def _measure(
    bench: Bench,
    spark: SparkSession,
    meter: Meter,
    name: str,
    way: str,
    size: Size,
    shown: Sequence[int],
) -> Row:
    file = Path(opening_operator.__file__)
    operator = {"type": "python", "file": str(file), "class": "Opening", "open_keys": ROOM}
    job = bench.job(TOPIC, size.records, {"type": way}, operator=operator, partitions=SLOTS)
    measured = measure(spark, meter, job, skip=0)
    opened = [_count_opened(stats) for stats in measured.stats]
    row: Row = {"where": name, "grouping": way, "stays": share_that_stays(measured.stats)}
    row["pairs"] = float(np.mean([stats.numbers["keys"].sum() for stats in measured.stats]))
    for number in shown:
        row[f"opened {number}"] = opened[number - 1]
        row[f"batch {number} s"] = measured.run.seconds[number - 1]
    return row | {"opened": opened, MEETS: UNJUDGED}


def _count_opened(stats: BatchStats) -> int:
    return int(stats.numbers["open_misses"].sum())
