"""Lets one process use a checkpoint: a second one would remove what the first works on."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from pyarrow import fs

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.private_files import make_private_folder, open_regular
from unskew.jobs.checkpoint.identity import describe_unusable

LOCK = ".unskew.lock"
JVM_LOCK = ".unskew.jvm.lock"
"""Held by the JVM itself, which outlives a killed driver by seconds and may still write."""
JVM_ENDS_SECONDS = 60.0
_LOOK_SECONDS = 0.2


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
    with _open(checkpoint, Path(path)) as file:
        _lock(file, checkpoint)
        _wait_for_jvm(checkpoint, Path(path))
        _write_owner(file, checkpoint)
        yield


def check_not_in_use(checkpoint: str) -> None:
    """Raise an ExternalError if another process has the checkpoint; nothing is written."""
    with suppress(OSError):  # a folder that preflight reports
        system, path = open_location(checkpoint)
        if isinstance(system, fs.LocalFileSystem):
            with suppress(FileNotFoundError), open_regular(Path(path, LOCK), os.O_RDWR) as file:
                _lock(file, checkpoint)
            _wait_for_jvm(checkpoint, Path(path))


def make_jvm_lock(checkpoint: str) -> str | None:
    """Make the file that a job's JVM locks; None if the checkpoint is not on this machine."""
    system, path = open_location(checkpoint)
    if not isinstance(system, fs.LocalFileSystem):
        return None
    _open(checkpoint, Path(path), JVM_LOCK).close()
    return f"{path}/{JVM_LOCK}"


def _wait_for_jvm(checkpoint: str, folder: Path) -> None:
    """Wait until the JVM of a killed start has ended."""
    deadline = time.monotonic() + JVM_ENDS_SECONDS
    while _is_held_by_jvm(folder / JVM_LOCK):
        if time.monotonic() > deadline:
            raise ExternalError(
                f"checkpoint: {checkpoint}: in use by the JVM of a start whose driver was killed;"
                " end that JVM, or name another checkpoint folder"
            )
        time.sleep(_LOOK_SECONDS)


def _is_held_by_jvm(path: Path) -> bool:
    with suppress(OSError), open_regular(path, os.O_RDWR) as file:  # no lock file yet
        try:
            # A POSIX lock, as Java's FileLock takes; closing the file releases it.
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            return True
    return False


def _write_owner(file: IO[str], checkpoint: str) -> None:
    """Name this process in the lock, for the message to a second start."""
    try:
        os.ftruncate(file.fileno(), 0)
        os.write(file.fileno(), str(os.getpid()).encode())
    except OSError as error:
        raise ExternalError(describe_unusable(checkpoint, error)) from error


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


def _open(checkpoint: str, folder: Path, name: str = LOCK) -> IO[str]:
    try:
        make_private_folder(folder)
        return open_regular(folder / name, os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise ExternalError(describe_unusable(checkpoint, error)) from error
