"""When the stages of a batch ran, by Spark's own record of its jobs."""

import json
from contextlib import suppress
from datetime import datetime
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from unskew.config.models.grouping import LocalGrouping
from unskew.config.models.job import Job
from unskew.jobs.observe.stages import BatchStages, StageTime
from unskew.jobs.operators.registry import operator_for

_LISTENERS_MS = 500


class StageTimes:
    """Reads the stages of one batch after the other; displays alone need them."""

    def __init__(self, job: Job, spark: SparkSession) -> None:
        self._spark = spark
        self._merges = operator_for(job.operator).merges
        self._next_job = 0
        self._mapper: Any = None

    def read(self, run: str, grouping: object) -> BatchStages | None:
        """Read what a query's run did since the last call; None if Spark does not say."""
        try:
            # What ended is in the store once Spark's listeners have heard of it.
            self._context().listenerBus().waitUntilEmpty(_LISTENERS_MS)
            numbers = {stage for job in self._read_new_jobs(run) for stage in job["stageIds"]}
            stages = [self._read_stage(number) for number in sorted(numbers)]
        except (Py4JError, ValueError, KeyError):
            return None
        ran = sorted((stage for stage in stages if stage), key=lambda stage: stage.started)
        slots = self._spark.sparkContext.defaultParallelism
        shuffled = not isinstance(grouping, LocalGrouping)
        return BatchStages(tuple(ran), slots, shuffled, self._merges) if ran else None

    def _read_new_jobs(self, run: str) -> list[dict[str, Any]]:
        """Jobs are numbered from 0 without gaps, those of other queries among them."""
        jobs = []
        with suppress(Py4JError):  # there are no more jobs
            while True:
                job = self._to_data(self._store().job(self._next_job))
                self._next_job += 1
                if job.get("jobGroup") == run:
                    jobs.append(job)
        return jobs

    def _read_stage(self, number: int) -> StageTime | None:
        """A stage that ran; None if another job's result was used in its stead."""
        data = self._to_data(self._store().lastStageAttempt(number))
        if not data.get("submissionTime") or not data.get("completionTime"):
            return None
        return StageTime(
            started=_read_time(data["submissionTime"]),
            ended=_read_time(data["completionTime"]),
            run_seconds=data["executorRunTime"] / 1000,
            reads_shuffle=data["shuffleReadRecords"] > 0,
            writes=data["outputBytes"] > 0,
        )

    def _store(self) -> Any:
        return self._context().statusStore()

    def _context(self) -> Any:
        # Spark's public status has no times.
        context: Any = self._spark.sparkContext
        return context._jsc.sc()  # noqa: SLF001

    def _to_data(self, value: Any) -> dict[str, Any]:
        """As one text: a call into the JVM for each number would take longer."""
        if self._mapper is None:
            jvm: Any = self._spark._jvm  # noqa: SLF001
            self._mapper = jvm.org.apache.spark.status.api.v1.JacksonMessageWriter().mapper()
        data: dict[str, Any] = json.loads(self._mapper.writeValueAsString(value))
        return data


def _read_time(text: str) -> float:
    """Spark's `2026-01-31T12:00:00.000GMT` as Unix time."""
    return datetime.fromisoformat(text.replace("GMT", "+00:00")).timestamp()
