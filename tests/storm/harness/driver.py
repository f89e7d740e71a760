"""`unskew run` as a process of its own, with the processes that it starts."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from tests.storm.harness.counts import StormError
from tests.support.running.cluster import SHORT_LIVED
from tests.support.running.processes import children_named

END_SECONDS = 1800.0


class Driver:
    """One start of a job."""

    def __init__(self, job_file: Path, log: Path) -> None:
        self._log = log
        with log.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "unskew", "run", str(job_file), "--log", "json"],
                stdout=subprocess.DEVNULL,
                stderr=out,
                start_new_session=True,
                env={**os.environ, "JAVA_TOOL_OPTIONS": SHORT_LIVED},
            )

    def ended(self) -> bool:
        """Has it ended?"""
        return self.process.poll() is not None

    def jvm(self) -> psutil.Process | None:
        """Its JVM, if it has one by now."""
        return next(iter(children_named("java", self.process.pid)), None)

    def all(self) -> list[psutil.Process]:
        """It and all that it started, the last first."""
        with suppress(psutil.NoSuchProcess):
            me = psutil.Process(self.process.pid)
            return [*me.children(recursive=True)[::-1], me]
        return []

    def wait(self, seconds: float = END_SECONDS) -> int:
        """Its exit code, once it has ended."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StormError(f"the driver neither ends nor goes on: {self.text()}") from None

    def text(self) -> str:
        """All of its standard error."""
        return self._log.read_text(errors="replace")


@contextmanager
def driver(job_file: Path, log: Path) -> Iterator[Driver]:
    """Start one; whatever happens, all of it ends."""
    started = Driver(job_file, log)
    known: list[psutil.Process] = []
    try:
        yield started
    finally:
        known += started.all()
        for process in known:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        started.process.wait()


def gone(process: psutil.Process, seconds: float = 60.0) -> None:
    """Wait until a process that is no child of ours has ended."""
    deadline = time.monotonic() + seconds
    with suppress(psutil.NoSuchProcess):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            assert time.monotonic() < deadline, f"process {process.pid} lives on"
            time.sleep(0.1)


def signal_group(started: Driver, number: signal.Signals) -> None:
    """Signal the driver, its JVM and its Python workers at once."""
    # The workers' daemon leads a process group of its own.
    everyone = started.all()
    os.killpg(started.process.pid, number)
    for process in everyone:
        with suppress(psutil.NoSuchProcess):
            process.send_signal(number)
