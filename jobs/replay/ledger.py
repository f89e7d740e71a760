"""Which dead letters were replayed, so that one that was delivered twice is replayed once.

A folder of files, each a list of coordinates, written once and read together.
"""

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.whole_files import Synced, write_once
from unskew.jobs.checkpoint.files import list_names, read_bytes
from unskew.jobs.checkpoint.lock import lock_checkpoint
from unskew.jobs.replay.dead_letter import Coordinates

FOLDER = "unskew-replayed"
_SUFFIX = ".json"


class Ledger:
    """The ledger in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder.rstrip("/")
        self._next = 0
        self._replayed: set[Coordinates] = set()
        self._read_all()

    def _read_all(self) -> None:
        for name in list_names(self.folder):
            if name.endswith(_SUFFIX) and name.removesuffix(_SUFFIX).isdecimal():
                self._replayed.update(_read(f"{self.folder}/{name}"))
                self._next = max(self._next, int(name.removesuffix(_SUFFIX)) + 1)

    def __contains__(self, coordinates: Coordinates) -> bool:
        return coordinates in self._replayed

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Let no other process write to it; locked on a disk of this machine only."""
        with lock_checkpoint(self.folder):
            self._read_all()  # another one may have written since
            yield

    def add(self, coordinates: Collection[Coordinates]) -> None:
        """Note those that were sent."""
        system, path = open_location(f"{self.folder}/{self._next:012d}{_SUFFIX}")
        if not write_once(system, path, json.dumps(list(coordinates)).encode(), Synced.NAME):
            raise ExternalError(f"dead-letters: {self.folder}: another replay writes to it")
        self._next += 1
        self._replayed.update(coordinates)


def _read(file: str) -> Iterator[Coordinates]:
    try:
        for topic, partition, offset, timestamp in json.loads(read_bytes(file) or b""):
            yield Coordinates(str(topic), int(partition), int(offset), int(timestamp))
    except (TypeError, ValueError) as error:
        raise ExternalError(
            f"dead-letters: {file}: cannot be read; restore it from a copy, or remove it: what it"
            " names is then replayed again"
        ) from error
