"""Serving the metrics for some time after a failure, so that Prometheus and probes see it.

A process that fails and is started again by its supervisor is seldom up when Prometheus scrapes it;
without this the failure would be in its log only.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa

from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.terminal import Line, Log

_POLL_SECONDS = 0.2


@contextmanager
def hold_metrics_after_failure(
    job: Job, health: Health, board: Board, status: Line | Log, stop: Stop
) -> Iterator[None]:
    """Raise a failure only after `metrics.hold_after_failure`, or when a stop is asked for."""
    try:
        yield
    except Exception:
        seconds = job.metrics.hold_after_failure.amount / 1e6
        if seconds and not stop.asked:
            health.on_state_changed("failed")
            # An unreadable checkpoint is the failure itself: there is nothing to count.
            with suppress(OSError, pa.ArrowException):
                board.on_journal_unreadable(len(open_journal(job).list_unreadable_files()))
            status.write_event("failing", "error", metrics_stay_seconds=seconds)
            _wait(seconds, stop)
        raise


def _wait(seconds: float, stop: Stop) -> None:
    deadline = time.monotonic() + seconds
    while not stop.asked and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
