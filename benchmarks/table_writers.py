"""Writers of a partitioned table: how long a batch takes, how even they are, how many files.

    python -m benchmarks.table_writers [--records N] [--batches N] [--values N] [--writers N]
                                       [--cores N] [--format parquet|delta ...] [--z Z ...]
                                       [--only WAY ...] [--throttle KB/S] [--open-millis MS]
                                       [--resume] [--minutes N] [--out FOLDER]

Records of a real Kafka, by a job of `rows` with the grouping `level` and by what users write
instead. Each way writes the same batches into a table of its own on the local disk, or on a store
whose every stream is throttled; then one value and all rows are read. All ways and streams run in
one session, whose first query, of a few records, counts nowhere; nor does the first batch of each,
where all is cold; and every stream begins with another way. What was written is looked at when the
query has ended. Each row is kept in `results/tables.json` as soon as it is there, from which
`tables.md` follows; `--resume` keeps those that were measured at the same size.
"""

import argparse
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from statistics import fmean
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.engine.measure import Bench, Meter, bench, middle, settle, zipf
from benchmarks.engine.report import description
from benchmarks.tables import MEETS, UNJUDGED, Row, Table, show, verdict
from benchmarks.writers.kept_rows import KeptRows, Keys
from benchmarks.writers.rivals import BY_HAND, Shuffle, set_as_a_user_would
from benchmarks.writers.throttled_store import Throttle
from benchmarks.writers.written_files import Written, written
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.stage_times import SparkJobs, read_writer_seconds
from unskew.jobs.local.jars import fetch_jars
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower
from unskew.jobs.query import source
from unskew.jobs.sinks.tables.table import DELTA_SETTINGS

RESULTS = Path(__file__).resolve().parent / "results"
COLUMNS = ("store", "rows", "values", "writers", "batches", "format", "z", "writing")
"""What a row is known by."""
_WARM_UP_RECORDS, _WARM_UP_Z = 20_000, 1.0
LEVEL, LEVEL_BY_COST = "level", "level by bytes and files"
JOBS = (LEVEL, LEVEL_BY_COST)
EVEN = 1.05
PAYLOAD_BYTES = 100
_FOOTER_BYTES = 1500
_LOCAL_FILE_BYTES = 1_000_000
"""About what a core writes in the time that it needs for a file of no rows."""


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    records: int
    batches: int
    values: int
    writers: int
    cores: int
    throttle: Throttle | None = None

    @property
    def store(self) -> str:
        """What the tables are on."""
        return self.throttle.name if self.throttle else "local disk"

    @property
    def file_cost_bytes(self) -> int:
        """What a file takes, as bytes that its writer would write meanwhile."""
        if self.throttle is None:
            return _LOCAL_FILE_BYTES
        trip = self.throttle.kilobytes_per_second * self.throttle.open_millis
        return trip + _FOOTER_BYTES


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

    def job(self, table: Path, name: str = LEVEL) -> Job:
        """The job of rows, which rivals by hand take their settings from."""
        sink: dict[str, Any] = {"type": "table", "format": self.format, "path": str(table)}
        grouping = {"type": "level"}
        if name == LEVEL_BY_COST:
            grouping["balance"] = "bytes"
            sink["file_cost_bytes"] = self.size.file_cost_bytes
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
                "grouping": grouping,
                "partitions": self.size.writers,
                "sinks": [{**sink, "partition_by": ["country"]}],
                "dead_letters": {"type": "files", "path": str(table) + "-dead"},
                "trigger": {"type": "available_now"},
                "checkpoint": self.bench.checkpoint(),
            },
        )


_PAYLOAD = f"substring(repeat(sha2(cast(offset AS STRING), 512), 2), 1, {PAYLOAD_BYTES})"
WAYS = (*JOBS, *BY_HAND)


class _Ended(Follower):
    """What the writers' tasks of a job took, batch by batch."""

    def __init__(self) -> None:
        self.seconds: list[list[float]] = []

    def on_batch_done(self, done: BatchDone) -> None:
        files = done.written
        if files is None or files.seconds is None:
            raise RuntimeError(f"batch {done.batch}: Spark did not say what its writers took")
        self.seconds.append(files.seconds.tolist())


def by_job(spark: SparkSession, job: Job) -> list[Written]:
    """Run a job of rows to its end."""
    writers = _Ended()
    query = Service(job, spark, (writers,))
    query.run()
    batches = range(len(writers.seconds))
    log = Path(job.checkpoint)
    # A batch ends with its commit: its files are older, those of the next one are not.
    ends = [(log / "commits" / str(batch)).stat().st_mtime_ns for batch in batches]
    return written(table_of(job), writers.seconds, [0, *ends])


def by_hand(case: Case, spark: SparkSession, job: Job, shuffle: Shuffle | None) -> list[Written]:
    """The same rows, by a query as a user would write it."""
    rows = source.read(spark, job.source).select(
        sf.col("value").cast("string").alias("country"),
        sf.col("offset").alias("number"),
        sf.expr(_PAYLOAD).alias("payload"),
    )
    path, begun = table_of(job), []

    def write(batch: DataFrame, _: int) -> None:
        begun.append(time.time_ns())
        shuffled = shuffle(batch, case.size.writers) if shuffle else batch
        writer = shuffled.write.format(case.format).mode("append").partitionBy("country")
        writer = writer if shuffle else writer.option("optimizeWrite", "true")
        writer.save(str(path))

    stream = rows.writeStream.queryName("by hand").foreachBatch(write)
    stream = stream.option("checkpointLocation", job.checkpoint).trigger(availableNow=True)
    query = stream.start()
    query.awaitTermination()
    jobs = SparkJobs(spark)
    stages = [jobs.read_stages(str(query.runId), number) for number in range(len(begun))]
    seconds = [list(read_writer_seconds(jobs, each).values()) for each in stages]
    return written(path, seconds, [*begun, time.time_ns()])


def table_of(job: Job) -> Path:
    """Read the folder of the job's table."""
    return Path(job.sinks[0].model_dump()["path"])


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
    job = case.job(table, name)
    with set_as_a_user_would(spark, name, case.size.records, case.size.writers):
        ours = name in JOBS
        batches = by_job(spark, job) if ours else by_hand(case, spark, job, BY_HAND[name])
    run = settle(meter)
    warm = batches[1:]
    slowest = middle(over_mean(each.seconds) for each in warm)
    files = [sum(each.files) for each in batches]
    value, scan = read_seconds(case, spark, table)
    shutil.rmtree(table)
    size = case.size
    return {
        "store": size.store,
        "rows": size.records,
        "values": size.values,
        "writers": size.writers,
        "batches": size.batches,
        "at once": size.cores,
        "format": case.format,
        "z": case.z,
        "writing": name,
        "batch s": middle(run.seconds),
        "tasks": middle(len(each.seconds) for each in warm),
        "slowest/mean": slowest,
        "rows/mean": middle(over_mean(each.rows) for each in warm),
        "bytes/mean": middle(over_mean(each.bytes) for each in warm),
        "files/mean": middle(over_mean(each.files) for each in warm),
        "files": middle(files[1:]),
        "KB/file": sum(sum(each.bytes) for each in warm) / sum(files[1:]) / 1000,
        "cpu us": run.cpu_us_a_record(),
        "value s": value,
        "scan s": scan,
        "files first": files[0],
        MEETS: verdict({"even": slowest <= EVEN}) if ours else UNJUDGED,
    }


def over_mean(values: Sequence[float]) -> float:
    """The largest over the mean."""
    return max(values) / fmean(values)


@dataclass(frozen=True)
class Cells:
    """Which ways of which streams are measured."""

    skews: Sequence[float]
    formats: Sequence[str]
    only: Sequence[str]
    done: Keys

    def left(self, size: Size, form: str, z: float) -> list[str]:
        """The ways of a stream that are not measured yet."""
        ways = [name for name in WAYS if form == "delta" or BY_HAND.get(name, ()) is not None]
        known = (size.store, size.records, size.values, size.writers, size.batches, form, z)
        return [name for name in ways if name in self.only and (*known, name) not in self.done]


def rows(workspace: Bench, size: Size, cells: Cells) -> Iterator[Row]:
    """The ways that are left of every stream in every format."""
    both = ",".join(str(path) for name in ("spark", "delta") for path in fetch_jars(name))
    settings = {"spark.jars": both, **DELTA_SETTINGS}
    if size.throttle:
        settings |= size.throttle.spark_settings(workspace.folder)
    with workspace.spark(f"local[{size.cores}]", **settings) as (spark, meter):
        warm_up(workspace, size, cells.formats, spark, meter)
        for number, (z, form) in enumerate(product(cells.skews, cells.formats)):
            case = Case(workspace, size, z, form)
            left = cells.left(size, form, z)
            if left and case.topic not in workspace.filled:
                workspace.fill(case.topic, zipf(size.records * size.batches, z, size.values))
            for name in rotated(left, number):
                yield measure(case, name, spark, meter)


def warm_up(
    workspace: Bench, size: Size, formats: Sequence[str], spark: SparkSession, meter: Meter
) -> None:
    """A job and a query by hand of few records, so that no way is the first of its session."""
    records = min(size.records, _WARM_UP_RECORDS)
    few = replace(size, records=records, batches=2, values=min(size.values, 50))
    for form in formats:
        case = Case(workspace, few, _WARM_UP_Z, form)
        if case.topic not in workspace.filled:
            workspace.fill(case.topic, zipf(few.records * few.batches, case.z, few.values))
        for name in (LEVEL, "REBALANCE"):
            measure(case, name, spark, meter)


def rotated(names: Sequence[str], number: int) -> list[str]:
    """The names in their order, beginning with another one each time."""
    first = number % max(len(names), 1)
    return [*names[first:], *names[:first]]


FORMATS = {
    "store": "<18",
    "rows": "9,.0f",
    "values": "6,.0f",
    "writers": "7,.0f",
    "batches": "7,.0f",
    "at once": "7,.0f",
    "format": "<8",
    "z": "4.1f",
    "writing": "<26",
    "batch s": "8.2f",
    "tasks": "5,.0f",
    "slowest/mean": "12.2f",
    "rows/mean": "9.3f",
    "bytes/mean": "10.3f",
    "files/mean": "10.3f",
    "files": "7,.0f",
    "files first": "11,.0f",
    "KB/file": "8,.1f",
    "cpu us": "7.2f",
    "value s": "8.2f",
    "scan s": "7.2f",
}


def make_parser() -> argparse.ArgumentParser:
    """Parse the options."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.table_writers")
    parser.add_argument("--records", type=int, default=1_000_000, help="a batch")
    parser.add_argument("--batches", type=int, default=4)
    parser.add_argument("--values", type=int, default=1000)
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument(
        "--cores", type=int, help="tasks at once: 2; throttled, a quarter more than writers"
    )
    parser.add_argument("--z", type=float, nargs="+", default=[0.0, 0.8, 1.4])
    parser.add_argument("--format", nargs="+", default=["parquet", "delta"])
    parser.add_argument("--only", nargs="+", choices=WAYS, default=WAYS, help="ways to write")
    parser.add_argument("--throttle", type=int, metavar="KB/S", help="of each stream of the store")
    parser.add_argument("--open-millis", type=int, default=50, help="of each stream, throttled")
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there")
    parser.add_argument("--minutes", type=float, help="begin no row later than this")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for results")
    return parser


def main(words: Sequence[str] | None = None) -> None:
    """Measure, print and keep."""
    given = make_parser().parse_args(words)
    throttle = Throttle(given.throttle, given.open_millis) if given.throttle else None
    # Writers that wait for their streams need no core each; REBALANCE makes a few more of them.
    cores = given.cores or (given.writers * 5 // 4 if throttle else 2)
    size = Size(given.records, given.batches, given.values, given.writers, cores, throttle)
    line = (
        f"Medians of the batches but the first, which counts nowhere; `at once`: tasks there were."
        f" `level` is the whole job, dead letters and reports included; `{LEVEL_BY_COST}` the same"
        f" with `balance: bytes` and `file_cost_bytes: {size.file_cost_bytes}`; the others are by"
        f" hand in `foreachBatch`. The jobs' line: the slowest writer's task within {EVEN} of the"
        f" mean. `rows/mean`, `bytes/mean`, `files/mean`: of the writer with most; `tasks`: those"
        f" that wrote; `files first`: of the first batch."
    )
    print(f"{description()}\n", flush=True)
    kept = KeptRows(given.out, COLUMNS)
    with bench() as workspace:
        done = kept.keys() if given.resume else set()
        new = rows(workspace, size, Cells(given.z, given.format, given.only, done))
        table = Table("writers", line, FORMATS, kept.keep(new, line, given.minutes))
        show(table)
    kept.write(FORMATS)


if __name__ == "__main__":
    main()
