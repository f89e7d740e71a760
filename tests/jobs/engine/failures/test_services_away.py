"""A broker and a database that are really taken away under a job, and come back."""

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import job_over, write_lines
from tests.support.running.postgres_server import postgres_server
from unskew.config.models.job import Job
from unskew.jobs.engine.retries import run_with_retries
from unskew.jobs.engine.service import Service
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.slow]

RUNNING_TOTALS: dict[str, Any] = {"window": {"type": "none"}, "lateness": None}
# Kafka's client gives up after a minute by itself, and Spark asks it three times.
SOON = {
    "kafka.request.timeout.ms": 1000,
    "kafka.default.api.timeout.ms": 2000,
    "fetchOffset.numRetries": 1,
    "fetchOffset.retryIntervalMs": 10,
}


class Outage(Follower):
    """Takes a service away after the first batch, and back when the job waits for it."""

    def __init__(self, begin: Callable[[], None], end: Callable[[], None], records: int) -> None:
        self.states: list[str] = []
        self.stop = Stop()
        self._begin, self._end = begin, end
        self._away = False
        self._left = records

    def on_batch_done(self, done: BatchDone) -> None:
        if not self.states and not self._away:
            self._away = True
            self._begin()
        self._left -= done.records
        if self._left <= 0:
            self.stop.signal = signal.SIGTERM

    def on_retry(self, reason: str, seconds: float) -> None:
        self.states.append("retrying")
        if self._away:
            self._away = False
            self._end()

    def on_state_changed(self, state: str) -> None:
        self.states.append(state)


def run(spark: SparkSession, job: Job, outage: Outage) -> None:
    run_with_retries(
        job, lambda: Service(job, spark, (outage,), outage.stop), (outage,), outage.stop
    )
    starts = outage.states.count("retrying")
    assert starts >= 1
    assert outage.states[: 2 * starts] == ["retrying", "starting"] * starts
    assert outage.states[-1] == "stopped"


def test_a_job_goes_on_when_its_broker_is_back(spark: SparkSession, tmp_path: Path) -> None:
    first = broker = Broker(None, tmp_path / "broker")

    def produce(words: str) -> None:
        producer = Producer({"bootstrap.servers": first.address, "log_level": 0})
        for word in words.split():
            producer.produce("away", word.encode())
        assert producer.flush(30) == 0

    def back() -> None:
        nonlocal broker
        broker = Broker(first.port, tmp_path / "broker")
        produce("b c")

    try:
        first.create_topics(["away"])
        produce("a b")
        source = {
            "type": "kafka",
            "bootstrap_servers": first.address,
            "subscribe": ["away"],
            "start": "earliest",
            "options": SOON,
        }
        every_second = {"type": "interval", "interval": "1 s"}
        changes = {**RUNNING_TOTALS, "decode": {"type": "text"}, "trigger": every_second}
        job = job_over(source, tmp_path, "broker", **changes, event_time="timestamp")
        run(spark, job, Outage(first.stop, back, records=4))
    finally:
        broker.stop()
    rows = spark.table("totals").orderBy("batch_id").collect()
    assert {row["key"]: row["count"] for row in rows} == {"a": 1, "b": 2, "c": 1}


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
