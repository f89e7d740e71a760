"""Is the query alive? A small state that the service keeps and the probes ask."""

import time
from collections.abc import Callable
from threading import Lock

from unskew.config.models.job import Job
from unskew.config.models.window import IntervalTrigger

STATES = ("starting", "running", "stalled", "stopping", "stopped", "failed")
STALL_SECONDS_MIN = 300.0


def trigger_seconds(job: Job) -> float | None:
    """The interval of a job's trigger; None if it reads what is there and ends."""
    trigger = job.trigger
    return trigger.interval.amount / 1e6 if isinstance(trigger, IntervalTrigger) else None


def stall_seconds(job: Job) -> float:
    """How long a job may be silent: five minutes, or three of its trigger's intervals."""
    return max(STALL_SECONDS_MIN, 3 * (trigger_seconds(job) or 0.0))


class Health:
    """The query's state. Only a sign of life renews it: a batch that is done, a look that found
    nothing, or tasks that got done.

    A task may take long and be well, so the limit grows with the slowest batch so far.
    """

    def __init__(self, limit_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit_seconds
        self._clock = clock
        self._lock = Lock()
        self._state = "starting"
        self._seen = clock()

    def beat(self, batch_seconds: float = 0.0) -> None:
        """The query showed that it lives."""
        with self._lock:
            self._seen = self._clock()
            self._limit = max(self._limit, 10 * batch_seconds)
            if self._state == "starting":
                self._state = "running"

    def enter(self, state: str) -> None:
        """Stopping, stopped or failed: what the query cannot say of itself."""
        assert state in STATES
        with self._lock:
            self._state = state

    @property
    def state(self) -> str:
        """One of STATES."""
        with self._lock:
            silent = self._clock() - self._seen > self._limit
            return "stalled" if silent and self._state in {"starting", "running"} else self._state

    @property
    def alive(self) -> bool:
        """For `/healthz`: nothing is wrong, though it may be starting or stopping."""
        return self.state in {"starting", "running", "stopping"}

    @property
    def ready(self) -> bool:
        """For `/readyz`: the query runs and has shown it."""
        return self.state == "running"
