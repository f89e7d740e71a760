"""A package of a user's own, as pip would leave it."""

import sys
from pathlib import Path

import pytest


def install_module(
    folder: Path, patch: pytest.MonkeyPatch, name: str, entry_points: str, text: str
) -> Path:
    """Put the module `name` with its entry points on the path; the module's file."""
    info = folder / "site" / f"{name}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {name}\n")
    (info / "entry_points.txt").write_text(entry_points)
    module = folder / "site" / f"{name}.py"
    module.write_text(text)
    patch.syspath_prepend(str(module.parent))
    patch.delitem(sys.modules, name, raising=False)
    return module
