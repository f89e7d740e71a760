"""The choices of `grouping: auto` in the journal.

One file of the whole journal says from which batch on which way is taken. It is written before a
query starts, so every attempt of a batch, and every start, has the way that the first one had. A
file of each finished batch says what was known after it, and what the next decision follows from.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from unskew.grouping.choice.records import (
    BatchChoice,
    Choice,
    decode_choices,
    encode_choices,
)
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.whole_files import read_whole, write_whole

CHOICES = "choices"
_OF_BATCH = "batch.choice"
_KIND, _VERSION = "choice", 1
_Known = TypeVar("_Known")


def read_choices(journal: Journal) -> tuple[Choice, ...]:
    """Every choice, oldest first; a SnapshotError if they cannot be read."""
    system, root = open_location(journal.location)
    data = read_whole(system, f"{root}/{CHOICES}")
    try:
        return decode_choices(data) if data is not None else ()
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise SnapshotError(
            f"journal: {root}/{CHOICES}: cannot be read ({error}); restore the file from a copy,"
            " or remove it: totals stay exact, and grouping auto chooses again"
        ) from error


def write_choices(journal: Journal, choices: tuple[Choice, ...]) -> None:
    """Write them; the file is replaced as a whole."""
    journal.check_owner()
    system, root = open_location(journal.location)
    write_whole(system, f"{root}/{CHOICES}", encode_choices(choices))


def write_batch_choice(
    journal: Journal, batch: int, choice: BatchChoice, known: Mapping[str, Any]
) -> None:
    """Write what a batch showed, and all that is known after it."""
    text = json.dumps({"choice": asdict(choice), "known": known}).encode()
    content = {"text": np.frombuffer(text, np.uint8)}
    journal.write(batch, _OF_BATCH, Snapshot(_KIND, _VERSION, 1, 0, content).to_bytes())


def read_batch_choice(journal: Journal, batch: int) -> BatchChoice | None:
    """Read what a batch showed; None for a batch without `grouping: auto`."""
    content = _read(journal, batch)
    if content is None:
        return None
    with journal.naming(batch, _OF_BATCH):
        return BatchChoice.from_json(content["choice"])


def read_known(
    journal: Journal, batch: int, parse: Callable[[Mapping[str, Any]], _Known]
) -> tuple[BatchChoice, _Known] | None:
    """Read what the newest batch up to `batch` showed, and all that was known after it."""
    for number in journal.batches_before(batch + 1):
        content = _read(journal, number)
        if content is not None:
            with journal.naming(number, _OF_BATCH):
                return BatchChoice.from_json(content["choice"]), parse(content["known"])
    return None


def _read(journal: Journal, batch: int) -> Mapping[str, Any] | None:
    snapshot = journal.read(batch, _OF_BATCH)
    if snapshot is None or (snapshot.grouping, snapshot.version) != (_KIND, _VERSION):
        return None
    with journal.naming(batch, _OF_BATCH):
        content: Mapping[str, Any] = json.loads(snapshot.arrays["text"].tobytes())
    return content
