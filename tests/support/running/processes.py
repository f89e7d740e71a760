"""Child processes of tests: their signals and their end."""

import signal
import subprocess
from typing import Any


def default_signals() -> None:
    """Give a child the signals of a terminal, also where the tests run under `nohup`."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def end_process(process: "subprocess.Popen[Any]", seconds: float) -> bool:
    """Terminate a process; False if it had to be killed after so many seconds."""
    process.terminate()
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return True
