"""Folders for files that Unskew can make again: compiled kernels, jars, a JRE."""

import os
import tempfile
from pathlib import Path

from unskew.grouping.errors import GroupingError


def cache_folder(*parts: str) -> Path:
    """The user's cache folder for `parts`, made if need be.

    `UNSKEW_CACHE` names it; otherwise it is `unskew` in the XDG cache folder. Where that cannot be
    written (a container with a read-only home), a folder of this user in the temporary folder.
    """
    named = os.environ.get("UNSKEW_CACHE")
    root = Path(named) if named else Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "unskew"
    folder = root.expanduser().absolute().joinpath(*parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        if named:
            rule = "UNSKEW_CACHE: a folder that can be made and written"
            raise GroupingError(f"{rule} (got {named}: {error.strerror})") from error
        return make_temporary_folder(*parts)
    return folder


def make_temporary_folder(*parts: str) -> Path:
    """This user's folder for `parts` in the temporary folder, made if need be."""
    root = Path(tempfile.gettempdir(), f"unskew-{os.getuid()}")
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    status = root.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o022:
        # It belongs to another user, whose files in it would be run.
        root = Path(tempfile.mkdtemp(prefix="unskew-"))
    folder = root.joinpath(*parts)
    folder.mkdir(parents=True, exist_ok=True)
    return folder
