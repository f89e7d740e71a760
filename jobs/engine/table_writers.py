"""What the writers of a job's table did in a batch: files and bytes by the table's log, seconds by
Spark's task metrics.
"""

import json
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from unskew.config.models.job import Job
from unskew.jobs.observe.written import WrittenFiles
from unskew.jobs.operators.registry import operator_for
from unskew.jobs.sinks.registry import sinks_of
from unskew.jobs.sinks.table import TableSink


class TableWriters:
    """The writers of a job's table; of a job without rows for one there is nothing to tell."""

    def __init__(self, job: Job, spark: SparkSession) -> None:
        sink = sinks_of(job)[0]
        merges = operator_for(job.operator).merges
        self._sink = sink if isinstance(sink, TableSink) and not merges else None
        self._writers = job.partitions
        self._spark = spark
        self._jobs_seen = -1

    def of_batch(self, progress: dict[str, Any]) -> WrittenFiles | None:
        """What they did in a batch, by Spark's progress of it; None if it is not known."""
        if self._sink is None:
            return None
        # Displays alone need it: the job goes on without.
        with suppress(OSError, ValueError, KeyError, Py4JError, pa.ArrowException):
            files = self._sink.files_of_batch(int(progress["batchId"]), progress["id"])
            seconds = dict(self._seconds(progress["runId"]))
            if files is not None:
                return self._by_writer([(f.writer or 0, f.size) for f in files], seconds)
        return None

    def _by_writer(self, files: list[tuple[int, int]], seconds: dict[int, float]) -> WrittenFiles:
        # Without a shuffle the writers are the source's tasks, however many there are.
        writers = max([self._writers - 1, *(writer for writer, _ in files), *seconds]) + 1
        numbers = np.array([writer for writer, _ in files], np.int64)
        sizes = np.zeros(writers, np.int64)
        np.add.at(sizes, numbers, np.array([size for _, size in files], np.int64))
        times = np.array([seconds.get(writer, 0.0) for writer in range(writers)])
        return WrittenFiles(np.bincount(numbers, minlength=writers), sizes, times)

    def _seconds(self, run: str) -> Iterator[tuple[int, float]]:
        """The run time of each task of the stage that wrote the batch."""
        context: Any = self._spark.sparkContext
        # Spark's public status has no times of tasks.
        store = context._jsc.sc().statusStore()  # noqa: SLF001
        tracker = context.statusTracker()
        new = [number for number in tracker.getJobIdsForGroup(run) if number > self._jobs_seen]
        self._jobs_seen = max([self._jobs_seen, *new])
        infos = [tracker.getJobInfo(number) for number in new]
        stages = {int(stage) for info in infos if info for stage in info.stageIds}
        attempts = [store.lastStageAttempt(stage) for stage in stages]
        writing = [stage for stage in attempts if stage.outputBytes() > 0]
        if not writing:
            return
        last = max(writing, key=lambda stage: stage.stageId())
        tasks = store.taskList(last.stageId(), last.attemptId(), last.numTasks() * 2)
        mapper = self._spark._jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()  # type: ignore[union-attr]  # noqa: SLF001
        # All at once: a call into the JVM for each number would take a second for 500 tasks.
        for task in json.loads(mapper.writeValueAsString(tasks)):
            if task["status"] == "SUCCESS":
                yield int(task["partitionId"]), task["taskMetrics"]["executorRunTime"] / 1000
