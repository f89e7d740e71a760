"""Real drivers: killed at each point of a batch and at random moments, whole or in parts."""

import os
import random
import signal
import time
from pathlib import Path

from tests.storm.harness.checks import check, check_text
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.driver import Driver, driver, gone, signal_group
from tests.storm.harness.points import POINTS, Checkpoint, wait_for_point
from tests.storm.harness.services import Services
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import Routing, routing_of, world_of

VICTIMS = ("driver killed", "JVM killed", "driver and JVM killed")
_KILLS = 10
_POINT_SECONDS = 1200.0


def storm_drivers(seed: int, folder: Path, services: Services, counts: Counts) -> None:
    """One world: its drivers are killed some times, the last one is left alone."""
    stage = Stage(world_of(seed, batches=12), folder, services, f"drivers-{seed}-{os.getpid()}")
    stage.prepare()
    rng = random.Random(f"kills {seed}")
    for number in range(_KILLS):
        if not _killed(stage, rng, counts, folder / f"log-{number}"):
            break
    finish(stage, routing_of(stage.world, rng), folder / "log")
    check(stage, counts)


def finish(stage: Stage, routing: Routing, log: Path) -> None:
    """A start that nothing disturbs: it must get to the end."""
    with driver(stage.job_file(routing), log) as last:
        code = last.wait()
        if code != 0:
            raise StormError(f"{stage.world}: exit code {code}: {last.text()}")


def _killed(stage: Stage, rng: random.Random, counts: Counts, log: Path) -> bool:
    """Start the job and kill it; False if it came to its end before."""
    routing = routing_of(stage.world, rng)
    victim, at_once = rng.choice(VICTIMS), rng.random() < 0.5
    with driver(stage.job_file(routing), log) as started:
        checkpoint = stage.watched(routing)
        if not _wait(started, checkpoint, rng):
            if started.wait() != 0:
                raise StormError(f"{stage.world}: {started.text()}")
            return False
        jvm = started.jvm()
        if jvm is None:  # it has not been started yet
            victim = "driver killed"
        _kill(victim, started)
        counts.faults[victim] += 1
        counts.points[checkpoint.position().point] += 1
        started.wait()
        if victim == "JVM killed":
            _ended_clearly(started, counts)
        if jvm and not at_once:
            gone(jvm)
        if victim != "JVM killed":
            check_text(started.text())
    return True


def _ended_clearly(started: Driver, counts: Counts) -> None:
    """Without its JVM a driver ends with exit code 1; a trace on the way breaks no total."""
    if started.process.returncode != 1:
        raise StormError(f"exit code {started.process.returncode}: {started.text()}")
    counts.outcomes["exit code 1 after the JVM was killed"] += 1
    try:
        check_text(started.text())
    except StormError:
        counts.outcomes["a stack trace after the JVM was killed"] += 1


def _wait(started: Driver, checkpoint: Checkpoint, rng: random.Random) -> bool:
    """Wait for the moment of the kill; False if the driver ended before."""
    if rng.random() < 0.2:
        deadline = time.monotonic() + rng.uniform(1, 25)
        while time.monotonic() < deadline and not started.ended():
            time.sleep(0.01)
        return not started.ended()
    point = rng.choice(POINTS)
    # Before the first batch of a start it is the start itself: take the moment between two batches.
    skip = rng.choice((0, 0, 1)) or (point == POINTS[0])
    return wait_for_point(checkpoint, point, started.ended, _POINT_SECONDS, skip) is not None


def _kill(victim: str, started: Driver) -> None:
    if victim == "driver killed":
        os.kill(started.process.pid, signal.SIGKILL)
    elif victim == "JVM killed" and (jvm := started.jvm()):
        jvm.kill()
    else:
        signal_group(started, signal.SIGKILL)
