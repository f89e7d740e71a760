"""The cache where it is somebody else's."""

import os
from pathlib import Path

import numpy as np
import pytest

from tests.support.machine_code import own_folder, reuse_machine_code
from unskew.grouping.hashing import mix64
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


def test_a_fresh_checkout_takes_what_another_has_compiled(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix64(np.uint64(1))
    used = Path(mix64.dispatcher.stats.cache_path)
    sources = root / "unskew" / "grouping"
    assert used == own_folder(used.parent, sources)

    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path))
    kept = machine_code_folder()
    for name, files in {
        "grouping_0": ["hashing.mix64-1.nbi", "hashing.mix64-1.1.nbc"],
        "grouping_1": ["hashing.mix64-1.nbi", "hashing.mix64-1.1.nbc", "hashing.mix64-1.2.nbc"],
        "grouping_2": ["not_ours.mix64-1.nbi", "not_ours.mix64-1.1.nbc"],
    }.items():
        (kept / name).mkdir()
        for file in files:
            (kept / name / file).write_text(name)
    reuse_machine_code(root)
    own = own_folder(kept, sources)
    copied = {path.name: path.read_text() for path in own.iterdir()}
    assert copied == dict.fromkeys(
        sorted(path.name for path in (kept / "grouping_1").iterdir()), "grouping_1"
    )
    assert len(list(kept.iterdir())) == 4


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
