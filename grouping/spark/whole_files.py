"""Files that have their name only when they are whole and on the disk.

On a local disk a file is written and fsynced under a temporary name, then gets its own: by a
rename, or, where it may not replace another, by a hard link, which the kernel refuses if the name
is taken. Elsewhere the name is looked up first, and the file appears whole: by an object store's
atomic put or, on HDFS, by a rename. Two processes that write once at the same moment may then both
write.
"""

import errno
import os
import stat
import uuid
from contextlib import suppress
from enum import Enum
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from unskew.grouping.errors import SnapshotError
from unskew.grouping.spark.private_files import make_folder_within

# Filesystems by pyarrow's names where a file appears only when it is complete.
_OBJECT_STORES = frozenset({"s3", "gcs", "abfs"})
_DELETE_ATTEMPTS = 100
# Errors of filesystems without hard links: a mounted share, or a bucket as a folder.
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EMLINK})


class Synced(Enum):
    """How much of a file on a local disk survives a power cut right after it was written."""

    NOTHING = 0
    """A part of the file may be there."""
    CONTENT = 1
    """The file is there whole, or not at all."""
    NAME = 2
    """The file is there, whole."""


def write_once(system: fs.FileSystem, path: str, data: bytes, synced: Synced) -> bool:
    """Write a file unless one of that name is there; False if it is."""
    if isinstance(system, fs.LocalFileSystem):
        return _write_local(Path(path), data, synced, replace=False)
    if system.get_file_info(path).type != fs.FileType.NotFound:
        return False
    write_whole(system, path, data)
    return True


def write_whole(system: fs.FileSystem, path: str, data: bytes) -> None:
    """Write a file; it replaces one of that name."""
    if isinstance(system, fs.LocalFileSystem):
        _write_local(Path(path), data, Synced.NAME, replace=True)
        return
    system.create_dir(path.rpartition("/")[0])
    if system.type_name in _OBJECT_STORES:
        with system.open_output_stream(path) as stream:
            stream.write(data)
        return
    # A writer that is killed leaves the temporary name; it is purged with the batch's folder.
    folder, _, name = path.rpartition("/")
    part = f"{folder}/.{name}.{uuid.uuid4().hex}"
    try:
        with system.open_output_stream(part) as stream:
            stream.write(data)
        system.move(part, path)
    except BaseException:
        with suppress(OSError):
            system.delete_file(part)
        raise


def read_whole(system: fs.FileSystem, path: str) -> bytes | None:
    """Read a file's content; None if it is not there."""
    try:
        check_is_file(system, path)
        with system.open_input_stream(path) as stream:
            data: bytes = stream.readall()
    except FileNotFoundError:
        return None
    return data


def open_file(system: fs.FileSystem, path: str) -> pa.NativeFile:
    """Open a file to read parts of it."""
    check_is_file(system, path)
    return system.open_input_file(path)


def check_is_file(system: fs.FileSystem, path: str) -> None:
    """Raise a SnapshotError for a pipe, a folder or a device: a pipe could be read for ever."""
    if isinstance(system, fs.LocalFileSystem) and not stat.S_ISREG(Path(path).stat().st_mode):
        raise SnapshotError("is not a regular file")


def _write_local(path: Path, data: bytes, synced: Synced, *, replace: bool) -> bool:
    make_folder_within(path.parent)
    if not replace and path.exists():
        return False
    # On a full disk the file never gets its name, so no half-written one ever has it.
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        _write_new(part, data, synced)
        if replace:
            part.replace(path)
        else:
            _link(part, path)
        if synced is Synced.NAME:
            _sync_folder(path.parent)
    except FileExistsError:
        return False
    finally:
        part.unlink(missing_ok=True)
    return True


def _write_new(path: Path, data: bytes, synced: Synced) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        if synced is not Synced.NOTHING:
            os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    with suppress(OSError):  # a mount that syncs no folders
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _link(part: Path, path: Path) -> None:
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        part.rename(path)


def delete_folder(system: fs.FileSystem, folder: str) -> None:
    """Remove a folder, also while files come and go in it.

    Of a query that failed, tasks may go on for a moment after it has ended.
    """
    for _ in range(_DELETE_ATTEMPTS):
        with suppress(FileNotFoundError):
            system.delete_dir(folder)
        if system.get_file_info(folder).type == fs.FileType.NotFound:
            return
    system.delete_dir(folder)
