"""Rejected records: from the journal, where tasks left them, to the dead letters."""

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from unskew.config.models.job import Job
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.rejected_file import RECORDS_LEFT
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.registry import make_dead_letter_target


def publish(
    spark: SparkSession,
    job: Job,
    journal: Journal,
    batch: int,
    write_again: Callable[[int], int] = lambda _: 0,
) -> int:
    """Send a batch's rejected records on, once; how many there were.

    If some are only in the source, `write_again` reads and writes all that the batch rejected
    there, and says how many these are: 0 if it cannot know, and then what is kept is sent.
    """
    sent = 0
    journal.check_owner()
    if not journal.are_dead_letters_written(batch):
        if journal.has(batch, RECORDS_LEFT):
            sent = write_again(batch)
        kept = journal.rejected_totals(batch) if sent else journal.rejected(batch)
        # Piece by piece: of a batch whose every record is rejected the driver holds a part only.
        for records in kept:
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
