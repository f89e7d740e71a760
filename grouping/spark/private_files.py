"""Files and folders that only their user can read: keys of records and whole records are in them.

Where executors run as another user than the driver, a private folder would shut them out. Then the
folder above is made beforehand, with the right to write for their group: what is made in it takes
that over. The process's umask stays as it is: results are the user's own.
"""

import os
import stat
from pathlib import Path
from typing import IO

_PRIVATE = 0o700


def make_private_folder(folder: Path) -> None:
    """Make a folder of mode 0700; one that is there keeps its mode."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=_PRIVATE, exist_ok=True)


def make_folder_within(folder: Path) -> None:
    """Make a folder that is as open as the one above, if that is meant to be written by others.

    Such is a folder whose group, or others, may write to it; in a sticky one, as /tmp is, each has
    what is their own. In all others the folder gets mode 0700.
    """
    try:
        folder.mkdir(mode=_PRIVATE)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_folder_within(folder.parent)
        make_folder_within(folder)
        return
    shared = _compute_shared_rights(folder.parent.stat().st_mode)
    if shared:
        folder.chmod(_PRIVATE | shared)


def _compute_shared_rights(mode: int) -> int:
    """The rights of those who may write to a folder of this mode, but for its owner."""
    if mode & stat.S_ISVTX:
        return 0
    group = mode & stat.S_IRWXG if mode & stat.S_IWGRP else 0
    others = mode & stat.S_IRWXO if mode & stat.S_IWOTH else 0
    return group | others | (mode & stat.S_ISGID if group else 0)


def write_private(file: Path, text: str) -> None:
    """Write a new file of mode 0600; a file or link of that name is an error."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with os.fdopen(os.open(file, flags, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)


def open_regular(file: Path, flags: int) -> IO[str]:
    """Open a text file by flags of `os.open`; an OSError if a link, a pipe or a device is there.

    A file with a second name is an error too: whoever may write to the folder may have given it.
    """
    descriptor = os.open(file, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o600)
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(descriptor)
        raise OSError(f"{file} is no file of its own, but a link, a pipe or a device")
    return os.fdopen(descriptor, "r+", encoding="utf-8", errors="replace")
