"""Damaged files of the journal, read by our own readers: the same content, or an error."""

import random
import shutil
from pathlib import Path
from typing import Any

from tests.storm.counts import Counts, StormError
from tests.storm.damage import flip
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot

FLIPS = 60
_CHECKED = (".state", ".routing", ".report")


def read_damaged(journal: Path, rng: random.Random, counts: Counts, flips: int = FLIPS) -> None:
    """Damage files of a journal one at a time, and read each; StormError if it reads as another."""
    files = [path for path in sorted(journal.rglob("*")) if path.suffix in _CHECKED]
    scratch = journal.parent / "damaged"
    for _ in range(flips if files else 0):
        original = rng.choice(files)
        shutil.copy(original, scratch)
        harm = flip(scratch, rng)
        counts.faults["file damaged, then read"] += 1
        read = _read(scratch)
        if read is not None:
            raise StormError(f"{original.name}: {harm}: read as {read!r}")
        counts.outcomes["damage found by its reader"] += 1


def _read(path: Path) -> Any:
    """What the reader makes of it; None if it finds the damage."""
    try:
        return Snapshot.from_bytes(path.read_bytes())
    except SnapshotError:
        return None
