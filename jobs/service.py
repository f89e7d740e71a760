"""Running a job: start its query, follow it batch by batch, stop it cleanly."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from config.errors import OutsideError
from config.models.job import Job
from config.models.window import IntervalTrigger
from config.secrets import reveal
from grouping.journal import KEPT_BATCHES, Journal
from jobs import dead_letters
from jobs.facts import BatchFacts, facts_of
from jobs.pipeline import Pipeline, journal_of
from jobs.session import session
from jobs.sinks import write

_POLL_SECONDS: Any = 0.2  # declared a whole number by pyspark, used as any


@dataclass(frozen=True)
class BatchDone:
    """A finished batch: Spark's progress, and the facts by the reports (none without rows)."""

    progress: dict[str, Any]
    facts: BatchFacts | None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return float(self.progress["durationMs"].get("triggerExecution", 0)) / 1000


Observer = Callable[[BatchDone], None]


class Service:
    """One running job."""

    def __init__(self, job: Job, spark: SparkSession, observers: tuple[Observer, ...] = ()) -> None:
        self.job = job
        self.spark = spark
        self.journal: Journal = journal_of(job)
        self._observers = observers
        self._seen = -1

    def run(self) -> None:
        """Run until the query ends by itself or `KeyboardInterrupt` stops it."""
        query = self._start()
        try:
            while not query.awaitTermination(_POLL_SECONDS):
                self._observe(query)
        except StreamingQueryException as error:
            raise OutsideError(*_reasons(self.job, error)) from error
        finally:
            if query.isActive:
                query.stop()
        self._observe(query)

    def _start(self) -> StreamingQuery:
        results = Pipeline(self.job, self.journal).results(self.spark)
        writer = write(results, self.job)
        trigger = self.job.trigger
        if isinstance(trigger, IntervalTrigger):
            writer = writer.trigger(processingTime=trigger.interval.interval)
        else:
            writer = writer.trigger(availableNow=True)
        return writer.start()

    def _observe(self, query: StreamingQuery) -> None:
        for progress in query.recentProgress:
            batch = int(progress["batchId"])
            if batch > self._seen and "addBatch" in progress["durationMs"]:
                self._seen = batch
                self._after_batch(batch, dict(progress))

    def _after_batch(self, batch: int, progress: dict[str, Any]) -> None:
        dead_letters.publish(self.spark, self.job, self.journal, batch)
        done = BatchDone(progress, facts_of(self.journal, batch))
        for observer in self._observers:
            observer(done)
        self.journal.purge(batch - KEPT_BATCHES)


def run_job(job: Job, *observers: Observer) -> None:
    """Run a job in a session of its own."""
    with job_session(job) as spark:
        Service(job, spark, observers).run()


@contextmanager
def job_session(job: Job) -> Iterator[SparkSession]:
    """The Spark session that a job asks for."""
    settings = {
        **reveal(job.spark),
        "spark.sql.shuffle.partitions": str(job.merge.partitions),
    }
    with session(job.name, settings) as spark:
        yield spark


def _reasons(job: Job, error: StreamingQueryException) -> list[str]:
    """The causes of a failed query, innermost last, without their traces."""
    text = str(error.desc if hasattr(error, "desc") else error)
    first = next((line for line in text.splitlines() if line.strip()), "the query failed")
    return [f"{job.name}: {first.strip()}"]
