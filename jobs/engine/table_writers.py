"""What the writers of a job's table did in a batch: files and bytes by the table's log, seconds by
Spark's task metrics.
"""

import json
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


class TableWriters:
    """The writers of a job's table; of a job without rows for one there is nothing to tell."""

    def __init__(self, job: Job, spark: SparkSession) -> None:
        sink = sinks_of(job)[0]
        merges = operator_for(job.operator).merges
        self._sink = None if merges else sink
        self._writers = job.partitions
        self._task_seconds = TaskSeconds(spark)

    def of_batch(self, progress: dict[str, Any]) -> WrittenFiles | None:
        """What they did in a batch, by Spark's progress of it; None if it is not known."""
        if self._sink is None:
            return None
        # Displays alone need it: the job goes on without.
        with suppress(OSError, ValueError, KeyError, Py4JError, pa.ArrowException):
            files = self._sink.files_of_batch(int(progress["batchId"]), progress["id"])
            seconds = self._task_seconds.read(progress["runId"])
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


class TaskSeconds:
    """The run times of the tasks that wrote, by Spark's own metrics."""

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._jobs_seen = -1

    def read(self, run: str) -> dict[int, float]:
        """Read those of the newest stage of a query's run that wrote, by partition.

        Only jobs that have come since the last call are looked at: those of a batch.
        """
        stage = self._find_writing_stage(run)
        if stage is None:
            return {}
        store, jvm = self._store(), self._spark._jvm  # noqa: SLF001
        assert jvm is not None
        tasks = store.taskList(stage.stageId(), stage.attemptId(), stage.numTasks() * 2)
        mapper = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        # All at once: a call into the JVM for each number would take a second for 500 tasks.
        return {
            int(task["partitionId"]): task["taskMetrics"]["executorRunTime"] / 1000
            for task in json.loads(mapper.writeValueAsString(tasks))
            if task["status"] == "SUCCESS"
        }

    def _find_writing_stage(self, run: str) -> Any:
        tracker = self._spark.sparkContext.statusTracker()
        new = [number for number in tracker.getJobIdsForGroup(run) if number > self._jobs_seen]
        self._jobs_seen = max([self._jobs_seen, *new])
        infos = [tracker.getJobInfo(number) for number in new]
        numbers = {int(number) for info in infos if info for number in info.stageIds}
        stages = [self._store().lastStageAttempt(number) for number in numbers]
        writing = [stage for stage in stages if stage.outputBytes() > 0]
        return max(writing, key=lambda stage: int(stage.stageId()), default=None)

    def _store(self) -> Any:
        # Spark's public status has no times of tasks.
        context: Any = self._spark.sparkContext
        return context._jsc.sc().statusStore()  # noqa: SLF001
