"""Runs a child that must not outlive its parent: `python child_guard.py FOLDER COMMAND...`.

The parent holds the other end of this process's standard input. When it closes it, or dies in any
way, the child gets SIGTERM, then SIGKILL, and FOLDER (if named) is removed. A script of its own, on
the standard library alone, so that it starts in a moment and survives what happens to the parent.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading

_GRACE_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def main(folder: str, command: list[str]) -> int:
    """Run `command` until it ends or standard input does; its exit code."""
    # Ctrl-C reaches the whole terminal; the parent decides what it means for the child.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    child = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        preexec_fn=_die_with_guard,  # noqa: PLW1509 - no thread has been started yet
    )
    signal.signal(signal.SIGTERM, lambda *_: child.terminate())
    threading.Thread(target=_wait_for_parent, args=(child,), daemon=True).start()
    code = child.wait()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    return code if code >= 0 else 128 - code


def _wait_for_parent(child: "subprocess.Popen[bytes]") -> None:
    while os.read(0, 4096):
        pass
    child.terminate()
    try:
        child.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        child.kill()


def _die_with_guard() -> None:
    """Linux alone can also cover a SIGKILL of this very process."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
