"""A batch that takes longer than a job may be silent is no stall while its tasks get done."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.in_process import job_over, write_lines
from tests.support.oracles import records
from unskew.jobs.engine.service import Service
from unskew.jobs.observe.batch import BatchDone
from unskew.jobs.observe.board import HealthFollower, board_of
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import Health

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TASKS = 12


class _Signs(Follower):
    """How often tasks were seen to get done before the batch was."""

    count = 0
    in_batch = 0

    def working(self) -> None:
        self.count += 1

    def batch(self, done: BatchDone) -> None:
        self.in_batch = self.count


def test_tasks_that_get_done_are_seen_while_a_batch_lasts(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.jobs.engine.service._LOOK_SECONDS", 0.0)
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
    signs = _Signs()
    Service(job, spark, (signs,)).run()
    # Two tasks of a second at a time, and two looks a second at the least.
    assert signs.in_batch >= TASKS / 4


def test_they_keep_a_job_from_being_stalled() -> None:
    now = [0.0]
    health = Health(300.0, lambda: now[0])
    job = job_over({"type": "files", "path": "in"}, Path("/data"), "long")
    follower = HealthFollower(health, board_of(job, health))
    for _ in range(5):
        now[0] += 299
        follower.working()
        assert health.state == "running"
    now[0] += 301
    assert health.state == "stalled"
