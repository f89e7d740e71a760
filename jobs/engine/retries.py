"""Starting a query again after a fault that may pass: Kafka or PostgreSQL away, an object store."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from unskew.config.models.job import Job
from unskew.jobs.engine.session import has_jvm_ended
from unskew.jobs.engine.spark_errors import ConflictError, PassingError
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.follower import Follower

WAIT_SECONDS_MIN = 1.0
WAIT_SECONDS_MAX = 60.0
_LOOK_SECONDS = 0.2


class Start(Protocol):
    """One start of a query."""

    made_progress: bool
    """Did it finish a batch, or poll its source without new records?"""

    def run(self) -> None:
        """Run until the query ends or fails."""


def run_with_retries(
    job: Job, start: Callable[[], Start], followers: Sequence[Follower], stop: Stop
) -> None:
    """Run a start; after a passing fault another one, with longer waits, for `retry_for`.

    A query that fails before it ever made progress is not started again: something in the job file
    is more likely to be wrong. A conflict of commits shows that nothing is.
    """
    failing_since: float | None = None
    wait = WAIT_SECONDS_MIN
    while True:
        current = start()
        try:
            current.run()
        except PassingError as error:
            begins = failing_since is None and isinstance(error, ConflictError)
            if current.made_progress or begins:
                failing_since, wait = time.monotonic(), WAIT_SECONDS_MIN
            if _is_over(job, failing_since, wait) or stop.asked or has_jvm_ended():
                _notify(followers, lambda follower: follower.on_state_changed("failed"))
                raise
            reason, seconds = error.problems[0], wait
            _notify(followers, lambda follower: follower.on_retry(reason, seconds))  # noqa: B023
        else:
            return
        _notify(followers, lambda follower: follower.on_state_changed("starting"))
        if not _wait(wait, followers, stop):
            _notify(followers, lambda follower: follower.on_state_changed("stopped"))
            return
        wait = min(2 * wait, WAIT_SECONDS_MAX)


def _is_over(job: Job, failing_since: float | None, wait: float) -> bool:
    if job.retry_for is None or failing_since is None:
        return True
    return time.monotonic() - failing_since + wait > job.retry_for.amount / 1e6


def _wait(seconds: float, followers: Sequence[Follower], stop: Stop) -> bool:
    """Wait; False if a stop is asked for."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not stop.asked:
        time.sleep(_LOOK_SECONDS)
        _notify(followers, lambda follower: follower.time_passed())
    return not stop.asked


def _notify(followers: Sequence[Follower], event: Callable[[Follower], None]) -> None:
    for follower in followers:
        event(follower)
