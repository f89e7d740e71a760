"""Stopping on request: signals are noted, and the service looks at them between two steps.

An exception out of a signal handler could cut a call into the JVM in half, and leave a connection
that answers the next question with the last one's answer.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

GRACE_SECONDS = 15.0
"""How long a batch under way may take to finish once a stop is asked for; then it is abandoned."""
DEADLINE_SECONDS = 29.0
"""The process ends after this time even if its work has not. A job continues from its checkpoint;
a command that leaves work unfinished ends with another exit code."""
EXIT_INTERRUPTED = 130
EXIT_STOPPED = 0


class Stop:
    """Whether, and how, the service was asked to stop."""

    def __init__(
        self, overdue_code: int | None = None, overdue: Callable[[], None] = lambda: None
    ) -> None:
        self.signal: int | None = None
        self._overdue_code = overdue_code
        self._overdue = overdue

    @property
    def asked(self) -> bool:
        """Has a stop been requested?"""
        return self.signal is not None

    @property
    def exit_code(self) -> int:
        """0 after SIGTERM, the regular way to stop a service; 130 after Ctrl-C."""
        return EXIT_INTERRUPTED if self.signal == signal.SIGINT else EXIT_STOPPED

    def ask(self, number: int = signal.SIGTERM, _frame: Any = None) -> None:
        """Request a stop; a second request does not wait for the batch."""
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        timer = threading.Timer(DEADLINE_SECONDS, self._end)
        timer.daemon = True
        timer.start()

    def _end(self) -> None:
        """The deadline has passed."""
        try:
            self._overdue()
        finally:
            os._exit(self.exit_code if self._overdue_code is None else self._overdue_code)


@contextmanager
def call_on_signals(stop: Stop) -> Iterator[None]:
    """Call `stop` on SIGINT and SIGTERM."""
    numbers = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, stop.ask) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
