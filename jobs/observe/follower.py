"""What watches a running job: told of each batch, it shows and never touches the job."""

from collections.abc import Mapping

from unskew.jobs.observe.batch import BatchDone, Lag


class Follower:
    """What watches a service; a subclass overrides what it is interested in."""

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""

    def working(self) -> None:
        """Tasks of a batch got done."""

    def idle(self, lag: Lag) -> None:
        """The query looked for records and found none."""

    def refused(self, counts: Mapping[str, int]) -> None:
        """Dead letters that no report of a batch counts."""

    def tick(self) -> None:
        """A moment passed."""

    def enter(self, state: str) -> None:
        """The query is in another state now: stopping, stopped, failed."""
