"""What Spark alone counts of a batch, kept in the journal: its progress is not kept.

How many records were read, and how many were filtered. Nothing depends on it but displays.
"""

from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa

from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.operators.base import FILTERED_BY_RESULT, FILTERED_RECORDS, OBSERVED

_KIND = "filtered records"
_FILE = "filtered.records"  # as existing checkpoints have it
_FILTERED = "count"
_READ = "read"


def keep_spark_counts(journal: Journal, done: BatchDone) -> None:
    """Write the counts of a batch with rows."""
    if not done.has_rows:
        return
    counts = {_READ: done.source_records}
    if done.filters:
        counts[_FILTERED] = done.filtered_records
        counts |= {f"{FILTERED_BY_RESULT}{name}": n for name, n in done.filtered_by_result.items()}
    arrays = {name: np.array([count], np.int64) for name, count in counts.items()}
    journal.write(done.batch, _FILE, Snapshot(_KIND, 1, 1, 0, arrays).to_bytes())


def read_spark_counts(journal: Journal, batch: int) -> dict[str, Any]:
    """Read the counts as Spark's progress has them; without those that are not known."""
    with suppress(SnapshotError, OSError, pa.ArrowException):
        snapshot = journal.read(batch, _FILE)
        if snapshot is not None and snapshot.grouping == _KIND and snapshot.version == 1:
            counts = {name: int(array[0]) for name, array in snapshot.arrays.items()}
            read = {"numInputRows": counts.pop(_READ)} if _READ in counts else {}
            if _FILTERED in counts:
                counts[FILTERED_RECORDS] = counts.pop(_FILTERED)
                return {**read, "observedMetrics": {OBSERVED: counts}}
            return read
    return {}
