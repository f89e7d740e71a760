import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest

from tests.attended import attended

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


SECONDS_MAX = 280.0


@contextmanager
def demo(*words: str) -> Iterator["subprocess.Popen[str]"]:
    process = subprocess.Popen(
        [sys.executable, "-m", "jobs", "demo", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=attended,  # noqa: PLW1509 - sets signals only
    )
    try:
        yield process
    finally:
        process.terminate()
        process.communicate(timeout=SECONDS_MAX)


def test_totals_are_exact_under_both_groupings_and_nothing_is_left() -> None:
    seen: set[psutil.Process] = set()
    with demo("--lines", "5000") as process:
        while process.poll() is None:
            with suppress(psutil.NoSuchProcess):
                seen.update(psutil.Process(process.pid).children(recursive=True))
            time.sleep(0.5)
        printed, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
    assert printed.count(" exact ") == 2
    assert "broken on purpose" in printed
    _, alive = psutil.wait_procs(seen, timeout=30)
    assert alive == []


def test_ctrl_c_exits_130_and_leaves_nothing() -> None:
    with demo("--lines", "5000") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "written" in line:
                break
        time.sleep(2)  # Spark is starting now
        children = psutil.Process(process.pid).children(recursive=True)
        assert children
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 130
    assert "Traceback" not in errors
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--grouping", "levle"], "demo: --grouping: one of "),
        (["--lines", "5"], "demo: --lines: from 1000 to 10000000 (got 5)"),
    ],
)
def test_wrong_options_are_errors_of_use(words: list[str], message: str) -> None:
    with demo(*words) as process:
        _, errors = process.communicate(timeout=SECONDS_MAX)
    assert process.returncode == 2
    assert errors.startswith(message)
