"""How many records of a batch were filtered, kept in the journal: Spark's progress is not kept.

Nothing depends on it but displays.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.jobs.observe.batch import BatchDone
from unskew.jobs.operators.base import FILTERED_BY_RESULT, FILTERED_RECORDS, OBSERVED

_KIND = "filtered records"
_FILE = "filtered.records"


def keep_filtered(journal: Journal, done: BatchDone) -> None:
    """Write the counts of a batch with rows, if the job or a result of it has a `where`."""
    if done.filters and done.has_rows:
        counts = {"count": done.filtered_records}
        counts |= {f"{FILTERED_BY_RESULT}{name}": n for name, n in done.filtered_by_result.items()}
        arrays = {name: np.array([count], np.int64) for name, count in counts.items()}
        journal.write(done.batch, _FILE, Snapshot(_KIND, 1, 1, 0, arrays).to_bytes())


def read_filtered(journal: Journal, batch: int) -> dict[str, Any]:
    """Read the counts as Spark's progress has them; empty if they are not known."""
    with suppress(SnapshotError, OSError, pa.ArrowException):
        snapshot = journal.read(batch, _FILE)
        if snapshot is not None and snapshot.grouping == _KIND and snapshot.version == 1:
            counts = {name: int(array[0]) for name, array in snapshot.arrays.items()}
            counts[FILTERED_RECORDS] = counts.pop("count")
            return {"observedMetrics": {OBSERVED: counts}}
    return {}
