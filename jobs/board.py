"""Keeps board and health up to date while a service runs."""

from collections.abc import Mapping

from jobs.batch import BatchDone, Lag
from jobs.health import Health
from jobs.metrics import Board
from jobs.service import Follower


class HealthFollower(Follower):
    """Tells both."""

    def __init__(self, health: Health, board: Board) -> None:
        self._health = health
        self._board = board

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""
        self._board.batch(done)
        self._health.beat(done.seconds)

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
