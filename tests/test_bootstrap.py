"""The set-up: repeated, failing, interrupted. A whole one is what CI does before these tests."""

import fcntl
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.running.processes import default_signals

pytestmark = pytest.mark.e2e

# Under another make (that of CI), make announces the folder it works in.
MAKE = ("make", "--no-print-directory", "setup")


@pytest.fixture
def checkout(root: Path, tmp_path: Path) -> Path:
    """A checkout with nothing set up."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("deploy", "jobs", "config", "grouping", "unskew"):
        shutil.copytree(root / name, tmp_path / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(root / name, tmp_path)
    return tmp_path


def offline() -> dict[str, str]:
    """An environment in which pip finds no package."""
    return {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_NO_CACHE_DIR": "1"}


def bootstrap(folder: Path) -> list[str]:
    """With the Python behind this environment, which has no packages of ours."""
    return [sys._base_executable, str(folder / "deploy" / "bootstrap.py")]


def test_a_second_run_does_nothing(root: Path) -> None:
    subprocess.run(MAKE, cwd=root, check=True)
    done = subprocess.run(MAKE, cwd=root, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_a_second_set_up_reports_that_it_waits(root: Path) -> None:
    with (root / ".cache" / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = subprocess.Popen(bootstrap(root), stderr=subprocess.PIPE, text=True)
        with second:
            assert second.stderr is not None
            line = second.stderr.readline()
            fcntl.flock(lock, fcntl.LOCK_UN)
    assert line == "set-up: another set-up of this checkout is running; waiting for it\n"
    assert second.returncode == 0


@pytest.mark.slow
@pytest.mark.every_run
def test_a_broken_environment_is_replaced_and_a_failed_step_named(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\nexit 1\n")
    python.chmod(0o755)
    done = subprocess.run(
        bootstrap(checkout), capture_output=True, text=True, env=offline(), check=False
    )
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last.startswith("set-up: this step failed: ")
    assert last.endswith("; fix this and run the same command again")
    assert "Traceback" not in done.stderr
    assert not (checkout / ".venv" / "unskew-setup").exists()
    assert subprocess.run([python, "-c", "import pip"], check=False).returncode == 0


def test_ctrl_c_ends_it_with_130_and_no_process_left(checkout: Path) -> None:
    process = subprocess.Popen(
        bootstrap(checkout),
        stderr=subprocess.PIPE,
        text=True,
        env=offline(),
        preexec_fn=default_signals,  # noqa: PLW1509 - no threads are here
        start_new_session=True,  # a terminal's Ctrl-C goes to a whole group
    )
    assert process.stderr is not None
    process.stderr.readline()  # it is at work: the environment is being made
    time.sleep(0.2)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 130
    assert errors == "\nset-up: interrupted; run the same command again to continue\n"
    assert list((checkout / ".cache").glob("setup-*")) == []
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []
