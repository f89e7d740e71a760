"""Refused records: from the journal, where tasks left them, to the dead letters."""

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from config.models.job import Job
from config.models.sink import FilesDeadLetters
from grouping.journal import Journal
from jobs.sinks import kafka_sink_options

_HEADERS = ("reason", "topic", "partition", "offset", "timestamp")


def publish(spark: SparkSession, job: Job, journal: Journal, batch: int) -> int:
    """Send a batch's refused records on, once; how many there were."""
    tables = list(journal.bad(batch))
    if not tables or journal.published(batch):
        return 0
    letters = pa.concat_tables(tables)
    write(spark.createDataFrame(letters), job, batch)
    # After the write: a crash in between sends them again rather than never.
    journal.mark_published(batch)
    return int(letters.num_rows)


def write(letters: DataFrame, job: Job, batch: int) -> None:
    """Write refused records: files a batch, or Kafka records with the facts as headers."""
    place = job.dead_letters
    if isinstance(place, FilesDeadLetters):
        folder = f"{place.path.rstrip('/')}/batch_id={batch}"
        letters.write.mode("overwrite").format(place.format).save(folder)
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
    options = {**kafka_sink_options(place, job), "includeHeaders": "true"}
    rows.write.format("kafka").options(**options).save()
