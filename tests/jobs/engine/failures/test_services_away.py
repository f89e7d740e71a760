"""A database that is really taken away under a job, and comes back."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import job_over, write_lines
from tests.support.running.postgres_server import postgres_server
from unskew.config.models.job import Job
from unskew.jobs.engine.retries import run_with_retries
from unskew.jobs.engine.service import Service
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.batch import BatchDone
from unskew.jobs.observe.follower import Follower

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.slow]

RUNNING_TOTALS: dict[str, Any] = {"window": {"type": "none"}, "lateness": None}


class Outage(Follower):
    """Takes a service away after the first batch, and back when the job waits for it."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None], records: int) -> None:
        self.states: list[str] = []
        self.stop = Stop()
        self._begin, self._end = begin, end
        self._away = False
        self._left = records

    def batch_done(self, done: BatchDone) -> None:
        if not self.states and not self._away:
            self._away = True
            self._begin()
        self._left -= done.records
        if self._left <= 0:
            self.stop.signal = signal.SIGTERM

    def retrying(self, reason: str, seconds: float) -> None:
        self.states.append("retrying")
        if self._away:
            self._away = False
            self._end()

    def state_changed(self, state: str) -> None:
        self.states.append(state)


def run(spark: SparkSession, job: Job, outage: Outage) -> None:
    run_with_retries(
        job, lambda: Service(job, spark, (outage,), outage.stop), (outage,), outage.stop
    )
    starts = outage.states.count("retrying")
    assert starts >= 1
    assert outage.states[: 2 * starts] == ["retrying", "starting"] * starts
    assert outage.states[-1] == "stopped"


def test_a_job_goes_on_when_its_database_is_back(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number in range(6):
        write_lines(
            tmp_path / "in", f"{number}.json", [{"text": f"a k{number}", "at": START.isoformat()}]
        )
    files = {"type": "files", "path": str(tmp_path / "in"), "files_per_batch": 1}
    with postgres_server() as server:
        with server.connect() as connection:
            connection.execute("CREATE TABLE words (key text PRIMARY KEY, count bigint)")
        job = job_over(
            files,
            tmp_path,
            "database",
            **RUNNING_TOTALS,
            operator={"type": "word_count", "text": "text"},
            sinks=[{"type": "postgres", "url": server.url, "table": "words", "user": "me"}],
        )
        run(spark, job, Outage(lambda: server.end(signal.SIGQUIT), server.start, records=12))
        with server.connect() as connection:
            written = dict(connection.execute("SELECT key, count FROM words").fetchall())
    assert written == {"a": 6} | {f"k{number}": 1 for number in range(6)}
