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
from unskew.jobs.operators.base import FILTERED_RECORDS, OBSERVED

_KIND = "filtered records"
_FILE = "filtered.records"


def keep_filtered(journal: Journal, done: BatchDone) -> None:
    """Write the count of a batch with rows, if the job has a `where`."""
    if done.filters and done.has_rows:
        count = {"count": np.array([done.filtered_records], np.int64)}
        journal.write(done.batch, _FILE, Snapshot(_KIND, 1, 1, 0, count).to_bytes())


def read_filtered(journal: Journal, batch: int) -> dict[str, Any]:
    """Read the count as Spark's progress has it; empty if it is not known."""
    with suppress(SnapshotError, OSError, pa.ArrowException):
        snapshot = journal.read(batch, _FILE)
        if snapshot is not None and snapshot.grouping == _KIND and snapshot.version == 1:
            count = int(snapshot.arrays["count"][0])
            return {"observedMetrics": {OBSERVED: {FILTERED_RECORDS: count}}}
    return {}
