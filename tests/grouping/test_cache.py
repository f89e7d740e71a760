"""The cache where it is somebody else's."""

import os
from pathlib import Path

import pytest

from unskew.grouping.kernels import machine_code_folder


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


def test_machine_code_of_sources_that_are_gone_is_removed_after_a_month(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path))
    own = machine_code_folder()
    old, recent = own.with_name("0" * 16), own.with_name("1" * 16)
    for folder in (old, recent):
        folder.mkdir()
        (folder / "code.nbc").touch()
    os.utime(old, (0, 0))
    assert machine_code_folder() == own
    assert not old.exists()
    assert recent.exists()
