"""Services that go away under a running job, and come back: Kafka, PostgreSQL, room on the disk."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.storm.harness.checks import check
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.in_process import IN_ONE_JVM, Attempt, Jvm
from tests.storm.harness.points import POINTS, wait_for_point
from tests.storm.harness.services import Services
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import routing_of, world_of

_OUTAGES = 4
_STARTS_MAX = 12
_POINT_SECONDS = 1200.0
_DISK_BYTES = 32 << 20


@dataclass(frozen=True)
class Outage:
    """What goes away, and how it comes back."""

    kind: str
    begin: Callable[[], None]
    end: Callable[[], None]


def storm_broker(seed: int, folder: Path, services: Services, jvm: Jvm, counts: Counts) -> None:
    """The broker is stopped or killed while a job reads from it or writes to it."""
    rng = random.Random(f"broker {seed}")
    source, sink = rng.choice((("kafka", "kafka"), ("kafka", "files"), ("files", "kafka")))
    stage = _staged("broker", seed, folder, services, source=source, sink=sink)
    outage = Outage(
        "broker away and back",
        lambda: services.broker_away(kill=rng.random() < 0.5),
        services.broker_back,
    )
    _with_outages(stage, jvm, rng, outage, counts)


def storm_postgres(seed: int, folder: Path, services: Services, jvm: Jvm, counts: Counts) -> None:
    """PostgreSQL is stopped, or ends without writing anything down, while a job writes to it."""
    rng = random.Random(f"postgres {seed}")
    stage = _staged("postgres", seed, folder, services, sink="postgres")
    outage = Outage(
        "PostgreSQL away and back",
        lambda: services.postgres.end(rng.choice((signal.SIGINT, signal.SIGQUIT))),
        services.postgres.start,
    )
    _with_outages(stage, jvm, rng, outage, counts)


def storm_disk(seed: int, folder: Path, services: Services, jvm: Jvm, counts: Counts) -> None:
    """The disk with checkpoint, results and dead letters is full for a while."""
    rng = random.Random(f"disk {seed}")
    sink = rng.choice(("files", "table"))
    with small_disk(folder):
        stage = _staged("disk", seed, folder / "stage", services, sink=sink, dead_letters="files")
        ballast = folder / "ballast"
        outage = Outage("disk full", lambda: fill(ballast, rng.choice((0, 4096))), ballast.unlink)
        _with_outages(stage, jvm, rng, outage, counts)


def _staged(kind: str, seed: int, folder: Path, services: Services, **fixed: str) -> Stage:
    world = world_of(seed, batches=8, **fixed, **IN_ONE_JVM)
    stage = Stage(world, folder, services, f"{kind}-{seed}-{os.getpid()}")
    stage.prepare()
    return stage


def _with_outages(
    stage: Stage, jvm: Jvm, rng: random.Random, outage: Outage, counts: Counts
) -> None:
    """Run the job to its end, through some outages; it may fail and be started again."""
    left = _OUTAGES
    for _ in range(_STARTS_MAX):
        routing = routing_of(stage.world, rng)
        attempt = Attempt(jvm, stage.job_file(routing), retry=rng.random() < 0.5)
        checkpoint, skip = stage.watched(routing), rng.choice((0, 1))
        while left and wait_for_point(
            checkpoint, rng.choice(POINTS), attempt.ended, _POINT_SECONDS, skip
        ):
            left, skip = left - 1, 1
            outage.begin()
            counts.faults[outage.kind] += 1
            counts.points[checkpoint.position().point] += 1
            time.sleep(rng.uniform(0.5, 8))
            outage.end()
        error = attempt.finish()
        counts.faults["query started again by the job itself"] += attempt.retries.count
        if error is None:
            check(stage, counts)
            return
        counts.faults["query restarts"] += 1
    raise StormError(f"{stage.world}: {_STARTS_MAX} starts were not enough: {attempt.error}")


def fill(path: Path, left: int) -> None:
    """Leave about so many bytes of the disk."""
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
