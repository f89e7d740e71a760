"""Totals that a sink rejects: into the journal, and from there to the dead letters."""

import json
from typing import TYPE_CHECKING

from unskew.jobs.sinks.base import Batch, RejectedTotal

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew.grouping.spark.journal import Journal

TOTAL_REJECTED = "total_not_taken"
"""The reason as dead letters have it that were written before the name `rejected`."""
_REMEMBERED = 100_000


class RejectedTotals:
    """Keeps each window and key that a sink rejected, once in the life of the process.

    A total that grows is written again by every batch, and rejected as often.
    """

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self._kept: set[tuple[str, str]] = set()

    def keep(self, batch: Batch) -> None:
        """Write a batch's new ones to the journal, from which dead letters are published."""
        new = {(total.sink, total.key): total for total in batch.rejected_totals}
        totals = [total for name, total in new.items() if name not in self._kept]
        if not totals:
            return
        self._journal.write_rejected_totals(batch.id, make_dead_letters(totals))
        if len(self._kept) + len(totals) > _REMEMBERED:
            self._kept.clear()
        self._kept.update((total.sink, total.key) for total in totals)


def make_dead_letters(totals: list[RejectedTotal]) -> "pa.Table":
    """Make dead letters with the columns of rejected records, without a record's coordinates."""
    import pyarrow as pa

    values = [{"sink": total.sink, "why": total.reason} for total in totals]
    columns = {
        "reason": (pa.string(), [TOTAL_REJECTED] * len(totals)),
        "key": (pa.binary(), [total.key.encode() for total in totals]),
        "value": (
            pa.binary(),
            [json.dumps(value, ensure_ascii=False).encode() for value in values],
        ),
        "topic": (pa.string(), [None] * len(totals)),
        "partition": (pa.int32(), [None] * len(totals)),
        "offset": (pa.int64(), [None] * len(totals)),
        "timestamp": (pa.timestamp("us", "UTC"), [None] * len(totals)),
    }
    return pa.table({name: pa.array(values, kind) for name, (kind, values) in columns.items()})
