"""Kernels that another checkout of the same sources has compiled on this machine.

numba keeps machine code by the folder that a source is in, so a fresh checkout would compile all
kernels once more, which takes longer than the tests that use them. Code of another source is never
taken: numba compares the sources themselves.
"""

import hashlib
import os
import shutil
from pathlib import Path

from unskew.grouping.kernels import machine_code_folder

_SOURCES = ("unskew/grouping", "unskew/jobs/operators", "tests", "benchmarks")


def reuse_machine_code(root: Path) -> None:
    """Copy what this checkout lacks; of several that have it, from the one that has most."""
    kept = machine_code_folder()
    compiled = {folder.name.rpartition("_")[0] for folder in kept.iterdir()}
    for sources in map(root.joinpath, _SOURCES):
        for folder, _, files in os.walk(sources):
            if Path(folder).name in compiled:
                _copy_lacking(kept, Path(folder), files)


def _copy_lacking(kept: Path, folder: Path, files: list[str]) -> None:
    own = own_folder(kept, folder)
    indexes: dict[str, Path] = {}
    for index in kept.glob(f"{folder.name}_*/*.nbi"):
        known = indexes.get(index.name)
        if known is None or len(_data_files(index)) > len(_data_files(known)):
            indexes[index.name] = index
    for name, index in indexes.items():
        if f"{name.partition('.')[0]}.py" in files and not (own / name).exists():
            own.mkdir(exist_ok=True)
            # The index last: it names the others.
            for file in (*_data_files(index), index):
                shutil.copyfile(file, own / file.name)


def own_folder(kept: Path, folder: Path) -> Path:
    """Where numba keeps the machine code of the sources in `folder`."""
    digest = hashlib.sha1(str(folder).encode(), usedforsecurity=False).hexdigest()
    return kept / f"{folder.name}_{digest}"


def _data_files(index: Path) -> list[Path]:
    return sorted(index.parent.glob(f"{index.stem}.*.nbc"))
