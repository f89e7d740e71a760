"""One process a checkpoint: a second start would take away what the first is working on."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from pyarrow import fs

from config.errors import OutsideError
from grouping.locations import open_location

LOCK = ".unskew.lock"


@contextmanager
def owned(checkpoint: str) -> Iterator[None]:
    """Keep the checkpoint to this process; an OutsideError if another one has it.

    The system ends a lock with its process, however that ends. Only folders on this machine have
    one: elsewhere Spark itself ends the query that comes second to a batch.
    """
    system, path = open_location(checkpoint)
    if not isinstance(system, fs.LocalFileSystem):
        yield
        return
    with _opened(checkpoint, Path(path)) as file:
        try:
            _lock(file)
        except BlockingIOError:
            file.seek(0)
            raise OutsideError(
                f"checkpoint: {checkpoint}: in use by process {file.read().strip() or '?'};"
                " stop that first, or name another checkpoint folder"
            ) from None
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def _opened(checkpoint: str, folder: Path) -> IO[str]:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return (folder / LOCK).open("a+")
    except OSError as error:
        raise OutsideError(
            f"checkpoint: {checkpoint}: cannot be used: {error.strerror};"
            " check the path and its owner"
        ) from error


def _lock(file: IO[str]) -> None:
    """Take the lock, where the mount has locks; BlockingIOError if it is another's."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if isinstance(error, BlockingIOError):
            raise
