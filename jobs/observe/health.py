"""The query's state: the one the service sets, or stalled after a time without progress."""

import time
from collections.abc import Callable
from threading import Lock

from unskew.config.models.job import Job
from unskew.config.models.window import IntervalTrigger
from unskew.jobs.observe.batches.batch import BatchDone, Lag
from unskew.jobs.observe.follower import Follower

STATES = ("starting", "running", "stalled", "stopping", "stopped", "failed")
STALL_SECONDS_MIN = 300.0


def read_trigger_seconds(job: Job) -> float | None:
    """Read the interval of a job's trigger; None if the job reads what is there and ends."""
    trigger = job.trigger
    return trigger.interval.amount / 1e6 if isinstance(trigger, IntervalTrigger) else None


def compute_stall_seconds(job: Job) -> float:
    """Compute how long a job may show no progress: five minutes, or three trigger intervals."""
    return max(STALL_SECONDS_MIN, 3 * (read_trigger_seconds(job) or 0.0))


class Health(Follower):
    """The query's state.

    The stall timer resets on a finished batch, an empty poll or a completed task. One task may take
    long, so the limit grows with the slowest batch so far.
    """

    def __init__(self, limit_seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit_seconds
        self._clock = clock
        self._lock = Lock()
        self._state = "starting"
        self._reset_at = clock()

    def reset_stall_timer(self, batch_seconds: float = 0.0) -> None:
        """Record progress; a query that starts runs from then on."""
        with self._lock:
            self._reset_at = self._clock()
            self._limit = max(self._limit, 10 * batch_seconds)
            if self._state == "starting":
                self._state = "running"

    def on_batch_done(self, done: BatchDone) -> None:
        """A batch is done."""
        self.reset_stall_timer(done.seconds)

    def on_tasks_done(self) -> None:
        """Tasks of the batch under way were completed."""
        self.reset_stall_timer()

    def on_idle_poll(self, lag: Lag) -> None:
        """The query runs, but there are no records."""
        self.reset_stall_timer()

    def on_state_changed(self, state: str) -> None:
        """Take a state that the service knows: stopping, stopped, failed, or starting once more."""
        assert state in STATES
        with self._lock:
            self._state = state
            if state == "starting":
                self._reset_at = self._clock()

    @property
    def state(self) -> str:
        """The state now, of STATES."""
        with self._lock:
            silent = self._clock() - self._reset_at > self._limit
            return "stalled" if silent and self._state in {"starting", "running"} else self._state

    @property
    def alive(self) -> bool:
        """Has the query neither failed, stalled nor stopped? `/healthz` asks."""
        return self.state in {"starting", "running", "stopping"}

    @property
    def ready(self) -> bool:
        """Does the query run, and has it made progress? `/readyz` asks."""
        return self.state == "running"
