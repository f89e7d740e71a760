"""Executors of a standalone cluster, killed under a job that goes on."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

from tests.storm.harness.checks import check
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.driver import Driver, driver
from tests.storm.harness.points import POINTS, Checkpoint, wait_for_point
from tests.storm.harness.services import Services
from tests.storm.harness.stage import SPARK, Stage
from tests.storm.oracle.world import routing_of, world_of
from tests.support.running.cluster import Cluster

_KILLS = 10
_POINT_SECONDS = 1200.0
_BACK_SECONDS = 120.0
_MERGING = POINTS.index("in the merge")


def storm_executors(
    seed: int, folder: Path, services: Services, spark: Cluster, counts: Counts
) -> None:
    """One executor after the other is lost, at any point of a batch."""
    stage = Stage(world_of(seed, batches=12), folder, services, f"executors-{seed}-{os.getpid()}")
    _storm(stage, spark, random.Random(f"executors {seed}"), counts, named=False)


def storm_shuffle_files(
    seed: int, folder: Path, services: Services, spark: Cluster, counts: Counts
) -> None:
    """An executor is lost with its shuffle files after the merge began.

    With `hashtags`: the bytes of a sketch depend on the order of its rows, so a stage that is run
    again need not write what it wrote before.
    """
    world = world_of(seed, operator="hashtags", native=False, batches=12, merge_partitions=4)
    stage = Stage(world, folder, services, f"shuffle-{seed}-{os.getpid()}")
    _storm(stage, spark, random.Random(f"shuffle {seed}"), counts, named=True)


def _storm(
    stage: Stage, spark: Cluster, rng: random.Random, counts: Counts, *, named: bool
) -> None:
    stage.prepare()
    for number in range(10):
        routing = routing_of(stage.world, rng)
        log = stage.folder / f"log-{number}"
        with driver(stage.job_file(routing, spark=_settings(spark)), log) as started:
            _strike(started, stage.watched(routing), spark, rng, counts, named=named)
            code = started.wait()
            if code == 0:
                check(stage, counts)
                return
            counts.outcomes["jobs ended by lost executors, then started again"] += 1
            counts.notes.append(started.text())
    raise StormError(f"{stage.world}: ten starts were not enough: {counts.notes}")


def _settings(spark: Cluster) -> dict[str, Any]:
    return {
        **SPARK,
        "spark.master": spark.url,
        "spark.executor.memory": "512m",
        "spark.scheduler.minRegisteredResourcesRatio": "1.0",
        # By default two minutes go by until a lost executor's shuffle files are given up.
        "spark.shuffle.io.connectionTimeout": "15s",
        "spark.shuffle.io.retryWait": "1s",
    }


def _strike(
    started: Driver,
    checkpoint: Checkpoint,
    spark: Cluster,
    rng: random.Random,
    counts: Counts,
    *,
    named: bool,
) -> None:
    while counts.faults["executor killed"] < _KILLS:
        point = "in the merge" if named else rng.choice(POINTS[1:])
        skip = rng.choice((0, 1))
        if not wait_for_point(checkpoint, point, started.ended, _POINT_SECONDS, skip):
            return
        executors = spark.executors()
        if not executors:
            continue
        lose_executor(executors, checkpoint, rng, counts, with_shuffle_files=named)
        _wait_for_executors(spark, started)


def lose_executor(
    executors: list[psutil.Process],
    checkpoint: Checkpoint,
    rng: random.Random,
    counts: Counts,
    *,
    with_shuffle_files: bool = False,
) -> None:
    """Kill one while all of them stand still, so that the batch cannot pass the point meanwhile.

    with_shuffle_files: one that has such files, where there is any: a small batch may have run on
    one executor alone.
    """
    for executor in executors:
        _signal(executor, signal.SIGSTOP)
    position = checkpoint.position()
    holders = [executor for executor in executors if _has_shuffle_files(executor)]
    victim = rng.choice((with_shuffle_files and holders) or executors)
    _signal(victim, signal.SIGKILL)
    for executor in executors:
        if executor is not victim:
            _signal(executor, signal.SIGCONT)
    counts.faults["executor killed"] += 1
    counts.points[position.point] += 1
    if position.point == "in the merge" and victim in holders:
        counts.faults["executor killed with its shuffle files, the merge begun"] += 1


def _has_shuffle_files(executor: psutil.Process) -> bool:
    try:
        folders = executor.environ().get("SPARK_EXECUTOR_DIRS", "").split(os.pathsep)
    except psutil.NoSuchProcess:
        return False
    return any(any(Path(folder).glob("*/*/shuffle_*.data")) for folder in filter(None, folders))


def _signal(process: psutil.Process, number: signal.Signals) -> None:
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def _wait_for_executors(spark: Cluster, started: Driver) -> None:
    """Wait until both workers have one again."""
    deadline = time.monotonic() + _BACK_SECONDS
    while len(spark.executors()) < 2 and not started.ended():
        if time.monotonic() > deadline:
            raise StormError("the cluster starts no new executor")
        time.sleep(0.1)
