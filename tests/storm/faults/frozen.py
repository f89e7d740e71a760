"""A driver that stands still and wakes up again, beside a second start on the same checkpoint."""

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

from tests.storm.harness.checks import check, check_text
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.driver import Driver, driver, signal_group
from tests.storm.harness.points import POINTS, Checkpoint, wait_for_point
from tests.storm.harness.services import Services
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import routing_of, world_of
from unskew.jobs.checkpoint.lock import JVM_LOCK, LOCK

_POINT_SECONDS = 1200.0
_TIMES = 3


def storm_frozen(seed: int, folder: Path, services: Services, counts: Counts) -> None:
    """The frozen driver keeps its lock: the second start is refused, and the first goes on."""
    stage, rng = _staged("frozen", seed, folder, services, batches=12)
    routing = routing_of(stage.world, rng)
    with driver(stage.job_file(routing), folder / "log-first") as first:
        for number in range(_TIMES):
            _freeze(stage.watched(routing), first, rng, counts)
            other = stage.job_file(routing_of(stage.world, rng))
            with driver(other, folder / f"log-second-{number}") as second:
                _check_refused(second)
            counts.outcomes["second start refused"] += 1
            signal_group(first, signal.SIGCONT)
        if first.wait() != 0:
            raise StormError(f"the first start: {first.text()}")
    check(stage, counts)


def _check_refused(second: Driver) -> None:
    code = second.wait()
    check_text(second.text())
    if code != 1 or "in use by process" not in second.text():
        raise StormError(f"the second start: exit code {code}: {second.text()}")


def storm_unlocked(seed: int, folder: Path, services: Services, counts: Counts) -> None:
    """As on a checkpoint without locks: a second driver goes on, then the first one wakes up.

    Not into Kafka, where the woken one may repeat the totals of its batch after newer ones.
    """
    sink = random.Random(f"sink {seed}").choice(("files", "postgres", "table"))
    stage, rng = _staged("unlocked", seed, folder, services, sink=sink)
    routing = routing_of(stage.world, rng)
    with driver(stage.job_file(routing), folder / "log-first") as first:
        _freeze(stage.watched(routing), first, rng, counts)
        for name in (LOCK, JVM_LOCK):
            (stage.checkpoint / name).unlink()
        other = stage.job_file(routing_of(stage.world, rng))
        with driver(other, folder / "log-second") as second:
            if rng.random() < 0.5:
                time.sleep(rng.uniform(5, 20))
                signal_group(first, signal.SIGCONT)
            if second.wait() != 0:
                counts.outcomes["second driver ended beside a woken one"] += 1
        signal_group(first, signal.SIGCONT)
        first.wait()
    with driver(stage.job_file(routing), folder / "log-last") as last:
        if last.wait() != 0:
            raise StormError(f"the last start: {last.text()}")
    check(stage, counts)


def _staged(
    kind: str, seed: int, folder: Path, services: Services, **fixed: Any
) -> tuple[Stage, random.Random]:
    stage = Stage(world_of(seed, **fixed), folder, services, f"{kind}-{seed}-{os.getpid()}")
    stage.prepare()
    return stage, random.Random(f"frozen {seed}")


def _freeze(checkpoint: Checkpoint, first: Driver, rng: random.Random, counts: Counts) -> None:
    """Stop it in mid-batch."""
    point, skip = rng.choice(POINTS[1:]), rng.choice((0, 1))
    if not wait_for_point(checkpoint, point, first.ended, _POINT_SECONDS, skip):
        raise StormError(f"the driver ended before it could be frozen: {first.text()}")
    signal_group(first, signal.SIGSTOP)
    counts.faults["driver frozen"] += 1
    counts.points[checkpoint.position().point] += 1
