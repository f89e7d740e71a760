"""Dead letters of plain Spark.

With `grouping: none` there is no partial stage that could set rejected records apart, so a second
query reads the source again and keeps only those. Its progress is in a folder of its own inside the
checkpoint.
"""

from collections import Counter
from collections.abc import Mapping
from threading import Lock

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from unskew.jobs.query.pipeline import Pipeline, set_trigger
from unskew.jobs.sinks import dead_letters

FOLDER = "unskew-refused"  # as existing checkpoints have it
SUFFIX = "-dead-letters"
"""Suffix of the query's name."""


class DeadLetterQuery:
    """The second query and what it counted."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._counts: Counter[str] = Counter()
        self._lock = Lock()

    def start(self, spark: SparkSession) -> StreamingQuery:
        """Start it with the job's trigger."""
        job = self._pipeline.job
        writer = self._pipeline.build_rejected(spark).writeStream.queryName(f"{job.name}{SUFFIX}")
        writer = writer.option("checkpointLocation", f"{job.checkpoint.rstrip('/')}/{FOLDER}")
        return set_trigger(writer.foreachBatch(self._write), job).start()

    def take_counts(self) -> Mapping[str, int]:
        """Rejected records by reason since the last call."""
        with self._lock:
            counts, self._counts = dict(self._counts), Counter()
        return counts

    def _write(self, rejected: DataFrame, batch: int) -> None:
        self._pipeline.journal.check_owner()
        kept = rejected.persist()
        try:
            counts = {
                row["reason"]: int(row["count"]) for row in kept.groupBy("reason").count().collect()
            }
            if counts:
                dead_letters.write_dead_letters(kept, self._pipeline.job, batch)
        finally:
            kept.unpersist()
        with self._lock:
            self._counts.update(counts)
