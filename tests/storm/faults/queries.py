"""The storm in one JVM: queries stopped and failed, tasks, workers and their daemon killed."""

import random
import signal
import time
from contextlib import suppress

import psutil

from tests.storm.harness.case import Case
from tests.storm.harness.checks import check
from tests.storm.harness.counts import StormError
from tests.storm.harness.in_process import IN_ONE_JVM, Attempt, Jvm
from tests.storm.harness.points import POINTS, wait_for_point
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import Routing, routing_of

STRIKES = {
    "query stopped": 10,
    "query failed": 8,
    "task killed": 4,
    "worker killed": 2,
    "daemon killed": 2,
    "second start refused": 1,
}
"""Kinds of faults and how often each is drawn."""
_ENDING = ("query stopped", "query failed")
_BESIDE = "second start refused"
_POLL_SECONDS = 0.02
_STRIKES_MAX = 24
_BATCHES = 14


def storm_queries(case: Case, jvm: Jvm) -> None:
    """One world, struck again and again until its records are done; then compared.

    Of many batches: a restart costs less than what a world of other code costs Spark to compile.
    """
    stage, rng = case.stage(batches=_BATCHES, **IN_ONE_JVM), case.rng()
    strikes = _STRIKES_MAX
    while True:
        strikes, done = _start(case, stage, jvm, rng, strikes)
        if done:
            break
        case.counts.faults["query restarts"] += 1
    check(stage, case.counts)


def _start(
    case: Case, stage: Stage, jvm: Jvm, rng: random.Random, strikes: int
) -> tuple[int, bool]:
    """Start the job once and strike it; how many strikes are left, and did it get to its end?"""
    routing = routing_of(stage.world, rng)
    attempt = Attempt(jvm, stage.job_file(routing))
    checkpoint = stage.watched(routing)
    struck = disturbed = False
    while strikes and not struck:
        kind = rng.choices(tuple(STRIKES), tuple(STRIKES.values()))[0]
        point, skip = rng.choice(POINTS), rng.choice((0, 0, 0, 1))
        position = wait_for_point(checkpoint, point, attempt.ended, case.seconds_left(), skip)
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
        case.counts.faults[kind] += count
        case.counts.points[checkpoint.position().point] += 1
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
