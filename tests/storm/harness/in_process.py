"""Jobs inside the storm's own process: one JVM, in which queries start and end within a second."""

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.storm.harness.checks import check_text
from tests.storm.harness.counts import StormError
from tests.storm.harness.stage import SPARK
from tests.support.running.cluster import SHORT_LIVED, python_workers
from tests.support.running.processes import children_named
from unskew import load_job
from unskew.config.errors import UnskewError
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.engine.preflight import check
from unskew.jobs.engine.retries import run_with_retries
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import session
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.follower import Follower
from unskew.jobs.query.pipeline import Pipeline

_END_SECONDS = 1800.0
_FAIL_SECONDS = 2
IN_ONE_JVM: dict[str, Any] = {"table_format": "parquet"}
"""What worlds in here have in common: Delta is an extension of Spark's, for jobs that write it."""


class Jvm:
    """The one Spark session, and the processes that work for it."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        gateway: Any = SparkContext._gateway
        self.process = psutil.Process(gateway.proc.pid)

    def workers(self) -> list[psutil.Process]:
        """The Python workers that run now."""
        return python_workers(self.process)

    def daemons(self) -> list[psutil.Process]:
        """The processes that fork them."""
        return children_named("python", self.process.pid)

    def stop_queries(self) -> int:
        """Stop whatever runs, in mid-batch; how many queries there were."""
        active = self.spark.streams.active
        for query in active:
            with suppress(Exception):  # one that does not stop in time is the service's to handle
                query.stop()
        return len(active)

    def fail_queries(self) -> int:
        """Cancel the jobs that run, so that their queries fail; how many did."""
        active = self.spark.streams.active
        self.spark.sparkContext.cancelAllJobs()
        failed = 0
        for query in active:
            try:
                query.awaitTermination(_FAIL_SECONDS)
            except PySparkException:
                failed += 1
        return failed

    def kill_tasks(self) -> int:
        """Kill the tasks that run; how many there were. They are tried again."""
        context: Any = self.spark.sparkContext._jsc.sc()
        store = context.statusStore()
        killed = 0
        stages = store.activeStages()
        for index in range(stages.size()):
            stage = stages.apply(index)
            tasks = store.taskList(stage.stageId(), stage.attemptId(), 100)
            for number in range(tasks.size()):
                task = tasks.apply(number)
                if task.status() == "RUNNING":
                    killed += bool(context.killTaskAttempt(task.taskId(), True, "storm"))
        return killed


@contextmanager
def jvm(log: Path) -> Iterator[Jvm]:
    """Start it, with all that a storm's worlds need; what it says goes to a file."""
    settings = {**SPARK, "spark.sql.streaming.stopTimeout": "30s"}
    with ExitStack() as stack:
        with _stderr_to(log), patch.dict(os.environ, JAVA_TOOL_OPTIONS=SHORT_LIVED):
            spark = stack.enter_context(session("storm", settings))
        yield Jvm(spark)


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """What is started in here writes its standard error to a file.

    A query that is interrupted while it calls Python prints a thousand lines of a
    StackOverflowError in a regular expression of Spark's own.
    """
    kept = os.dup(2)
    try:
        with log.open("ab") as file:
            os.dup2(file.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


class _Retries(Follower):
    """Counts the starts that a job makes by itself."""

    def __init__(self) -> None:
        self.count = 0

    def on_retry(self, reason: str, seconds: float) -> None:
        self.count += 1


class Attempt:
    """One start of a job, in a thread of its own, until it ends or is made to.

    As `unskew run` does, it is checked first, and with `retry` it is started again after faults
    that may pass.
    """

    def __init__(self, jvm: Jvm, job_file: Path, *, retry: bool = False) -> None:
        self.retries = _Retries()
        self._retry = retry
        self.error: UnskewError | None = None
        self.unexpected: BaseException | None = None
        self._job = load_job(job_file)
        self._spark = jvm.spark
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._spark.conf.set("spark.sql.shuffle.partitions", self._job.merge.partitions)
        self._thread.start()

    def _run(self) -> None:
        try:
            check(Pipeline(self._job, open_journal(self._job)))
            if self._retry:
                followers = (self.retries,)
                run_with_retries(self._job, self._service, followers, Stop())
            else:
                self._service().run()
        except UnskewError as error:
            self.error = error
        except BaseException as error:  # noqa: BLE001 - told as a finding by whoever waits for it
            self.unexpected = error

    def _service(self) -> Service:
        return Service(self._job, self._spark)

    def ended(self) -> bool:
        """Has it ended?"""
        return not self._thread.is_alive()

    def finish(self, seconds: float = _END_SECONDS) -> UnskewError | None:
        """Wait for its end; the error that it ended with, which must be one of clear lines."""
        self._thread.join(seconds)
        if not self.ended():
            raise StormError("the job neither ends nor goes on")
        if self.unexpected:
            raise StormError(f"no clear error: {self.unexpected!r}") from self.unexpected
        check_text(str(self.error or ""))
        return self.error
