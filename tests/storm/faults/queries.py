"""The storm in one JVM: queries stopped and failed, tasks, workers and their daemon killed."""

import os
import random
import signal
import time
from contextlib import suppress
from pathlib import Path

import psutil

from tests.storm.harness.checks import check
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.in_process import IN_ONE_JVM, Attempt, Jvm
from tests.storm.harness.points import POINTS, wait_for_point
from tests.storm.harness.services import Services
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import Routing, routing_of, world_of

STRIKES = {
    "query stopped": 5,
    "query failed": 4,
    "task killed": 4,
    "worker killed": 4,
    "daemon killed": 3,
    "second start refused": 1,
}
"""Kinds of faults and how often each is drawn."""
_ENDING = ("query stopped", "query failed")
_BESIDE = "second start refused"
_POLL_SECONDS = 0.02
_STRIKES_MAX = 24
_WAIT_SECONDS = 1200.0


def storm_queries(seed: int, folder: Path, services: Services, jvm: Jvm, counts: Counts) -> None:
    """One world, struck again and again until its records are done; then compared."""
    stage = Stage(world_of(seed, **IN_ONE_JVM), folder, services, f"queries-{seed}-{os.getpid()}")
    stage.prepare()
    rng = random.Random(f"strikes {seed}")
    strikes = _STRIKES_MAX
    while True:
        strikes, done = _start(stage, jvm, rng, counts, strikes)
        if done:
            break
        counts.faults["query restarts"] += 1
    check(stage, counts)


def _start(
    stage: Stage, jvm: Jvm, rng: random.Random, counts: Counts, strikes: int
) -> tuple[int, bool]:
    """Start the job once and strike it; how many strikes are left, and did it get to its end?"""
    routing = routing_of(stage.world, rng)
    attempt = Attempt(jvm, stage.job_file(routing))
    checkpoint = stage.watched(routing)
    struck = disturbed = False
    while strikes and not struck:
        kind = rng.choices(tuple(STRIKES), tuple(STRIKES.values()))[0]
        point, skip = rng.choice(POINTS), rng.choice((0, 0, 0, 1))
        position = wait_for_point(checkpoint, point, attempt.ended, _WAIT_SECONDS, skip)
        if position is None:
            break
        if kind == _BESIDE:
            count = _second_start(stage, jvm, routing, attempt)
        else:
            count = _strike(kind, jvm)
        if not count:  # nothing was there to strike yet
            time.sleep(_POLL_SECONDS)
            continue
        strikes -= 1
        counts.faults[kind] += count
        counts.points[checkpoint.position().point] += 1
        disturbed = disturbed or kind != _BESIDE
        struck = kind in _ENDING
    error = attempt.finish()
    if error and not disturbed:
        raise StormError(f"{stage.world}: an undisturbed start failed: {error}")
    return strikes, error is None and not struck


def _second_start(stage: Stage, jvm: Jvm, routing: Routing, first: Attempt) -> int:
    """Start the job beside itself: it must be refused, unless the first has ended by now."""
    error = Attempt(jvm, stage.job_file(routing)).finish()
    if first.ended():
        return 0
    if "in use by process" not in str(error):
        raise StormError(f"a second start on a checkpoint in use: {error or 'it ran'}")
    return 1


def _strike(kind: str, jvm: Jvm) -> int:
    """Do it; how many were hit."""
    if kind == "query stopped":
        return jvm.stop_queries()
    if kind == "query failed":
        return jvm.fail_queries()
    if kind == "task killed":
        return jvm.kill_tasks()
    victims = jvm.workers() if kind == "worker killed" else jvm.daemons()
    return sum(kill(victim) for victim in victims)


def kill(process: psutil.Process) -> bool:
    """SIGKILL; was it still there?"""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(signal.SIGKILL)
        return True
    return False
