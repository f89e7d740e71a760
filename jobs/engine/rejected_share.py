"""Stopping a job that rejects too many of its records, where the job asks for that."""

from collections import Counter
from collections.abc import Mapping

from unskew.config.errors import ExternalError
from unskew.config.models.job import Job
from unskew.jobs.sinks.registry import make_dead_letter_target

RECORDS_MIN = 1000
"""Fewer records say too little: batches are added up until they have this many."""


class RejectedShare:
    """The rejected records of the newest batches, against `dead_letters.max_share`."""

    def __init__(self, job: Job) -> None:
        self._most = make_dead_letter_target(job).max_share
        self._records = 0
        self._rejected: Counter[str] = Counter()

    def add(self, records: int, rejected: Mapping[str, int]) -> None:
        """Count a batch's records, and those that were rejected; an ExternalError if too many."""
        if self._most is None:
            return
        if records and self._records >= RECORDS_MIN:
            self._records = 0
            self._rejected.clear()
        self._records += records
        self._rejected.update(rejected)
        share = self._rejected.total() / max(1, self._records)
        if self._records >= RECORDS_MIN and share > self._most:
            raise ExternalError(self._describe(share, self._most))

    def _describe(self, share: float, most: float) -> str:
        ((reason, count),) = self._rejected.most_common(1)
        return (
            f"dead_letters.max_share: {share:.1%} of the last {self._records:,} records were"
            f" rejected, more than {most:.1%} (most often {reason}: {count:,}); mend the producer"
            " or the job file, and start the job again: it goes on from its checkpoint"
        )
