"""Child processes of tests: finding them, their signals and their end."""

import signal
import subprocess
from contextlib import suppress
from typing import Any

import psutil


def default_signals() -> None:
    """Give a child the signals of a terminal, also where the tests run under `nohup`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def end_process(process: "subprocess.Popen[Any]", seconds: float) -> bool:
    """Terminate a process; False if it had to be killed after `seconds`."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True


def children_named(name: str, parent: int, *, recursive: bool = False) -> list[psutil.Process]:
    """The child processes with this in their name.

    One that ends meanwhile is left out: a JVM starts commands that last for a millisecond.
    """
    named = []
    with suppress(psutil.NoSuchProcess):
        for child in psutil.Process(parent).children(recursive=recursive):
            with suppress(psutil.NoSuchProcess):
                if name in child.name():
                    named.append(child)
    return named
