"""Totals that a sink rejects: into the journal, and from there to the dead letters."""

import hashlib
import json
from typing import TYPE_CHECKING

from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.whole_files import read_whole, write_whole
from unskew.jobs.sinks.base import Batch, RejectedTotal

if TYPE_CHECKING:
    import pyarrow as pa

    from unskew.grouping.spark.journal import Journal

TOTAL_REJECTED = "total_not_taken"
"""The reason as dead letters have it that were written before the name `rejected`."""
_REMEMBERED = 100_000
_FILE = "totals-not-taken"


class RejectedTotals:
    """Keeps each window and key that a sink rejected, once.

    A total that grows is written again by every batch, and rejected as often. Which ones are known
    is in a file of the journal, so that a later start knows them too. A batch's are written there
    with the next batch, when their dead letters cannot be lost any more: those of the last batch
    before an end may come twice.
    """

    def __init__(self, journal: "Journal") -> None:
        self._journal = journal
        self._known: set[str] | None = None
        self._unsaved = False

    def keep(self, batch: Batch) -> None:
        """Write a batch's new ones to the journal, from which dead letters are published."""
        if self._known is None:
            self._known = _read_known(self._journal)
        if self._unsaved:
            _write_known(self._journal, self._known)
            self._unsaved = False
        new = {_digest(total): total for total in batch.rejected_totals}
        totals = [total for digest, total in new.items() if digest not in self._known]
        if not totals:
            return
        self._journal.write_rejected_totals(batch.id, make_dead_letters(totals))
        if len(self._known) + len(totals) > _REMEMBERED:
            self._known.clear()
        self._known.update(new)
        self._unsaved = True


def _digest(total: RejectedTotal) -> str:
    text = json.dumps([total.sink, total.key])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _read_known(journal: "Journal") -> set[str]:
    """Read those of earlier starts; without them, or from a damaged file, letters come again."""
    system, root = open_location(journal.location)
    try:
        read = json.loads(read_whole(system, f"{root}/{_FILE}") or b"[]")
        return set(map(str, read))
    except (ValueError, TypeError, RecursionError):
        return set()


def _write_known(journal: "Journal", known: set[str]) -> None:
    journal.check_owner()
    system, root = open_location(journal.location)
    write_whole(system, f"{root}/{_FILE}", json.dumps(sorted(known)).encode())


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
