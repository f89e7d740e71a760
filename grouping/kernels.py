"""`@kernel`: how every inner loop here is compiled.

numba keys its on-disk cache by the file of a kernel alone, so a change in a file it calls into
would leave old machine code in use. The cache folder therefore carries a digest of all our sources.
"""

import hashlib
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
from numba.core import config

from unskew.grouping.cache import cache_folder, own_temporary_folder

P = ParamSpec("P")
R = TypeVar("R")
_KEPT_SECONDS = 30 * 86_400


def _sources_digest() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def machine_code_folder() -> Path:
    """Where machine code is kept; jars may lie in a cache that is read-only, this may not."""
    place = "numba", _sources_digest()
    folder = cache_folder(*place)
    if not os.access(folder, os.W_OK):
        return own_temporary_folder(*place)
    _forget_old(folder)
    return folder


def _forget_old(newest: Path) -> None:
    """Remove the machine code of sources that are no longer used, once in a while."""
    if any(newest.iterdir()):
        return
    # It was made just now: no clock is needed here.
    long_ago = newest.stat().st_mtime - _KEPT_SECONDS
    for folder in newest.parent.iterdir():
        with suppress(OSError):  # another process may be as tidy
            if folder.stat().st_mtime < long_ago:
                shutil.rmtree(folder)


numba_config: Any = config  # its attributes are made at run time
if not numba_config.CACHE_DIR:
    numba_config.CACHE_DIR = str(machine_code_folder())


def kernel(function: Callable[P, R]) -> Callable[P, R]:
    """Compile `function` with numba on its first call; later processes load the machine code."""
    compiled = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast("Callable[P, R]", compiled)
