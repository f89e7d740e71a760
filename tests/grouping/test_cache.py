"""The cache where it is somebody else's."""

import os
from pathlib import Path

import pytest

from grouping.kernels import machine_code_folder


def test_kernels_are_kept_elsewhere_when_the_cache_is_read_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    own = machine_code_folder()
    # The super-user of a CI machine may write everywhere, so permissions alone would prove nothing.
    monkeypatch.setattr(os, "access", lambda path, _mode: not str(path).startswith(str(own)))

    assert own.is_relative_to(tmp_path / "cache")
    assert machine_code_folder().is_relative_to(tmp_path / "temporary")
