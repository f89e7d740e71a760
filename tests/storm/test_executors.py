"""Which executors the storm kills."""

import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from tests.storm.faults.executors import lose_executors
from tests.storm.harness.counts import Counts
from tests.storm.harness.points import Checkpoint
from tests.storm.oracle.world import routing_of, world_of


@contextmanager
def process_with(folder: Path) -> Iterator[psutil.Process]:
    """A process with an executor's folder."""
    environment = {**os.environ, "SPARK_EXECUTOR_DIRS": str(folder)}
    with subprocess.Popen(["/bin/sleep", "600"], env=environment) as started:
        try:
            yield psutil.Process(started.pid)
        finally:
            started.kill()


def test_an_executor_that_was_only_just_launched_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "at-work" / "blockmgr-1").mkdir(parents=True)
    world, counts, rng = world_of(1), Counts(), random.Random(1)
    checkpoint = Checkpoint(tmp_path / "checkpoint", world, routing_of(world, rng))
    with process_with(tmp_path / "at-work") as old, process_with(tmp_path / "launched") as new:
        assert lose_executors([old, new], checkpoint, rng, counts, count=2) == 1
        old.wait(10)
        assert new.is_running()
    assert counts.faults == {"executor killed": 1}
