"""Lets one process use a checkpoint: a second one would remove what the first works on."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pyarrow import fs

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.private_files import make_private_folder, open_regular
from unskew.jobs.checkpoint.identity import unusable_message

LOCK = ".unskew.lock"


@contextmanager
def lock_checkpoint(checkpoint: str) -> Iterator[None]:
    """Lock the checkpoint for this process; an ExternalError if another one has it.

    The lock ends with the process, however that ends. Only folders on this machine are locked:
    elsewhere Spark itself ends the query that comes second to a batch.
    """
    system, path = open_location(checkpoint)
    if not isinstance(system, fs.LocalFileSystem):
        yield
        return
    with _opened(checkpoint, Path(path)) as file:
        _lock(file, checkpoint)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def check_not_in_use(checkpoint: str) -> None:
    """Raise an ExternalError if another process has the checkpoint; nothing is written."""
    with suppress(OSError):  # no lock yet, or a folder that preflight reports
        system, path = open_location(checkpoint)
        if isinstance(system, fs.LocalFileSystem):
            with open_regular(Path(path, LOCK), os.O_RDWR) as file:
                _lock(file, checkpoint)


def _lock(file: IO[str], checkpoint: str) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        raise ExternalError(
            f"checkpoint: {checkpoint}: in use by process {file.read().strip() or '?'};"
            " stop that first, or name another checkpoint folder"
        ) from None
    except OSError:
        pass  # a mount without locks


def _opened(checkpoint: str, folder: Path) -> IO[str]:
    try:
        make_private_folder(folder)
        return open_regular(folder / LOCK, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ExternalError(unusable_message(checkpoint, error)) from error
