"""One process a checkpoint."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.jobs.checkpoint.lock import LOCK, check_not_in_use, lock_checkpoint

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
