"""One process a checkpoint."""

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.jobs.checkpoint import lock
from unskew.jobs.checkpoint.lock import JVM_LOCK, LOCK, check_not_in_use, lock_checkpoint

HOLD = """
import sys
from unskew.jobs.checkpoint.lock import lock_checkpoint
with lock_checkpoint(sys.argv[1]):
    print("held", flush=True)
    input()
"""


def test_a_second_start_is_told_whose_it_is(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "checkpoint")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as first:
        assert first.stdout is not None
        try:
            assert first.stdout.readline() == "held\n"
            with (
                pytest.raises(ExternalError) as error,
                lock_checkpoint(str(tmp_path / "checkpoint")),
            ):
                pass
            (problem,) = error.value.problems
            assert f"{tmp_path}/checkpoint: in use by process {first.pid}; stop" in problem
            with pytest.raises(ExternalError, match=f"in use by process {first.pid}; stop"):
                check_not_in_use(str(tmp_path / "checkpoint"))
        finally:
            # However it ends, the checkpoint is free again.
            first.kill()
            first.wait()
        with lock_checkpoint(f"file:{tmp_path}/checkpoint"):
            assert (tmp_path / "checkpoint" / LOCK).read_text().isdecimal()


HOLD_AS_A_JVM = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
input()
"""


def test_a_start_waits_for_the_jvm_of_a_killed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-c", HOLD_AS_A_JVM, str(tmp_path / JVM_LOCK)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as jvm:
        assert jvm.stdout is not None
        try:
            assert jvm.stdout.readline() == "held\n"
            monkeypatch.setattr(lock, "JVM_ENDS_SECONDS", 0.3)
            with pytest.raises(ExternalError, match="in use by the JVM of a start whose driver"):
                check_not_in_use(str(tmp_path))
            monkeypatch.setattr(lock, "JVM_ENDS_SECONDS", 30.0)
            threading.Timer(0.5, jvm.kill).start()
            with lock_checkpoint(str(tmp_path)):
                assert jvm.wait(0.1) != 0, "it has ended by now"
        finally:
            jvm.kill()


def test_a_folder_that_cannot_be_made_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(ExternalError, match=r"cannot be used: .*; check the path and its owner"),
        lock_checkpoint(str(tmp_path / "file" / "checkpoint")),
    ):
        pass


def test_a_look_at_a_checkpoint_that_is_not_there_makes_nothing(tmp_path: Path) -> None:
    check_not_in_use(str(tmp_path / "checkpoint"))
    check_not_in_use("wasbs://c@a.net/x")
    assert list(tmp_path.iterdir()) == []


def test_a_link_in_the_locks_stead_is_not_followed(tmp_path: Path) -> None:
    precious, checkpoint = tmp_path / "precious", tmp_path / "checkpoint"
    precious.write_text("of somebody else")
    checkpoint.mkdir()
    for plant in (Path.symlink_to, Path.hardlink_to):
        plant(checkpoint / LOCK, precious)
        with (
            pytest.raises(ExternalError, match=r"cannot be used: .*link"),
            lock_checkpoint(str(checkpoint)),
        ):
            pass
        assert precious.read_text() == "of somebody else"
        (checkpoint / LOCK).unlink()
    os.mkfifo(checkpoint / LOCK)
    with pytest.raises(ExternalError, match="a pipe"), lock_checkpoint(str(checkpoint)):
        pass


def test_a_checkpoint_that_is_made_is_private(tmp_path: Path) -> None:
    with lock_checkpoint(str(tmp_path / "a" / "checkpoint")):
        assert mode(tmp_path / "a" / "checkpoint") == 0o700
        assert mode(tmp_path / "a" / "checkpoint" / LOCK) == 0o600
    (tmp_path / "users").mkdir(mode=0o755)
    with lock_checkpoint(str(tmp_path / "users")):
        assert mode(tmp_path / "users") == 0o755


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_a_full_disk_at_the_lock_is_one_line_with_advice(tmp_path: Path) -> None:
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    # No file may grow: as on a disk where there is room for a name and for nothing in it.
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with (
            pytest.raises(ExternalError, match=r"cannot be used: File too large; make room"),
            lock_checkpoint(str(tmp_path)),
        ):
            pass
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
