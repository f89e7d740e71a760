"""Killed, stopped and overtaken processes in mid-batch change no total, no route and no metric."""

import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.jobs.engine.failures.test_replay import seen
from tests.support.running.cluster import cluster, python_workers
from tests.support.running.job_process import (
    Running,
    finished,
    job_words,
    journal_agrees,
    make_topics,
    produce,
    running,
    totals,
)
from tests.support.running.processes import children_named
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.checkpoint.files import JOURNAL_FOLDER
from unskew.jobs.kafka.broker import Broker

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.long]

TOPIC = "replayed"
LINES = 3000
BATCHES = 3
# A thousand lines a batch in two Kafka partitions: two tasks a partition.
SOURCES = 4
# In its first batch a source takes Spark's parallelism for the number of sources.
SAME_SPLIT = {"source__records_per_task": 300, "spark__spark.default.parallelism": SOURCES}


@dataclass
class Calm:
    """A run that nothing disturbed."""

    broker: Broker
    counts: Counter[str]
    routes: dict[str, Any]

    def words(self, folder: Path, name: str, cost: str, **settings: Any) -> list[str]:
        """The same job with results of its own, at so much time a record."""
        for topic in (f"{name}-counts", f"{name}-dead"):
            self.broker.create_topics([topic])
        key = "element_at(split(value, ' '), 1)"
        return job_words(
            self.broker.address,
            folder,
            TOPIC,
            operator=f'{{type: paced, key: "{key}", cost: {cost}}}',
            grouping__type="w_choices",
            source__records_per_batch=LINES // BATCHES,
            sinks=f"[{{type: kafka, topic: {name}-counts}}]",
            dead_letters__topic=f"{name}-dead",
            checkpoint=folder / name,
            **SAME_SPLIT,
            **settings,
        )


@pytest.fixture(scope="module")
def calm(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Calm:
    folder = tmp_path_factory.mktemp("calm")
    make_topics(broker, TOPIC)
    lines = produce(broker, TOPIC, LINES, seed=31)
    made = Calm(broker, Counter(), {})
    code, _, errors = finished(made.words(folder, "calm", "0 us"), "--available-now")
    assert code == 0, errors
    made.counts.update(totals(broker, "calm-counts"))
    assert 5 * made.counts.total() == lines.total()
    made.routes = seen(Journal(str(folder / "calm" / JOURNAL_FOLDER)))
    return made


def wait_for(job: Running, what: Callable[[], bool]) -> None:
    """Look often: what is waited for may be over soon."""
    deadline = time.monotonic() + 300
    while not what():
        assert job.process.poll() is None, job.text()
        assert time.monotonic() < deadline, job.text()
        time.sleep(0.02)


def in_partial(journal: Journal, batch: int) -> bool:
    """Has this batch been routed, and no partition is done with it?"""
    return len(journal.states(batch)) == SOURCES and not journal.reports(batch)


def jvm_of(job: Running) -> psutil.Process:
    return children_named("java", job.process.pid)[0]


def ends_like(calm: Calm, job: Running, checkpoint: Path) -> None:
    """The job gets to the end of the topic with the totals, routes and metrics of a calm run."""
    wait_for(job, (checkpoint / "commits" / str(BATCHES - 1)).exists)
    metrics = job.wait_for_records(calm.counts.total())
    assert metrics["unskew_records_total", ""] == calm.counts.total()
    assert metrics["unskew_dead_letters_total", "not_utf8"] == LINES // 100
    journal_agrees(metrics, checkpoint)
    code, _ = job.stop(signal.SIGTERM)
    assert code == 0, job.text()
    assert totals(calm.broker, f"{checkpoint.name}-counts") == dict(calm.counts)
    assert seen(Journal(str(checkpoint / JOURNAL_FOLDER))) == calm.routes


@pytest.mark.timeout(600)
def test_python_workers_killed_in_every_batch(calm: Calm, tmp_path: Path) -> None:
    words = calm.words(tmp_path, "workers", "2 ms", **{"spark__spark.master": "local[2,4]"})
    checkpoint = tmp_path / "workers"
    journal = Journal(str(checkpoint / JOURNAL_FOLDER))
    with running(words, tmp_path / "log") as job:
        for batch in range(BATCHES):
            wait_for(job, lambda batch=batch: in_partial(journal, batch))  # type: ignore[misc]
            killed = python_workers(jvm_of(job))
            assert killed
            for process in killed:
                with suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.SIGKILL)
        ends_like(calm, job, checkpoint)


@pytest.mark.timeout(900)
def test_a_stopped_executor_is_overtaken_and_a_killed_one_replaced(
    calm: Calm, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "cluster"
    journal = Journal(str(checkpoint / JOURNAL_FOLDER))
    with cluster(tmp_path / "spark") as spark:
        settings = {
            "spark__spark.master": spark.url,
            "spark__spark.executor.memory": "512m",
            "spark__spark.scheduler.minRegisteredResourcesRatio": 1.0,
            "spark__spark.speculation": True,
            "spark__spark.speculation.interval": "200ms",
            "spark__spark.speculation.quantile": 0.5,
            "spark__spark.speculation.multiplier": 1.5,
        }
        words = calm.words(tmp_path, "cluster", "4 ms", **settings)
        with running(words, tmp_path / "log") as job:
            wait_for(job, lambda: in_partial(journal, 0))
            first, second = spark.executors()
            asleep = python_workers(first)
            assert asleep
            for process in asleep:
                process.suspend()
            # The copies of its tasks on the other executor win, while it sleeps.
            wait_for(job, (checkpoint / "commits" / "0").exists)
            reports = [
                PartitionReport.from_snapshot(report) for report in journal.reports(0).values()
            ]
            assert len({report.executor for report in reports}) == 1
            for process in asleep:
                with suppress(psutil.NoSuchProcess):
                    process.resume()

            wait_for(job, lambda: in_partial(journal, 1))
            second.kill()
            ends_like(calm, job, checkpoint)
        assert second.pid not in {process.pid for process in spark.executors()}
