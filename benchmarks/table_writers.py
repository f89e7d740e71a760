"""Writers of a partitioned table: how long a batch takes, how even they are, how many files.

    python -m benchmarks.table_writers [--records N] [--batches N] [--values N] [--writers N]
                                       [--cores N] [--format parquet|delta ...] [--z Z ...]

Records of a real Kafka, by a job of `rows` with the grouping `level` and by what users write
instead. Each way writes the same batches into a table of its own on the local disk; then one value
and all rows are read. The first batch, where all is cold, counts nowhere.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.engine.measure import Bench, Meter, bench, middle, settle, zipf
from benchmarks.engine.report import description
from benchmarks.tables import MEETS, UNJUDGED, Row, Table, show, verdict
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.table_writers import TaskSeconds
from unskew.jobs.local.jars import jars
from unskew.jobs.observe.batch import BatchDone
from unskew.jobs.observe.follower import Follower
from unskew.jobs.query import source
from unskew.jobs.sinks.table import DELTA_SETTINGS

EVEN = 1.05
PAYLOAD_BYTES = 100


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int
    batches: int
    values: int
    writers: int
    cores: int


@dataclass(frozen=True)
class Case:
    """One stream into one format."""

    bench: Bench
    size: Size
    z: float
    format: str

    @property
    def topic(self) -> str:
        """The topic with the records."""
        return f"values-{self.z:g}".replace(".", "-")

    def job(self, table: Path) -> Job:
        """The job of rows, which rivals by hand take their settings from."""
        sink = {"type": "table", "format": self.format, "path": str(table)}
        return load_job(
            "events_to_delta",
            {
                "name": "rows",
                "source.bootstrap_servers": self.bench.broker.address,
                "source.subscribe": [self.topic],
                "source.records_per_batch": self.size.records + 16,
                "decode": {"type": "text"},
                "operator": {
                    "type": "rows",
                    "columns": {"country": "value", "number": "offset", "payload": _PAYLOAD},
                },
                "grouping": {"type": "level"},
                "partitions": self.size.writers,
                "sinks": [{**sink, "partition_by": ["country"]}],
                "dead_letters": {"type": "files", "path": str(table) + "-dead"},
                "trigger": {"type": "available_now"},
                "checkpoint": self.bench.checkpoint(),
            },
        )


_PAYLOAD = f"substring(repeat(sha2(cast(offset AS STRING), 512), 2), 1, {PAYLOAD_BYTES})"
By = Callable[[DataFrame, Size], DataFrame]
BY_HAND: Mapping[str, By | None] = {
    "no shuffle": lambda rows, _: rows,
    "repartition(col)": lambda rows, size: rows.repartition(size.writers, "country"),
    "repartition(n, col, salt)": lambda rows, size: rows.repartition(
        size.writers, "country", sf.pmod(sf.xxhash64("number"), sf.lit(4))
    ),
    "REBALANCE": lambda rows, _: rows.hint("rebalance", "country"),
    "Delta's optimized write": None,
}


@dataclass(frozen=True)
class Written:
    """What one batch wrote."""

    seconds: tuple[float, ...]
    """Of each writer's task."""
    files: int
    bytes: int


class _Writers(Follower):
    """What the writers of a job did, batch by batch."""

    def __init__(self) -> None:
        self.batches: list[Written] = []

    def batch_done(self, done: BatchDone) -> None:
        files = done.written
        if files is not None:
            sizes = int(files.files.sum()), int(files.bytes.sum())
            self.batches.append(Written(tuple(files.seconds.tolist()), *sizes))


def by_job(spark: SparkSession, job: Job) -> list[Written]:
    """Run a job of rows to its end."""
    writers = _Writers()
    Service(job, spark, (writers,)).run()
    return writers.batches


def by_hand(case: Case, spark: SparkSession, job: Job, shuffle: By | None) -> list[Written]:
    """The same rows by a query as one would write it."""
    rows = source.read(spark, job.source).select(
        sf.col("value").cast("string").alias("country"),
        sf.col("offset").alias("number"),
        sf.expr(_PAYLOAD).alias("payload"),
    )
    clock = TaskSeconds(spark)
    batches: list[Written] = []
    path = table_of(job)

    def write(batch: DataFrame, _number: int) -> None:
        before = folder_sizes(path)
        shuffled = shuffle(batch, case.size) if shuffle else batch
        writer = shuffled.write.format(case.format).mode("append").partitionBy("country")
        writer = writer if shuffle else writer.option("optimizeWrite", "true")
        writer.save(str(path))
        new = {name: size for name, size in folder_sizes(path).items() if name not in before}
        run = spark.sparkContext.getLocalProperty("spark.jobGroup.id")
        seconds = clock.read(run or "")
        batches.append(Written(tuple(seconds.values()), len(new), sum(new.values())))

    query = rows.writeStream.queryName("by hand").foreachBatch(write)
    query = query.option("checkpointLocation", job.checkpoint).trigger(availableNow=True)
    query.start().awaitTermination()
    return batches


def table_of(job: Job) -> Path:
    """The table's folder."""
    return Path(job.sinks[0].model_dump()["path"])


def folder_sizes(path: Path) -> dict[Path, int]:
    """The files of data in a folder, with their sizes."""
    return {file: file.stat().st_size for file in path.rglob("part-*.parquet")}


def read_seconds(case: Case, spark: SparkSession, path: Path) -> tuple[float, float]:
    """How long it takes to read the rows of the largest value, and all rows."""
    times = []
    for condition in ("country = 'w0'", "true"):
        started = time.perf_counter()
        rows = spark.read.format(case.format).load(str(path)).where(condition)
        rows.agg(sf.sum(sf.length("payload"))).collect()
        times.append(time.perf_counter() - started)
    return times[0], times[1]


def measure(case: Case, name: str, spark: SparkSession, meter: Meter) -> Row:
    """One way, from the first record to the reading of what it wrote."""
    table = case.bench.folder / f"table-{case.bench.checkpoint().rpartition('-')[2]}"
    job = case.job(table)
    batches = by_job(spark, job) if name == "level" else by_hand(case, spark, job, BY_HAND[name])
    run = settle(meter)
    warm = batches[1:]
    slowest = middle(max(each.seconds) / fmean(each.seconds) for each in warm)
    files = middle(each.files for each in warm)
    value, scan = read_seconds(case, spark, table)
    return {
        "format": case.format,
        "z": case.z,
        "writing": name,
        "batch s": middle(run.seconds),
        "slowest/mean": slowest,
        "files": files,
        "KB/file": sum(each.bytes for each in warm) / sum(each.files for each in warm) / 1000,
        "cpu us": run.cpu_us_a_record(),
        "value s": value,
        "scan s": scan,
        MEETS: verdict({"even": slowest <= EVEN}) if name == "level" else UNJUDGED,
    }


def rows(
    workspace: Bench, size: Size, skews: Sequence[float], formats: Sequence[str]
) -> Iterator[Row]:
    """Every way of every stream in every format, in one session each."""
    both = ",".join(str(path) for name in ("spark", "delta") for path in jars(name))
    for z in skews:
        values = zipf(size.records * size.batches, z, size.values)
        for form in formats:
            case = Case(workspace, size, z, form)
            if case.topic not in workspace.filled:
                workspace.fill(case.topic, values)
            with workspace.spark(
                f"local[{size.cores}]", **{"spark.jars": both, **DELTA_SETTINGS}
            ) as (spark, meter):
                names = ["level", *BY_HAND]
                for name in names if form == "delta" else names[:-1]:
                    yield measure(case, name, spark, meter)


FORMATS = {
    "format": "<8",
    "z": "4.1f",
    "writing": "<26",
    "batch s": "8.2f",
    "slowest/mean": "12.2f",
    "files": "7,.0f",
    "KB/file": "8,.1f",
    "cpu us": "7.2f",
    "value s": "8.2f",
    "scan s": "7.2f",
}


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_writers")
    parser.add_argument("--records", type=int, default=1_000_000, help="a batch")
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--values", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--cores", type=int, default=2, help="tasks at once")
    parser.add_argument("--z", type=float, nargs="+", default=[0.0, 0.8, 1.4])
    parser.add_argument("--format", nargs="+", default=["parquet", "delta"])
    given = parser.parse_args(words)
    size = Size(given.records, given.batches, given.values, given.writers, given.cores)
    line = (
        f"{size.records:,} records a batch of {size.values:,} values, {size.batches} batches of"
        f" which the first counts nowhere, {size.writers} writers, {size.cores} at once; medians."
        f" `level` is the whole job, with dead letters and reports; the others are written by hand"
        f" in `foreachBatch`. Its line: the slowest writer within {EVEN} of the mean."
    )
    print(f"{description()}\n", flush=True)
    with bench() as workspace:
        show(Table("writers", line, FORMATS, rows(workspace, size, given.z, given.format)))


if __name__ == "__main__":
    main()
