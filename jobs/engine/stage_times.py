"""What Spark's own record has of a batch: when its stages ran, and how long the tasks took that
wrote to a table.
"""

import json
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from unskew.config.models.grouping import LocalGrouping
from unskew.config.models.job import Job
from unskew.jobs.observe.batches.stages import BatchStages, StageTime
from unskew.jobs.operators.registry import is_computed_by_spark, make_operator

_LISTENERS_MS = 500
_WAIT_SECONDS = 10.0
_BATCH = re.compile(r"\bbatch = (\d+)\b")

Data = dict[str, Any]
"""What Spark says of a job, a stage or a task."""


class SparkJobs:
    """Reads the stages of a query's batches from Spark's status store, batch by batch.

    Spark's listeners write that store, some time after a job has ended; the next batch may have
    begun by then. So the listeners are waited for, and a job's description says of which batch it
    is.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._newest = -1
        self._unread: list[int] = []
        self._mapper: Any = None

    def read_stages(self, run: str, batch: int) -> list[Data]:
        """Read the stages of a batch of a query's run, once, in the order of their numbers.

        None where Spark does not say: displays alone need them.
        """
        with suppress(Py4JError, ValueError, KeyError):
            return self._read_stages(run, batch)
        return []

    def _read_stages(self, run: str, batch: int) -> list[Data]:
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            # More and more events come while the next batch runs: those of this one are enough.
            complete = self._wait_for_listeners()
            jobs = self._read_jobs(run)
            own = [job for number, job in jobs.items() if _find_batch(job, batch) == batch]
            ended = bool(own) and all(job["status"] != "RUNNING" for job in own)
            if complete or ended or time.monotonic() > deadline:
                break
        self._unread = [number for number, job in jobs.items() if _find_batch(job, batch) > batch]
        numbers = sorted({stage for job in own for stage in job["stageIds"]})
        stages = [self._read_stage(number) for number in numbers]
        return [stage for stage in stages if stage]

    def read_task_seconds(self, stage: Data) -> dict[int, float]:
        """Read the run times of a stage's tasks by partition, those of all its attempts."""
        seconds = {}
        for attempt in range(stage["attemptId"] + 1):
            with suppress(Py4JError):  # Spark may have dropped the attempt from its store
                tasks = self._store().taskList(stage["stageId"], attempt, 2 * stage["numTasks"])
                for task in self._to_data(tasks):
                    if task["status"] == "SUCCESS":
                        taken = task["taskMetrics"]["executorRunTime"] / 1000
                        seconds[int(task["partitionId"])] = taken
        return seconds

    def _wait_for_listeners(self) -> bool:
        """Wait briefly for Spark's listeners; True if they have handled all events."""
        with suppress(Py4JError):
            self._get_context().listenerBus().waitUntilEmpty(_LISTENERS_MS)
            return True
        return False

    def _read_jobs(self, run: str) -> dict[int, Data]:
        """The jobs of a run that were not read for an earlier batch, by number."""
        known = self._spark.sparkContext.statusTracker().getJobIdsForGroup(run)
        self._unread += sorted(number for number in known if number > self._newest)
        self._newest = max([self._newest, *self._unread])
        jobs: dict[int, Data] = {}
        for number in self._unread:
            with suppress(Py4JError):  # Spark may have dropped the job from its store
                jobs[number] = self._to_data(self._store().job(number))
        return {number: job for number, job in jobs.items() if job.get("jobGroup") == run}

    def _read_stage(self, number: int) -> Data | None:
        """A stage as it was tried last; None if another job's result was used instead."""
        with suppress(Py4JError):
            stage: Data = self._to_data(self._store().lastStageAttempt(number))
            return stage
        return None

    def _store(self) -> Any:
        return self._get_context().statusStore()

    def _get_context(self) -> Any:
        # Spark's public status has no times.
        context: Any = self._spark.sparkContext
        return context._jsc.sc()  # noqa: SLF001

    def _to_data(self, value: Any) -> Any:
        """Read a value as one text: a call into the JVM for each number would take longer."""
        if self._mapper is None:
            jvm: Any = self._spark._jvm  # noqa: SLF001
            self._mapper = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        return json.loads(self._mapper.writeValueAsString(value))


class StageTimes:
    """When the stages of a batch ran; displays alone need it."""

    def __init__(self, job: Job, spark: SparkSession) -> None:
        self._spark = spark
        self._merges = make_operator(job.operator).merges

    def read_batch(self, stages: Sequence[Data], job: Job) -> BatchStages | None:
        """Read the times of a batch's stages, of the job as it ran; None if Spark does not say."""
        try:
            times = [_read_times(stage) for stage in stages]
        except (ValueError, KeyError):
            return None
        ran = sorted((stage for stage in times if stage), key=lambda stage: stage.started)
        slots = self._spark.sparkContext.defaultParallelism
        shuffled, native = not isinstance(job.grouping, LocalGrouping), is_computed_by_spark(job)
        return BatchStages(tuple(ran), slots, shuffled, self._merges, native) if ran else None


def read_writer_seconds(jobs: SparkJobs, stages: Sequence[Data]) -> dict[int, float]:
    """The run times of the tasks that wrote a batch's rows into a table, by partition; none if
    Spark does not say.
    """
    writing = [stage for stage in stages if stage["outputBytes"] > 0]
    # Behind the rows, Delta may write a checkpoint of its log.
    rows = min(writing, key=lambda stage: int(stage["stageId"]), default=None)
    return {} if rows is None else jobs.read_task_seconds(rows)


def _find_batch(job: Data, default: int) -> int:
    """Find which batch a job is of, in Spark's description of the query's jobs."""
    match = _BATCH.search(job.get("description") or "")
    return int(match[1]) if match else default


def _read_times(stage: Data) -> StageTime | None:
    """A stage that ran; None if it did not."""
    if not stage.get("submissionTime") or not stage.get("completionTime"):
        return None
    return StageTime(
        started=_read_time(stage["submissionTime"]),
        ended=_read_time(stage["completionTime"]),
        run_seconds=stage["executorRunTime"] / 1000,
        reads_shuffle=stage["shuffleReadRecords"] > 0,
        writes=stage["outputBytes"] > 0,
    )


def _read_time(text: str) -> float:
    """Spark's `2026-01-31T12:00:00.000GMT` as Unix time."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp()
