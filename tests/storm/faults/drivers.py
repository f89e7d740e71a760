"""Real drivers: killed at each point of a batch and at random moments, whole or in parts."""

import os
import random
import signal
import time
from pathlib import Path

from tests.storm.harness.case import Case
from tests.storm.harness.checks import check, check_text
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.driver import Driver, driver, gone, signal_group
from tests.storm.harness.points import POINTS, Checkpoint, wait_for_point
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import routing_of

VICTIMS = ("driver killed", "JVM killed", "driver and JVM killed")
_KILLS = 10
_MOMENT_SECONDS = (1.0, 25.0)


def storm_drivers(case: Case) -> None:
    """One world: its drivers are killed some times, the last one is left alone."""
    stage, rng = case.stage(batches=12), case.rng()
    number = 0
    while _killed(case, stage, rng, case.folder / f"log-{number}", kill=number < _KILLS):
        number += 1
    check(stage, case.counts)


def _killed(case: Case, stage: Stage, rng: random.Random, log: Path, *, kill: bool) -> bool:
    """Start the job, and kill it if it is to be; False if it came to its end instead."""
    routing = routing_of(stage.world, rng)
    victim, at_once = rng.choice(VICTIMS), rng.random() < 0.5
    with driver(stage.job_file(routing), log) as started:
        checkpoint = stage.watched(routing)
        if not (kill and _wait(case, started, checkpoint, rng)):
            if started.wait() != 0:
                raise StormError(f"{stage.world}: {started.text()}")
            return False
        jvm = started.jvm()
        if jvm is None:  # it has not been started yet
            victim = "driver killed"
        _kill(victim, started)
        case.counts.faults[victim] += 1
        case.counts.points[checkpoint.position().point] += 1
        started.wait()
        if victim == "JVM killed":
            _ended_clearly(started, case.counts)
        else:
            check_text(started.text())
        if jvm and not at_once:
            gone(jvm)
    return True


def _ended_clearly(started: Driver, counts: Counts) -> None:
    """Without its JVM a driver ends with exit code 1, and says so in a line."""
    if started.process.returncode != 1:
        raise StormError(f"exit code {started.process.returncode}: {started.text()}")
    check_text(started.text())
    counts.outcomes["exit code 1 after the JVM was killed"] += 1


def _wait(case: Case, started: Driver, checkpoint: Checkpoint, rng: random.Random) -> bool:
    """Wait for the moment of the kill; False if the driver ended before, or the time is over."""
    if rng.random() < 0.2:
        deadline = time.monotonic() + min(rng.uniform(*_MOMENT_SECONDS), case.seconds_left())
        while time.monotonic() < deadline and not started.ended():
            time.sleep(0.01)
        return not (started.ended() or case.is_over())
    point = rng.choice(POINTS)
    # Before the first batch of a start it is the start itself: take the moment between two batches.
    skip = rng.choice((0, 0, 1)) or (point == POINTS[0])
    position = wait_for_point(checkpoint, point, started.ended, case.seconds_left(), skip)
    return position is not None


def _kill(victim: str, started: Driver) -> None:
    if victim == "driver killed":
        os.kill(started.process.pid, signal.SIGKILL)
    elif victim == "JVM killed" and (jvm := started.jvm()):
        jvm.kill()
    else:
        signal_group(started, signal.SIGKILL)
