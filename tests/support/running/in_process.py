"""A whole job in the tests' own session: the service as it is, over a pipeline of a test."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.support.dead_letters import dead_letters_in
from tests.support.oracles import SCHEMA, WindowedKey
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.spark_log import SourceRange
from unskew.jobs.engine.service import Service
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_stats import read_batch_stats
from unskew.jobs.observe.follower import Follower
from unskew.jobs.query.pipeline import Pipeline


def job_over(source: dict[str, Any], folder: Path, name: str, **changes: Any) -> Job:
    """A small job that reads what is there and then ends."""
    return load_job(
        "word_count",
        {
            "name": "totals",
            "source": source,
            "decode": {"type": "json", "schema": SCHEMA},
            "event_time": "at",
            "partitions": 3,
            "merge": {"partitions": 2, "output": "update"},
            "trigger": {"type": "available_now"},
            "sinks": [{"type": "memory", "table": "totals"}],
            "dead_letters": {"type": "files", "path": str(folder / "bad")},
            "checkpoint": str(folder / "checkpoints" / name),
            **changes,
        },
    )


@contextmanager
def utc() -> Iterator[None]:
    """`collect` gives timestamps in the process's own zone: here in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


class CountsReads(Pipeline):
    """A pipeline that keeps which batches are read again, by the times of the batches."""

    reads: ClassVar[list[int]] = []

    def build_rejected(self, spark: SparkSession, covered: SourceRange) -> DataFrame:
        self.reads.append(covered.time_ms)
        return super().build_rejected(spark, covered)


class _ServiceWithQueries(Service):
    """The service, which keeps its queries so that a test can read Spark's plans."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.queries: list[StreamingQuery] = []

    def _start(self) -> StreamingQuery:
        self.queries.append(super()._start())
        return self.queries[-1]


class Ran(Follower):
    """A job run to its end, by default over files: its results, and its rejected records."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        name: str,
        source: dict[str, Any] | None = None,
        pipeline: Callable[[Job, Journal], Pipeline] = Pipeline,
        **changes: Any,
    ) -> None:
        files = {"type": "files", "path": str(folder / "in"), "files_per_batch": 1}
        self.batches: list[BatchDone] = []
        self.job = job_over(source or files, folder, name, **changes)
        service = _ServiceWithQueries(self.job, spark, (self,))
        self.journal: Journal = service.journal
        service._pipeline = pipeline(self.job, service.journal)
        service.run()
        self.query = service.queries[-1]
        self.rows: list[dict[str, Any]] = []
        self.types: dict[str, str] = {}
        if self.job.sinks[0].type == "memory":
            table = spark.table("totals").orderBy("batch_id")
            self.rows = [row.asDict() for row in table.collect()]
            self.types = {field.name: field.dataType.simpleString() for field in table.schema}
        self.rejected: Counter[str] = Counter()
        for batch in service.journal.batches():
            stats = read_batch_stats(self.job.checkpoint, service.journal, batch)
            self.rejected.update(stats.rejected if stats else {})

    def on_batch_done(self, done: BatchDone) -> None:
        self.batches.append(done)

    @property
    def last(self) -> dict[WindowedKey, dict[str, Any]]:
        """The last result of each window and key."""
        last = {}
        for row in self.rows:
            columns = {name: value for name, value in row.items() if name != "batch_id"}
            bounds = [columns.pop(name) for name in ("window_start", "window_end") if name in row]
            last[*bounds, columns.pop("key")] = columns
        return last


def run_without_windows(
    spark: SparkSession, folder: Path, grouping: str, rows: list[dict[str, Any]], **changes: Any
) -> tuple[Ran, list[dict[str, Any]]]:
    """A job without windows over one file of rows, and its dead letters."""
    write_lines(folder / "in", "0.json", rows)
    settings = {"window": {"type": "none"}, "lateness": None, "grouping": {"type": grouping}}
    ran = Ran(spark, folder, grouping, **{**settings, **changes})
    return ran, dead_letters_in(folder / "bad")


def write_lines(folder: Path, name: str, rows: list[dict[str, Any]]) -> None:
    """Records as a file of JSON lines, which is one batch; files are read as they were written."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    written = 1_700_000_000 + len(list(folder.iterdir()))
    os.utime(folder / name, (written, written))
