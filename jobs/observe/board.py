"""A job's board, and what keeps it and the health up to date while a service runs."""

from collections.abc import Mapping

from unskew.config.models.job import Job
from unskew.jobs.observe.batch import BatchDone, Lag
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import Health, trigger_seconds
from unskew.jobs.observe.metrics import Board


def board_of(job: Job, health: Health) -> Board:
    """The metrics of a job, before its first batch."""
    info = (job.grouping.type, job.operator.type)
    return Board(job.name, health, info, job.metrics.hot_keys, trigger_seconds(job))


class HealthFollower(Follower):
    """Tells both."""

    def __init__(self, health: Health, board: Board) -> None:
        self._health = health
        self._board = board

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""
        self._board.batch(done)
        self._health.beat(done.seconds)

    def working(self) -> None:
        """The batch under way goes on."""
        self._health.beat()

    def idle(self, lag: Lag) -> None:
        """The query lives, but there is nothing to do."""
        self._board.idle(lag)
        self._health.beat()

    def refused(self, counts: Mapping[str, int]) -> None:
        """Dead letters outside the reports."""
        self._board.refused(counts)

    def enter(self, state: str) -> None:
        """Stopping, stopped or failed."""
        self._health.enter(state)
