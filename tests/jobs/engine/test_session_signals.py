"""Signals while Spark starts, and a session whose JVM is gone."""

import logging
import signal

import pytest
from pyspark.core import context

from unskew.jobs.engine.session import _quiet_broken_connections, defer_signals


def test_ctrl_c_late_in_the_start_waits_for_the_session(
    capsys: pytest.CaptureFixture[str],
) -> None:
    arrived: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: arrived.append(number))
    try:
        with defer_signals():
            # As a SparkContext does at its end, when the session is not complete yet.
            context.signal.signal(signal.SIGINT, lambda *_: pytest.fail("interrupted the start"))
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            assert arrived == []
            assert capsys.readouterr().err == "stopping once Spark has started\n"
        assert arrived == [signal.SIGINT]
    finally:
        signal.signal(signal.SIGINT, before)
    assert context.signal is signal


def test_py4j_logs_no_broken_connection(caplog: pytest.LogCaptureFixture) -> None:
    _quiet_broken_connections()
    logging.getLogger("py4j.clientserver").error("Exception while sending command")
    assert caplog.records == []
