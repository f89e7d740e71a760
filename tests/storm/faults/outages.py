"""Services that go away under a running job, and come back: Kafka, PostgreSQL, room on the disk."""

import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.storm.harness.case import Case
from tests.storm.harness.checks import check
from tests.storm.harness.counts import StormError
from tests.storm.harness.in_process import IN_ONE_JVM, Attempt, Jvm
from tests.storm.harness.points import POINTS, wait_for_point
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import routing_of

_OUTAGES = 6
_STARTS_MAX = 12
_BATCHES = 12
_DISK_BYTES = 32 << 20


@dataclass(frozen=True)
class Outage:
    """What goes away, and how it comes back."""

    kind: str
    begin: Callable[[], None]
    end: Callable[[], None]


def storm_broker(case: Case, jvm: Jvm) -> None:
    """The broker is stopped or killed while a job reads from it or writes to it."""
    rng = case.rng()
    source, sink = rng.choice((("kafka", "kafka"), ("kafka", "files"), ("files", "kafka")))
    stage = case.stage(source=source, sink=sink, batches=_BATCHES, **IN_ONE_JVM)
    outage = Outage(
        "broker away and back",
        lambda: case.services.broker_away(kill=rng.random() < 0.5),
        case.services.broker_back,
    )
    _with_outages(case, stage, jvm, rng, outage)


def storm_postgres(case: Case, jvm: Jvm) -> None:
    """PostgreSQL is stopped, or ends without writing anything down, while a job writes to it."""
    rng = case.rng()
    stage = case.stage(sink="postgres", batches=_BATCHES, **IN_ONE_JVM)
    postgres = case.services.postgres
    outage = Outage(
        "PostgreSQL away and back",
        lambda: postgres.end(rng.choice((signal.SIGINT, signal.SIGQUIT))),
        postgres.start,
    )
    _with_outages(case, stage, jvm, rng, outage)


def storm_disk(case: Case, jvm: Jvm) -> None:
    """The disk with checkpoint, results and dead letters is full for a while."""
    rng = case.rng()
    on_disk = {"sink": rng.choice(("files", "table")), "dead_letters": "files"}
    with small_disk(case.folder):
        stage = case.stage(case.folder / "stage", batches=_BATCHES, **on_disk, **IN_ONE_JVM)
        ballast = case.folder / "ballast"
        outage = Outage("disk full", lambda: fill(ballast, rng.choice((0, 4096))), ballast.unlink)
        _with_outages(case, stage, jvm, rng, outage)


def _with_outages(case: Case, stage: Stage, jvm: Jvm, rng: random.Random, outage: Outage) -> None:
    """Run the job to its end, through some outages; it may fail and be started again."""
    left = _OUTAGES
    for _ in range(_STARTS_MAX):
        routing = routing_of(stage.world, rng)
        attempt = Attempt(jvm, stage.job_file(routing), retry=rng.random() < 0.5)
        checkpoint, skip = stage.watched(routing), rng.choice((0, 1))
        while left and wait_for_point(
            checkpoint, rng.choice(POINTS), attempt.ended, case.seconds_left(), skip
        ):
            left, skip = left - 1, 1
            outage.begin()
            case.counts.faults[outage.kind] += 1
            case.counts.points[checkpoint.position().point] += 1
            time.sleep(rng.uniform(0.5, 8))
            outage.end()
        error = attempt.finish()
        case.counts.faults["query started again by the job itself"] += attempt.retries.count
        if error is None:
            check(stage, case.counts)
            return
        case.counts.faults["query restarts"] += 1
    raise StormError(f"{stage.world}: {_STARTS_MAX} starts were not enough: {attempt.error}")


def fill(path: Path, left: int) -> None:
    """Leave about this many bytes of the disk."""
    block = bytes(1 << 16)
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                # A short write says that the next one fails.
                file.write(block)
        except OSError:
            file.truncate(max(0, file.tell() - left))


@contextmanager
def small_disk(folder: Path) -> Iterator[None]:
    """A small disk of its own, mounted on a folder."""
    folder.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "storm", str(folder)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotPossibleHereError(f"no small disk: {done.stderr.strip()}")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


class NotPossibleHereError(Exception):
    """What a case needs is not permitted on this machine."""
