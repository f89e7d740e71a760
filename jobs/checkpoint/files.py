"""Files of a checkpoint, by path or URI as Spark names them, read and written without Spark."""

import errno
from collections.abc import Iterable

from pyarrow import fs

from unskew.config.models.job import Job
from unskew.grouping.errors import SnapshotError
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.whole_files import Synced, read_whole, write_once, write_whole

JOURNAL_FOLDER = "unskew"


def list_names(location: str) -> list[str]:
    """List the names in a folder, sorted; none if it does not exist."""
    system, path = open_location(location)
    files: Iterable[fs.FileInfo] = system.get_file_info(fs.FileSelector(path, allow_not_found=True))
    return sorted(info.base_name for info in files)


def read_bytes(location: str) -> bytes | None:
    """A file's content; None if it is not there."""
    system, path = open_location(location)
    try:
        return read_whole(system, path)
    except SnapshotError as error:
        raise OSError(errno.EINVAL, str(error), path) from error


def write_bytes(location: str, data: bytes) -> None:
    """Write a file whole: under another name first where an unfinished one could be seen."""
    system, path = open_location(location)
    write_whole(system, path, data)


def write_new_bytes(location: str, data: bytes) -> bool:
    """Write a file, durably, unless there is one; False if there is."""
    system, path = open_location(location)
    return write_once(system, path, data, Synced.NAME)


def open_journal(job: Job) -> Journal:
    """Open a job's journal, in the checkpoint's folder: both are moved and removed together."""
    return open_journal_in(job.checkpoint)


def open_journal_in(checkpoint: str) -> Journal:
    """Open the journal of a checkpoint's folder."""
    return Journal(f"{checkpoint.rstrip('/')}/{JOURNAL_FOLDER}")
