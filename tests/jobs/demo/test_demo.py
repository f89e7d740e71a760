"""`unskew demo` as a user runs it: exact totals, a page, a picture, and nothing left behind."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.support.running.processes import default_signals

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


SECONDS_MAX = 280.0


@contextmanager
def demo(*words: str, folder: Path | None = None) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "unskew", "demo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=default_signals,  # noqa: PLW1509 - sets signals only
        # A group of its own: a terminal's Ctrl-C goes to all of it.
        start_new_session=True,
        cwd=folder,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "160"},
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)


def children_of(process: "subprocess.Popen[str]") -> set[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return set(psutil.Process(process.pid).children(recursive=True))
    return set()


def lines_until(process: "subprocess.Popen[str]", text: str) -> str:
    """What it prints up to a line with this text."""
    assert process.stdout is not None
    printed = ""
    for line in process.stdout:
        printed += line
        if text in line:
            return printed
    raise AssertionError(printed)


@pytest.mark.slow
def test_totals_are_exact_under_both_groupings_and_nothing_is_left(tmp_path: Path) -> None:
    with demo("--lines", "3000", "--png", str(tmp_path / "x.png")) as process:
        printed = lines_until(process, "batch 2 of 7")
        (url,) = re.findall(r"watch it in a browser: (http://127.0.0.1:\d+/)\n", printed)
        with urllib.request.urlopen(url, timeout=30) as page:  # noqa: S310 - ours
            assert page.status == 200
        seen = children_of(process)
        assert seen
        printed += lines_until(process, "batch 7 of 7")
        more, errors = process.communicate(timeout=SECONDS_MAX)
    printed += more
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert [printed.count(f"batch {number} of 7") for number in range(1, 9)] == [2] * 7 + [0]
    rows = {
        cells[0]: cells[1:]
        for line in printed.splitlines()
        if (cells := line.split()) and cells[0] in {"key", "level"}
    }
    assert rows["key"][-1] == rows["level"][-1] == "exact"
    worst = {name: float(row[3]) for name, row in rows.items()}
    assert worst["level"] < 1.05
    assert worst["key"] > 2
    (dead,) = {row[-2] for row in rows.values()}
    assert f"; {dead} lines are broken on purpose" in printed
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    _, alive = psutil.wait_procs(seen, timeout=30)
    assert alive == []


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["Kafka is up", "counting under key", "batch 2 of 7"])
def test_ctrl_c_exits_130_and_leaves_nothing(moment: str, tmp_path: Path) -> None:
    with demo("--lines", "50000", folder=tmp_path) as process:
        lines_until(process, moment)
        time.sleep(1)  # in the middle of what comes next
        children = children_of(process)
        assert children
        os.killpg(process.pid, signal.SIGINT)
        asked = time.monotonic()
        _, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert time.monotonic() - asked < 45
    lines = [line for line in errors.splitlines() if "jdk.incubator" not in line]
    assert lines == ["unskew demo: interrupted"]
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []
    assert list(tmp_path.iterdir()) == []


def test_all_wrong_options_are_told_at_once() -> None:
    with demo("--grouping", "levle", "--lines", "5", "--png", "x.jpg") as process:
        _, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 2
    problems = errors.splitlines()
    assert [problem.split(": ")[1] for problem in problems] == ["--grouping", "--lines", "--png"]
    assert problems[1] == "demo: --lines: a whole number from 1000 to 10000000 (got 5)"
