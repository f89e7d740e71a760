"""The contract of a display: which events of a running job it may show."""

from collections.abc import Mapping

from unskew.jobs.observe.batches.batch import BatchDone, Lag


class Follower:
    """Follows a running job without acting on it; a subclass overrides the events it shows."""

    def on_batch_done(self, done: BatchDone) -> None:
        """A batch is done."""

    def on_tasks_done(self) -> None:
        """Tasks of the batch under way were completed."""

    def on_idle_poll(self, lag: Lag) -> None:
        """The query asked its source for records and there were none."""

    def on_records_rejected(self, counts: Mapping[str, int]) -> None:
        """Records were rejected that no report of a batch counts, by reason."""

    def time_passed(self) -> None:
        """A fraction of a second passed."""

    def on_state_changed(self, state: str) -> None:
        """The query is in another state now: stopping, stopped, failed, starting once more."""

    def on_grouping_chosen(self, grouping: str, why: str) -> None:
        """A query starts with what `grouping: auto` has taken."""

    def on_retry(self, reason: str, seconds: float) -> None:
        """The query failed for a reason that may pass; it starts again after `seconds`."""

    def on_warning(self, text: str) -> None:
        """The query runs, and something of it is not as it should be."""
