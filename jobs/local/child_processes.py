"""Child processes that end with us: started under `child_guard.py`, stopped by closing a pipe."""

import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from unskew.config.errors import ExternalError

_GUARD = Path(__file__).with_name("child_guard.py")
_STOP_SECONDS = 15.0
_KEPT_LINES = 50


class Child:
    """A guarded process whose output goes to a file; stop it, also when it has ended by itself."""

    def __init__(
        self,
        command: list[str],
        log: Path,
        remove: Path | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        guard = [sys.executable, "-I", "-S", str(_GUARD), str(remove or "")]
        with log.open("ab") as output:
            # A session of its own: Ctrl-C on the terminal must reach this process only.
            self._process = subprocess.Popen(
                [*guard, *command],
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env=env,
            )
        # Held open: when the child ends by itself, the guard removes the folder that the log is in,
        # and its last lines are then the only ones that say why.
        self._log = log.open("rb")
        self._last: list[str] = []

    @property
    def running(self) -> bool:
        """Is the process still running?"""
        return self._process.poll() is None

    def wait(self, seconds: float | None = None) -> int:
        """Wait until it ends; its exit code."""
        return self._process.wait(seconds)

    def stop(self) -> None:
        """Stop the process and wait; may be called twice."""
        assert self._process.stdin is not None
        self._last = self.log_tail(_KEPT_LINES)
        self._log.close()
        self._process.stdin.close()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def wait_until(self, ready: Callable[[], bool], what: str, seconds: float) -> None:
        """Return when `ready()`; if the child ends or time is up, stop it and raise the reason."""
        deadline = time.monotonic() + seconds
        while not ready():
            problem = ""
            if not self.running:
                problem = f"ended with {self.wait()}"
            elif time.monotonic() > deadline:
                problem = f"is not ready within {seconds:.0f} s"
            if problem:
                self.stop()
                raise ExternalError(f"{what}: {problem}", *self.log_tail())
            time.sleep(0.05)

    def log_tail(self, lines: int = 8) -> list[str]:
        """The last lines of its output; after `stop`, those read when it was stopped."""
        if self._log.closed:
            return self._last[-lines:]
        self._log.seek(0)
        written = self._log.read().decode(errors="replace").splitlines()
        return [line for line in written if line.strip()][-lines:]


def find_free_ports(count: int) -> list[int]:
    """Find loopback ports that are free at this moment."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for free_socket in sockets:
            free_socket.bind(("127.0.0.1", 0))
        return [free_socket.getsockname()[1] for free_socket in sockets]
    finally:
        for free_socket in sockets:
            free_socket.close()


def is_listening(port: int) -> bool:
    """Does something accept connections on this loopback port?"""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0
