"""What a journal has, as tests ask for it."""

from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal


def newest_state(journal: Journal, batch: int, source: int) -> Snapshot | None:
    """The newest state that `source` left before `batch`, from which it goes on."""
    return next((state for _, state in journal.states_before(batch, source)), None)
