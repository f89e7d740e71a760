"""After a failure the metrics page stays for a moment, so that Prometheus and probes learn of it.

A process that fails and is started again by its supervisor is seldom up when a scraper looks; what
it would have said is then only in its log.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pyarrow as pa

from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import journal_of
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.metrics import Board
from unskew.jobs.observe.terminal import Line, Log

_POLL_SECONDS = 0.2


@contextmanager
def hold_metrics_after_failure(
    job: Job, health: Health, board: Board, status: Line | Log, stop: Stop
) -> Iterator[None]:
    """Let a failure out only after `metrics.linger`, or once a stop is asked for."""
    try:
        yield
    except Exception:
        seconds = job.metrics.linger.amount / 1e6
        if seconds and not stop.asked:
            health.enter("failed")
            # A checkpoint out of reach is what the failure is about then.
            with suppress(OSError, pa.ArrowException):
                board.unreadable(len(journal_of(job).unreadable_files()))
            status.event("failing", "error", metrics_stay_seconds=seconds)
            _wait(seconds, stop)
        raise


def _wait(seconds: float, stop: Stop) -> None:
    deadline = time.monotonic() + seconds
    while not stop.asked and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
