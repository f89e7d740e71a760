"""Totals that a sink cannot take: into the journal, and from there to the dead letters."""

import json
from typing import TYPE_CHECKING

from unskew.jobs.sinks.base import Batch, UntakenTotal

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew.grouping.spark.journal import Journal

TOTAL_NOT_TAKEN = "total_not_taken"
_REMEMBERED = 100_000


class UntakenTotals:
    """Keeps each window and key that a sink could not take, once in the life of the process.

    A total that grows is written again by every batch, and refused as often.
    """

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self._kept: set[tuple[str, str]] = set()

    def keep(self, batch: Batch) -> None:
        """Write a batch's new ones to the journal, from which dead letters are published."""
        new = {(total.sink, total.key): total for total in batch.untaken}
        totals = [total for name, total in new.items() if name not in self._kept]
        if not totals:
            return
        self._journal.write_untaken(batch.id, dead_letters_of_totals(totals))
        if len(self._kept) + len(totals) > _REMEMBERED:
            self._kept.clear()
        self._kept.update((total.sink, total.key) for total in totals)


def dead_letters_of_totals(totals: list[UntakenTotal]) -> "pa.Table":
    """Dead letters as tables of rejected records are, without a record's coordinates."""
    import pyarrow as pa

    values = [{"sink": total.sink, "why": total.why} for total in totals]
    columns = {
        "reason": (pa.string(), [TOTAL_NOT_TAKEN] * len(totals)),
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
