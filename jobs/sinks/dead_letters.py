"""Rejected records: from the journal, where tasks left them, to the dead letters."""

from pyspark.sql import DataFrame, SparkSession

from unskew.config.models.job import Job
from unskew.grouping.spark.journal import Journal
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.registry import make_dead_letter_target


def publish(spark: SparkSession, job: Job, journal: Journal, batch: int) -> int:
    """Send a batch's rejected records on, once; how many there were."""
    sent = 0
    journal.check_owner()
    if not journal.are_dead_letters_written(batch):
        # Piece by piece: of a batch whose every record is rejected the driver holds a part only.
        for records in journal.rejected(batch):
            write_dead_letters(spark.createDataFrame(records), job, batch, more=sent > 0)
            sent += records.num_rows
        if not sent:
            return 0
        # After the write: a crash in between sends them again rather than never.
        journal.mark_dead_letters_written(batch)
    # Also those that a crash left between the mark and here.
    journal.drop_rejected(batch)
    return sent


def write_dead_letters(records: DataFrame, job: Job, batch: int, *, more: bool = False) -> None:
    """Write a batch's rejected records to the job's dead letters."""
    make_dead_letter_target(job).write(records, Batch(batch, job, records.sparkSession), more=more)
