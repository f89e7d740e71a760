"""A batch that takes longer than the stall limit is no stall while its tasks complete."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import records
from tests.support.running.in_process import job_over, write_lines
from unskew.jobs.engine.service import Service
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import Health

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TASKS = 12


class _Completions(Follower):
    """How often completed tasks were reported before the batch was done."""

    count = 0
    in_batch = 0

    def on_tasks_done(self) -> None:
        self.count += 1

    def on_batch_done(self, done: BatchDone) -> None:
        self.in_batch = self.count


def test_completed_tasks_are_reported_while_a_batch_lasts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.jobs.engine.service._TASKS_CHECK_SECONDS", 0.0)
    write_lines(tmp_path / "in", "1", records(seed=3, count=120))
    job = job_over(
        {"type": "files", "path": str(tmp_path / "in")},
        tmp_path,
        "long",
        operator={"type": "paced", "key": "user", "cost": "100 ms"},
        grouping={"type": "shuffle"},
        partitions=TASKS,
        window={"type": "none"},
        lateness=None,
    )
    completions = _Completions()
    Service(job, spark, (completions,)).run()
    # Two tasks of a second at a time, and two checks a second at the least.
    assert completions.in_batch >= TASKS / 4


def test_they_keep_a_job_from_being_stalled() -> None:
    now = [0.0]
    health = Health(300.0, lambda: now[0])
    for _ in range(5):
        now[0] += 299
        health.on_tasks_done()
        assert health.state == "running"
    now[0] += 301
    assert health.state == "stalled"
