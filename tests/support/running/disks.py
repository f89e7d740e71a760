"""Mounted folders as tests change them."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def read_only(mount: Path) -> Iterator[None]:
    """Nothing can be written on a mounted disk meanwhile."""
    _remount(mount, "ro")
    try:
        yield
    finally:
        _remount(mount, "rw")


def _remount(mount: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", str(mount)], check=True)
