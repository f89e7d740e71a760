"""`@kernel` and `@borrowing_kernel`: how every inner loop here is compiled.

numba takes a second to import, and what only reads options (`lint`, `schema`, `explain`) never
routes: so numba is imported when the first kernel is called.

numba keys its on-disk cache by the file of a kernel alone, so a change in a file it calls into
would leave old machine code in use. The cache folder therefore carries a digest of all sources with
kernels; what a kernel uses of ours comes from such a file.

numba counts references to arrays: in a loop that takes arrays out of named tuples, or hands tuples
on, that costs up to two thirds of the rate. A borrowing kernel neither makes arrays nor returns
any: its caller holds all that it sees, so nothing is counted in it.
"""

import functools
import hashlib
import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar, cast

from unskew.grouping.cache import cache_folder, make_temporary_folder

P = ParamSpec("P")
R = TypeVar("R")
_KEPT_SECONDS = 30 * 86_400
_HAS_KERNELS = re.compile(rb"^@(?:borrowing_)?kernel$", re.MULTILINE)


class Kernel(Generic[P, R]):
    """A function that numba compiles on its first call; later processes load the machine code."""

    def __init__(self, function: Callable[P, R], *, borrows: bool = False) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self._borrows = borrows
        self._name = function.__qualname__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the machine code."""
        return cast("R", self.dispatcher(*args, **kwargs))

    @functools.cached_property
    def dispatcher(self) -> Any:
        """What numba makes of the function."""
        # Two threads may come here at the same time: both get the one that was set first.
        return self.__dict__.setdefault("dispatcher", _dispatcher(self.function, self._borrows))

    @property
    def _numba_type_(self) -> Any:
        # What numba asks a value in compiled code for: so a kernel can call this one.
        return self.dispatcher._numba_type_

    def __reduce__(self) -> str:
        # By name, as functions are.
        return self._name


_KERNELS: list[Kernel[..., Any]] = []


def kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Compile `function` with numba on its first call."""
    return _listed(Kernel(function))


def borrowing_kernel(function: Callable[P, R]) -> Kernel[P, R]:
    """Likewise, without counting references: numba refuses one that makes an array.

    It may pass arrays on to any kernel, and call those that make arrays but return none.
    """
    return _listed(Kernel(function, borrows=True))


def _listed(made: Kernel[P, R]) -> Kernel[P, R]:
    _KERNELS.append(made)
    return made


def load_numba() -> None:
    """Do now what the first call of each imported kernel would do: for a process that will fork."""
    for each in _KERNELS:
        assert each.dispatcher


def _dispatcher(function: Callable[..., Any], borrows: bool) -> Any:
    import numba  # noqa: PLC0415 - see above
    from numba.core import config  # noqa: PLC0415

    settings: Any = config  # its attributes are made at run time
    if not settings.CACHE_DIR:
        settings.CACHE_DIR = str(machine_code_folder())
    options: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
    # What numba calls its run time makes arrays and counts references to them. Said for both: a
    # kernel that is compiled for its caller would else take this from there.
    options["_nrt"] = not borrows
    return numba.njit(**options)(function)


def _sources_digest() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for path in sorted(Path(__file__).parent.rglob("*.py")):
        source = path.read_bytes()
        # With this file, which has none: how kernels are compiled.
        if _HAS_KERNELS.search(source) or path == Path(__file__):
            digest.update(source)
    return digest.hexdigest()


def machine_code_folder() -> Path:
    """Where machine code is kept; jars may lie in a cache that is read-only, this may not."""
    name = "numba", _sources_digest()
    folder = cache_folder(*name)
    if not os.access(folder, os.W_OK):
        return make_temporary_folder(*name)
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
