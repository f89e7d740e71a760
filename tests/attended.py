"""Signals as a terminal gives them, also where the tests themselves run under `nohup`."""

import signal


def attended() -> None:
    """Runs in a child before its program: what was ignored for the tests is not for it."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
