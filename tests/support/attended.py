"""Signals as a terminal gives them, also where the tests themselves run under `nohup`."""

import signal
import subprocess
from typing import Any


def attended() -> None:
    """Runs in a child before its program: what was ignored for the tests is not for it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def ended(process: "subprocess.Popen[Any]", seconds: float) -> bool:
    """End a process and wait for that; did it end by itself in time?"""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True
