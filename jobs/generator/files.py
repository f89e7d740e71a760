"""Files that cannot be kept."""

import stat
from pathlib import Path


def remove(path: str) -> None:
    """Remove a file that was written; a device, a pipe or a link that stood there stays."""
    file = Path(path)
    try:
        if stat.S_ISREG(file.lstat().st_mode):
            file.unlink()
    except FileNotFoundError:
        return
