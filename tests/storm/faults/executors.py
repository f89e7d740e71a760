"""Executors of a standalone cluster, killed under a job that goes on."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.storm.harness.case import Case
from tests.storm.harness.checks import check
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.driver import Driver, driver
from tests.storm.harness.points import POINTS, Checkpoint, wait_for_point
from tests.storm.harness.stage import SPARK, Stage
from tests.storm.oracle.world import routing_of
from tests.support.running.cluster import Cluster

# Many small batches: with the executor that is left a job does several until another has started.
_BATCHES = 24
_KILLS = 16
_STARTS_MAX = 10
_BACK_SECONDS = 120.0
_MERGE = ("in the merge",)


def storm_executors(case: Case, spark: Cluster) -> None:
    """Executors are lost, alone or all at once, at any point of a batch."""
    _storm(case, case.stage(batches=_BATCHES), spark, POINTS[1:])


def storm_shuffle_files(case: Case, spark: Cluster) -> None:
    """An executor is lost with its shuffle files after the merge began.

    With `hashtags`: the bytes of a sketch depend on the order of its rows, so a stage that is run
    again need not write what it wrote before.
    """
    sketches: dict[str, Any] = {"operator": "hashtags", "native": False, "merge_partitions": 4}
    _storm(case, case.stage(batches=_BATCHES, **sketches), spark, _MERGE)


def _storm(case: Case, stage: Stage, spark: Cluster, points: tuple[str, ...]) -> None:
    rng, counts = case.rng(), case.counts
    for number in range(_STARTS_MAX):
        routing = routing_of(stage.world, rng)
        log = stage.folder / f"log-{number}"
        with driver(stage.job_file(routing, spark={**SPARK, **spark.settings()}), log) as started:
            _strike(case, started, stage.watched(routing), spark, rng, points)
            code = started.wait()
            if code == 0:
                check(stage, counts)
                return
            counts.outcomes["jobs ended by lost executors, then started again"] += 1
            counts.notes.append(started.text())
    raise StormError(f"{stage.world}: {_STARTS_MAX} starts were not enough: {counts.notes}")


def _strike(
    case: Case,
    started: Driver,
    checkpoint: Checkpoint,
    spark: Cluster,
    rng: random.Random,
    points: tuple[str, ...],
) -> None:
    struck = -1
    while case.counts.faults["executor killed"] < _KILLS:
        # A batch is struck once: the fourth loss of a task ends its query.
        skip = rng.choice((0, 1)) or (checkpoint.committed() < struck)
        point, ended = rng.choice(points), started.ended
        position = wait_for_point(checkpoint, point, ended, case.seconds_left(), skip)
        if position is None:
            return
        count, with_files = rng.choice((1, 2, 2)), points == _MERGE
        if lose_executors(
            spark.executors(), checkpoint, rng, case.counts, count, with_shuffle_files=with_files
        ):
            struck = position.batch
            _wait_for_executors(spark, started)


def lose_executors(
    executors: list[psutil.Process],
    checkpoint: Checkpoint,
    rng: random.Random,
    counts: Counts,
    count: int = 1,
    *,
    with_shuffle_files: bool = False,
) -> int:
    """Kill `count` while all stand still, so that the batch cannot pass the point meanwhile.

    One that has not begun its work is left alone: nothing would be lost. Return how many.

    with_shuffle_files: first those that have such files, where there are any: a small batch may
    have run on one executor alone.
    """
    executors = [executor for executor in executors if _is_at_work(executor)]
    for executor in executors:
        _signal(executor, signal.SIGSTOP)
    position = checkpoint.position()
    holders = [executor for executor in executors if _has_files(executor, "*/*/shuffle_*.data")]
    drawn = rng.sample(executors, len(executors))
    if with_shuffle_files:
        drawn.sort(key=lambda executor: executor not in holders)
    victims = drawn[:count]
    for executor in executors:
        _signal(executor, signal.SIGKILL if executor in victims else signal.SIGCONT)
    counts.faults["executor killed"] += len(victims)
    counts.points[position.point] += len(victims)
    lost = sum(victim in holders for victim in victims)
    if position.point == "in the merge" and lost:
        counts.faults["executor killed with its shuffle files, the merge begun"] += lost
    return len(victims)


def _is_at_work(executor: psutil.Process) -> bool:
    """Is it more than a JVM that was just launched?"""
    return _has_files(executor, "blockmgr-*")


def _has_files(executor: psutil.Process, pattern: str) -> bool:
    try:
        folders = executor.environ().get("SPARK_EXECUTOR_DIRS", "").split(os.pathsep)
    except psutil.NoSuchProcess:
        return False
    return any(any(Path(folder).glob(pattern)) for folder in filter(None, folders))


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _wait_for_executors(spark: Cluster, started: Driver) -> None:
    """Wait until both workers have one at work again."""
    deadline = time.monotonic() + _BACK_SECONDS
    while sum(map(_is_at_work, spark.executors())) < 2 and not started.ended():
        if time.monotonic() > deadline:
            raise StormError("the cluster starts no new executor")
        time.sleep(0.1)
