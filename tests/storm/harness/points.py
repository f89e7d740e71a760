"""At which point of a batch a job is, by the files of its checkpoint, seen from outside."""

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tests.storm.oracle.world import Routing, World

POINTS = (
    "before the offset log",
    "offsets logged",
    "routed",
    "reported",
    "in the merge",
    "merge state committed",
    "results written",
)
"""The points of a batch in their order."""
# A point lasts tens of milliseconds; on a busy machine every poll takes half as long.
_POLL_SECONDS = 0.01


@dataclass(frozen=True)
class Position:
    """A batch under way, and the last of the points that it has reached."""

    batch: int
    point: str


@dataclass(frozen=True)
class Checkpoint:
    """The folder of a job's checkpoint, looked at while the job writes to it."""

    folder: Path
    world: World
    routing: Routing
    results: Path | None = None

    def committed(self) -> int:
        """The newest batch that is done; -1 before the first."""
        return max(self._numbers("commits"), default=-1)

    def position(self) -> Position:
        """Where it is at this moment."""
        batch = self.committed() + 1
        if batch not in self._numbers("offsets"):
            return Position(batch, "before the offset log")
        return Position(batch, self._point(batch))

    def _point(self, batch: int) -> str:
        if self.results and _is_written(self.results, batch):
            return "results written"
        merged = self._merged(batch)
        if merged == self.world.merge_partitions:
            return "merge state committed"
        names = _names(self.folder / "unskew" / f"{batch:012d}")
        reports = sum(name.endswith(".report") for name in names)
        if merged or (self.world.merges and reports == self.routing.partitions):
            return "in the merge"
        if reports:
            return "reported"
        routed = any(name.endswith(".state") for name in names)
        return "routed" if routed else "offsets logged"

    def _merged(self, batch: int) -> int:
        """State partitions that have written the version which the batch leaves."""
        version = re.compile(rf"{batch + 1}(_[^.]*)?\.(changelog|zip)")
        folders = (self.folder / "state" / "0").glob("[0-9]*")
        return sum(any(version.fullmatch(name) for name in _names(folder)) for folder in folders)

    def _numbers(self, folder: str) -> list[int]:
        return [int(name) for name in _names(self.folder / folder) if name.isdecimal()]


def _is_written(results: Path, batch: int) -> bool:
    """Is the batch in a folder of files, or in a table of Parquet files? Of Delta it is unknown."""
    log = results / "_spark_metadata"
    marks = (results / f"batch_id={batch}" / "_SUCCESS", log / f"{batch}", log / f"{batch}.compact")
    return any(mark.exists() for mark in marks)


def wait_for_point(
    checkpoint: Checkpoint, point: str, ended: Callable[[], bool], seconds: float, skip: int = 0
) -> Position | None:
    """The position once a batch is at this point, or past it where it went by unseen.

    Batches before the one that is under way and `skip` more are let go by. None if the job ended
    or time was up.
    """
    first = checkpoint.committed() + 1 + skip
    wanted = POINTS.index(point)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not ended():
        position = checkpoint.position()
        if position.batch > first or (
            position.batch == first and POINTS.index(position.point) >= wanted
        ):
            return position
        time.sleep(_POLL_SECONDS)
    return None


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone, many times a second
    except FileNotFoundError:
        return []
