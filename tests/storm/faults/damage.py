"""Checkpoints of jobs that ended at once, that lost their newest writes, or have a flipped bit.

Each goes on from a crash image. What a job may do is go on to the exact totals, or refuse in lines
of text, without a stack trace, that name the damaged file, its folder, or the results that lack a
checkpoint.
"""

import random
from collections.abc import Callable
from pathlib import Path

from tests.storm.faults.flip import flip, kind_of
from tests.storm.faults.reads import read_damaged
from tests.storm.harness.case import Case
from tests.storm.harness.checks import check
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.images import Image, files_of, image_of
from tests.storm.harness.in_process import IN_ONE_JVM, Attempt, Jvm
from tests.storm.harness.points import POINTS, wait_for_point
from tests.storm.harness.stage import Stage
from tests.storm.oracle.world import Routing, routing_of

JOURNAL = "unskew"
_BATCHES = 5
_IMAGES = 6
_FLIPS = 20
_UNSYNCED_NS = 30 * 10**9
UNHARMED = "no damage"
DAMAGED = "file damaged, then restart"
Damage = Callable[[Path, random.Random, int], str]
"""Damages a checkpoint, the n-th of all; returns what it did."""


def storm_crashes(case: Case, jvm: Jvm) -> None:
    """All processes ended at once, as an image of that instant has it; no file is lost."""
    _damaged(case, jvm, "crash image continued", lambda *_: UNHARMED)


def storm_power(case: Case, jvm: Jvm) -> None:
    """Power cuts: of what the last seconds wrote into the checkpoint, some is lost."""
    _damaged(case, jvm, "power cut", lose_newest)


def storm_flips(case: Case, jvm: Jvm) -> None:
    """One file of a checkpoint has a flipped bit or is cut short when the job starts again."""

    def damage(checkpoint: Path, rng: random.Random, number: int) -> str:
        read_damaged(checkpoint / JOURNAL, rng, case.counts, _FLIPS)
        kind, harm = damage_one(checkpoint, rng, number)
        case.counts.faults[f"{DAMAGED}: {kind}"] += 1
        return harm

    _damaged(case, jvm, DAMAGED, damage)


def _damaged(case: Case, jvm: Jvm, kind: str, damage: Damage) -> None:
    rng, counts = case.rng(), case.counts
    sink = rng.choice(("files", "table", "postgres"))
    stage = case.stage(sink=sink, dead_letters="files", batches=_BATCHES, **IN_ONE_JVM)
    images = _images(case, stage, jvm, rng)
    check(stage, counts)
    wrong: list[str] = []
    for number, image in enumerate(images, case.seed * _IMAGES):
        if case.is_over():
            break
        harm = damage(image.stage.checkpoint, rng, number)
        counts.faults[kind] += 1
        counts.points[image.point] += 1
        said = f"{kind} at {image.point}: {harm}"
        wrong += _goes_on(image, routing_of(stage.world, rng), jvm, counts, said, harm == UNHARMED)
    if wrong:
        raise StormError("\n".join(wrong))


def _images(case: Case, stage: Stage, jvm: Jvm, rng: random.Random) -> list[Image]:
    """Run the job to its end; copies of what it had written at some points."""
    routing: Routing = routing_of(stage.world, rng)
    attempt = Attempt(jvm, stage.job_file(routing))
    checkpoint = stage.watched(routing)
    images: list[Image] = []
    while len(images) < _IMAGES:
        point = rng.choice(POINTS)
        skip = rng.choice((0, 1))
        position = wait_for_point(checkpoint, point, attempt.ended, case.seconds_left(), skip)
        if position is None:
            break
        images.append(image_of(stage, jvm, len(images), ""))
        copied = images[-1].stage.watched(routing)
        images[-1].point = copied.position().point
    if error := attempt.finish():
        raise StormError(f"{stage.world}: an undisturbed run failed: {error}")
    return images


def _goes_on(
    image: Image, routing: Routing, jvm: Jvm, counts: Counts, harm: str, must_run: bool
) -> list[str]:
    """Start from an image; what is wrong: nothing if it was exact, or refused where it may be."""
    counts.faults["query restarts"] += 1
    try:
        attempt = Attempt(jvm, image.stage.job_file(routing))
        error = attempt.finish()
        if error is None:
            check(image.stage, counts)
    except StormError as problem:
        return [f"{harm}: {problem}"]
    if error and must_run:
        return [f"{harm}: refused: {error}"]
    if error and str(image.stage.folder) not in str(error):
        return [f"{harm}: refused, but naming no file: {error}"]
    if error:
        counts.outcomes["refused, naming a file"] += 1
    return []


def lose_newest(checkpoint: Path, rng: random.Random, _number: int = 0) -> str:
    """Lose some of the newest files: gone, empty, or cut short."""
    files = files_of(checkpoint)
    newest = files[0].stat().st_mtime_ns
    unsynced = [path for path in files if newest - path.stat().st_mtime_ns < _UNSYNCED_NS]
    # The disk writes back in no order, yet mostly the oldest first.
    lost = unsynced[: rng.randint(1, max(1, min(12, len(unsynced))))]
    said = []
    for path in lost:
        # Of the newest nothing is on the disk yet, or not all.
        how = rng.choice(("gone", "empty", "cut", "kept")[: 3 if path is lost[0] else 4])
        if how == "gone":
            path.unlink()
        elif how != "kept":
            with path.open("r+b") as file:
                size = path.stat().st_size
                file.truncate(rng.randrange(size) if how == "cut" and size else 0)
        said.append(f"{path.relative_to(checkpoint)} {how}")
    return ", ".join(said)


def damage_one(checkpoint: Path, rng: random.Random, number: int) -> tuple[str, str]:
    """Flip a bit of one file or cut it short: the kind of file, and what was done.

    Kinds of files are taken in turn, by the number, however many files there are of each.
    """
    kinds: dict[str, list[Path]] = {}
    for path in sorted(files_of(checkpoint)):
        if path.stat().st_size:
            kinds.setdefault(kind_of(path.relative_to(checkpoint)), []).append(path)
    kind = sorted(kinds)[number % len(kinds)]
    path = rng.choice(kinds[kind])
    return kind, f"{path.relative_to(checkpoint)} {flip(path, rng)}"
