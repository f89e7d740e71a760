"""Programs that no Python package carries: Prometheus, a browser."""

import os
import shutil
from pathlib import Path

import pytest

REQUIRED = "UNSKEW_TOOLS"


def find_program(name: str, package: str | None = None) -> Path:
    """The path of a program, of a Debian package of its name or another.

    A test that needs a missing one is skipped, but fails in CI.
    """
    path = shutil.which(name)
    if path is None:
        missing = f"{name} is not installed; Debian: apt-get install {package or name}"
        if os.environ.get(REQUIRED) == "required":
            pytest.fail(missing)
        pytest.skip(missing)
    return Path(path)
