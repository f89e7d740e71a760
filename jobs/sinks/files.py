"""Results and dead letters as files, a folder a batch."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from unskew.config.models.base import Location
from unskew.config.models.sink import Identity
from unskew.config.rules.folders import normal
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.jobs.sinks.base import Batch, DeadLetters, Sink, Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from unskew.config.models.job import Job


class FilesTarget(Target):
    """A folder with a folder for each batch: written again by a replay, that is replaced."""

    path: Location = Field(examples=["/data/word_counts"])
    """The folder, a path or a URI; each batch is a folder `batch_id=N` in it. A new checkpoint
    counts from 0, and so needs a folder of its own."""

    def identity(self) -> Identity:
        return Identity("path", (normal(self.path),))

    def folders(self) -> Mapping[str, str]:
        return {"path": self.path}

    def make_folder_name(self, batch: Batch) -> str:
        """Name the folder that a batch is written to."""
        return f"{self.path.rstrip('/')}/batch_id={batch.id}"


class FilesSink(FilesTarget, Sink):
    """Writes files; needs `merge.output: append`.

    Complete windows as files, each exactly once.
    """

    format: Literal["parquet", "json"] = "parquet"
    """The files' format."""

    @agrees_with("merge")
    def holds_final_results(self, merge: Any) -> Iterator[Contradiction]:
        """Files need `merge.output: append`: a row in a file cannot be updated."""
        if merge.output != "append":
            yield Contradiction(
                ("type",),
                f"files contradicts merge.output {merge.output}: a row in a file cannot be updated",
                "write merge.output: append, or another sink",
            )

    def write(self, results: "DataFrame", batch: Batch) -> None:
        results.write.mode("overwrite").format(self.format).save(self.make_folder_name(batch))


class FilesDeadLetters(FilesTarget, DeadLetters):
    """Writes rejected records to files.

    Rejected records as files.
    """

    path: Location = Field(examples=["/data/dead_letters"])
    """The folder, a path or a URI; each batch is a folder `batch_id=N` in it. A new checkpoint
    counts from 0, and so needs a folder of its own."""
    format: Literal["parquet", "json"] = "json"
    """The files' format."""

    def write(self, records: "DataFrame", batch: Batch, *, more: bool = False) -> None:
        mode = "append" if more else "overwrite"
        records.write.mode(mode).format(self.format).save(self.make_folder_name(batch))

    def read(self, job: "Job") -> Iterator[Mapping[str, Any]]:
        from unskew.jobs.sinks.stored_dead_letters import read_folder

        return read_folder(self.path)
