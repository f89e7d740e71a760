"""A driver that stands still and wakes up again, beside a second start on the same checkpoint."""

import random
import signal
import time

from tests.storm.harness.case import Case
from tests.storm.harness.checks import check, check_text
from tests.storm.harness.counts import StormError
from tests.storm.harness.driver import Driver, driver, signal_group
from tests.storm.harness.points import POINTS, Checkpoint, wait_for_point
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import routing_of
from unskew.jobs.checkpoint.lock import JVM_LOCK, LOCK

_TIMES = 5


def storm_frozen(case: Case) -> None:
    """The frozen driver keeps its lock: the second start is refused, and the first goes on."""
    stage, rng = case.stage(batches=12), case.rng()
    routing = routing_of(stage.world, rng)
    with driver(stage.job_file(routing), case.folder / "log-first") as first:
        for number in range(_TIMES):
            if not _freeze(case, stage.watched(routing), first, rng):
                break
            other = stage.job_file(routing_of(stage.world, rng))
            with driver(other, case.folder / f"log-second-{number}") as second:
                _check_refused(second)
            case.counts.outcomes["second start refused"] += 1
            signal_group(first, signal.SIGCONT)
        if first.wait() != 0:
            raise StormError(f"the first start: {first.text()}")
    check(stage, case.counts)


def _check_refused(second: Driver) -> None:
    code = second.wait()
    check_text(second.text())
    if code != 1 or "in use by process" not in second.text():
        raise StormError(f"the second start: exit code {code}: {second.text()}")


def storm_unlocked(case: Case) -> None:
    """As on a checkpoint without locks: a second driver goes on, then the first one wakes up.

    Not into Kafka, where the woken one may repeat the totals of its batch after newer ones.
    """
    rng = case.rng()
    stage = case.stage(sink=rng.choice(("files", "postgres", "table")))
    routing = routing_of(stage.world, rng)
    with driver(stage.job_file(routing), case.folder / "log-first") as first:
        if _freeze(case, stage.watched(routing), first, rng):
            _start_beside(case, stage, first, rng)
            signal_group(first, signal.SIGCONT)
        first.wait()
    with driver(stage.job_file(routing), case.folder / "log-last") as last:
        if last.wait() != 0:
            raise StormError(f"the last start: {last.text()}")
    check(stage, case.counts)


def _start_beside(case: Case, stage: Stage, frozen: Driver, rng: random.Random) -> None:
    """Take the locks away, and let a second driver go on; the frozen one may wake up meanwhile."""
    for name in (LOCK, JVM_LOCK):
        (stage.checkpoint / name).unlink()
    other = stage.job_file(routing_of(stage.world, rng))
    with driver(other, case.folder / "log-second") as second:
        if rng.random() < 0.5:
            time.sleep(rng.uniform(5, 20))
            signal_group(frozen, signal.SIGCONT)
        if second.wait() != 0:
            case.counts.outcomes["second driver ended beside a woken one"] += 1


def _freeze(case: Case, checkpoint: Checkpoint, first: Driver, rng: random.Random) -> bool:
    """Stop it in mid-batch; False if the time is over."""
    point, skip = rng.choice(POINTS[1:]), rng.choice((0, 1))
    if not wait_for_point(checkpoint, point, first.ended, case.seconds_left(), skip):
        if not case.is_over():
            raise StormError(f"the driver ended before it could be frozen: {first.text()}")
        return False
    signal_group(first, signal.SIGSTOP)
    case.counts.faults["driver frozen"] += 1
    case.counts.points[checkpoint.position().point] += 1
    return True
