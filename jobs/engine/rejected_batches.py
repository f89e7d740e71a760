"""Dead letters that are read again from the source.

With `grouping: none` there is no partial stage that could set rejected records apart. The query
counts them, and a batch that has some is read again, by the offsets in the checkpoint's log, once
it is committed. What was read so is marked in the journal, so that a start goes on after the mark.
Of other groupings these are the batches with rejected records that are too large for the journal.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from unskew.jobs.checkpoint.files import list_names
from unskew.jobs.checkpoint.spark_log import SourceRange, read_source_range
from unskew.jobs.observe.batches.rejected_samples import SAMPLES
from unskew.jobs.query.pipeline import REJECTED_RECORDS, Pipeline
from unskew.jobs.sinks import dead_letters

_FORMER_QUERY = "unskew-refused"
"""In a checkpoint of an earlier version: the folder of the query that read rejected records."""


class RejectedBatches:
    """Writes the rejected records of each committed batch, at least once."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._journal = pipeline.journal
        self._job = pipeline.job
        self._written: int | None = None
        self._first_rows: tuple[int, list[dict[str, Any]]] = (-1, [])
        self._first = _count_former_batches(self._job.checkpoint)

    def write(
        self, spark: SparkSession, newest: int, progress: Mapping[str, Any] | None = None
    ) -> Mapping[str, int]:
        """Write those of all batches up to `newest` that are not written; their number by reason.

        `progress` is Spark's of the newest batch, if it is known.
        """
        counts: Counter[str] = Counter()
        for batch in range(self._find_written() + 1, newest + 1):
            if batch < newest or not _has_none(progress):
                counts.update(self.write_batch(spark, batch))
            self._journal.mark_dead_letters_written(batch)
            self._written = batch
        return counts

    def write_batch(self, spark: SparkSession, batch: int) -> Mapping[str, int]:
        """Write all rejected records of one batch; their number by reason."""
        covered = read_source_range(self._job, batch)
        return {} if covered is None else self._write_range(spark, batch, covered)

    def first_of(self, batch: int) -> list[dict[str, Any]]:
        """The first records that `batch` rejected, if it is the newest that was written."""
        of, rows = self._first_rows
        return rows if of == batch else []

    def _find_written(self) -> int:
        if self._written is None:
            marked = filter(
                self._journal.are_dead_letters_written, reversed(self._journal.batches())
            )
            self._written = next(marked, -1)
        return self._written

    def _write_range(
        self, spark: SparkSession, batch: int, covered: SourceRange
    ) -> Mapping[str, int]:
        self._journal.check_owner()
        cached = self._pipeline.build_rejected(spark, covered).persist()
        try:
            counts = _count_by_reason(cached)
            if counts:
                # Not under the number of a batch of the query of an earlier version.
                dead_letters.write_dead_letters(cached, self._job, self._first + batch)
                self._first_rows = batch, [row.asDict() for row in cached.limit(SAMPLES).collect()]
        finally:
            cached.unpersist()
        return counts


def _has_none(progress: Mapping[str, Any] | None) -> bool:
    """Does Spark's progress say that no record was rejected? Not if the count is missing."""
    observed = (progress or {}).get("observedMetrics", {}).get(REJECTED_RECORDS)
    return observed is not None and observed["count"] == 0


def _count_by_reason(rejected: DataFrame) -> Mapping[str, int]:
    rows = rejected.groupBy("reason").count().collect()
    return {row["reason"]: int(row["count"]) for row in rows}


def _count_former_batches(checkpoint: str) -> int:
    names = list_names(f"{checkpoint.rstrip('/')}/{_FORMER_QUERY}/offsets")
    return max((int(name) + 1 for name in names if name.isdecimal()), default=0)
