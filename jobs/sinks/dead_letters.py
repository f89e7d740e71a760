"""Refused records: from the journal, where tasks left them, to the dead letters."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.config.models.job import Job
from unskew.config.models.sink import FilesDeadLetters
from unskew.grouping.spark.journal import Journal
from unskew.jobs.sinks.registry import kafka_sink_options

_HEADERS = ("reason", "topic", "partition", "offset", "timestamp")
# The Kafka client's own limit is 1 MiB: a letter above it would end every attempt to send it.
_REQUEST_BYTES = 16 << 20


def publish(spark: SparkSession, job: Job, journal: Journal, batch: int) -> int:
    """Send a batch's refused records on, once; how many there were."""
    sent = 0
    if not journal.dead_letters_written(batch):
        # Piece by piece: of a batch whose every record is refused the driver holds a part only.
        for letters in journal.rejected(batch):
            write(spark.createDataFrame(letters), job, batch, more=sent > 0)
            sent += letters.num_rows
        if not sent:
            return 0
        # After the write: a crash in between sends them again rather than never.
        journal.mark_dead_letters_written(batch)
    # Also those that a crash left between the mark and here.
    journal.drop_rejected(batch)
    return sent


def write(letters: DataFrame, job: Job, batch: int, *, more: bool = False) -> None:
    """Write refused records: files a batch, or Kafka records with the stats as headers.

    A batch's first ones replace what an earlier attempt left; `more` follow them.
    """
    place = job.dead_letters
    if isinstance(place, FilesDeadLetters):
        folder = f"{place.path.rstrip('/')}/batch_id={batch}"
        mode = "append" if more else "overwrite"
        letters.write.mode(mode).format(place.format).save(folder)
        return
    headers = sf.array(
        *[
            sf.struct(
                sf.lit(name).alias("key"),
                sf.col(name).cast("string").cast("binary").alias("value"),
            )
            for name in _HEADERS
        ]
    )
    rows = letters.select("key", "value", headers.alias("headers"))
    options = {
        "kafka.max.request.size": str(_REQUEST_BYTES),
        **kafka_sink_options(place, job),
        "includeHeaders": "true",
    }
    rows.write.format("kafka").options(**options).save()
