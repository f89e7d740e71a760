"""What a batch added to a table, by writer: the partition whose task wrote it."""

from contextlib import suppress
from dataclasses import dataclass

import pyarrow as pa

from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal

_KIND = "written files"


@dataclass(frozen=True)
class WrittenFiles:
    """The files of a batch; arrays have one entry a writer."""

    files: Int64s
    bytes: Int64s
    seconds: Float64s | None = None
    """The run time of each writer's task; None if Spark did not say in time."""

    @property
    def bytes_a_file(self) -> float | None:
        """The mean size of the batch's files; None without any."""
        files = int(self.files.sum())
        return float(self.bytes.sum()) / files if files else None

    def to_snapshot(self) -> Snapshot:
        """Make a snapshot for the journal."""
        arrays: dict[str, Int64s | Float64s] = {"files": self.files, "bytes": self.bytes}
        if self.seconds is not None:
            arrays["seconds"] = self.seconds
        return Snapshot(_KIND, 1, self.files.size, 0, arrays)


def read_written_files(journal: Journal, batch: int) -> WrittenFiles | None:
    """Read what a batch wrote; None if that is not known. Nothing depends on it but displays."""
    with suppress(SnapshotError, OSError, pa.ArrowException):
        snapshot = journal.read_written_files(batch)
        if snapshot is not None and snapshot.grouping == _KIND and snapshot.version == 1:
            return WrittenFiles(**snapshot.arrays)
    return None
