"""The source as a streaming DataFrame with Kafka's columns, from Kafka or from files.

Where the operator works in the tasks that read (`grouping: local`), as many tasks as there are
partitions must get equal shares, or a short second wave doubles the stage. So the batch is read in
pieces, and `coalesce(partitions)` gives each task as many as any other, neighbours if the source
names no preferred executors. Kafka's `minPartitions` alone is only near the number asked for, and
`maxRecordsPerPartition` makes pieces of one size, which suits one size of batch; with it the
connector also prefers an executor for each topic partition, by which Spark's `coalesce` makes
groups up to a tenth of the batch larger than others.
"""

import json
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.readwriter import DataFrameReader
from pyspark.sql.streaming.readwriter import DataStreamReader

from unskew.config.models.source import FilesSource, KafkaSource
from unskew.config.types.secrets import reveal
from unskew.jobs.checkpoint.spark_log import SourceRange
from unskew.jobs.kafka.options import find_security_options, make_connection_options
from unskew.jobs.kafka.sizes import read_sizes
from unskew.jobs.query.pieces import choose_pieces

_SCHEMA = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"
)
_TASK_HEADROOM = 1.25
_TASK_RECORDS_MIN = 1000
_TASK_RECORDS_MAX = 250_000
# A piece of a file has at least 16 KiB.
_FILE_PIECES_A_TASK = 8
_FILE_PIECE_BYTES = 16 << 10
FETCH_WAIT = "kafka.fetch.max.wait.ms"
# The connector asks for a topic's newest offsets after each fetch. At the topic's end its consumer
# has sent one more by then, which Kafka holds for half a second by default, and the question behind
# it: each batch of a job that keeps up with its topic would take that longer, or twice that.
_FETCH_WAIT_MS = "1"
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp")
STAMPED_ON_ARRIVAL = "raw_stamped_on_arrival"
"""Is a record's timestamp the broker's, as it arrived (LogAppendTime)? No column of a user's."""
_EARLIEST = -2
# Of Spark's connector: 0 for the producer's time, 1 for the broker's.
_LOG_APPEND_TIME = "timestampType = 1"


def read(
    spark: SparkSession, source: KafkaSource | FilesSource, tasks: int | None = None
) -> DataFrame:
    """The source's records: `COLUMNS`, and whether the timestamp is that of arrival.

    They are in small pieces, to be coalesced into `tasks` equal shares, if that is given.
    """
    if isinstance(source, KafkaSource):
        return _read_kafka(spark, source, tasks)
    return _read_files(spark, source)


def read_first(spark: SparkSession, source: KafkaSource | FilesSource, count: int) -> DataFrame:
    """Read some of the records that the source has now, not as a stream."""
    if isinstance(source, KafkaSource):
        options = make_kafka_options(source, spark)
        # A batch has no limit of its own, and begins where there may be records.
        options.pop("maxOffsetsPerTrigger", None)
        if options["startingOffsets"] == "latest":
            options["startingOffsets"] = "earliest"
        return _load_kafka(spark.read, options).limit(count)
    return _select_file_columns(spark.read, source.format, [source.path]).limit(count)


def read_range(
    spark: SparkSession, source: KafkaSource | FilesSource, covered: SourceRange
) -> DataFrame:
    """Read what a batch of the stream read, cut as the stream cuts it."""
    if isinstance(source, FilesSource):
        # Their names are no patterns.
        reader = spark.read.option("__globPaths__", "false")
        return _select_file_columns(reader, source.format, covered.files)
    options = make_kafka_options(source, spark)
    for name in ("maxOffsetsPerTrigger", "subscribe", "subscribePattern"):
        options.pop(name, None)
    # A partition that the batch before did not have was read from its first record on.
    start = {
        topic: {number: covered.start.get(topic, {}).get(number, _EARLIEST) for number in ends}
        for topic, ends in covered.end.items()
    }
    options |= {
        "assign": json.dumps(
            {topic: sorted(map(int, ends)) for topic, ends in covered.end.items()}
        ),
        "startingOffsets": json.dumps(start),
        "endingOffsets": json.dumps(covered.end),
    }
    return _load_kafka(spark.read, options)


def read_static(spark: SparkSession, values: Sequence[bytes]) -> DataFrame:
    """Records with these values and nothing else of their own, not as a stream."""
    records = {"value": pa.array(values, pa.binary()), "offset": np.arange(len(values))}
    # As Arrow: for rows of Python's Spark starts a daemon of workers besides that of the operators.
    frame = spark.createDataFrame(pa.table(records)).select(
        sf.lit(None).cast("binary").alias("key"),
        "value",
        sf.lit(None).cast("string").alias("topic"),
        sf.lit(0).alias("partition"),
        "offset",
    )
    arrived = sf.current_timestamp().alias("timestamp")
    return frame.select(*COLUMNS[:-1], arrived, sf.lit(False).alias(STAMPED_ON_ARRIVAL))


def make_file_settings(tasks: int) -> Mapping[str, str]:
    """Spark's settings by which files are read in small pieces; a reader has no such options."""
    return {
        "spark.sql.files.minPartitionNum": str(tasks * _FILE_PIECES_A_TASK),
        "spark.sql.files.openCostInBytes": str(_FILE_PIECE_BYTES),
    }


def _read_kafka(spark: SparkSession, source: KafkaSource, tasks: int | None) -> DataFrame:
    return _load_kafka(spark.readStream, make_kafka_options(source, spark, tasks))


def _load_kafka(
    reader: DataFrameReader | DataStreamReader, options: Mapping[str, str]
) -> DataFrame:
    stamped = sf.expr(_LOG_APPEND_TIME).alias(STAMPED_ON_ARRIVAL)
    return reader.format("kafka").options(**options).load().select(*COLUMNS, stamped)


def make_kafka_options(
    source: KafkaSource, spark: SparkSession, tasks: int | None = None
) -> dict[str, str]:
    """The connector's options; with `tasks`, to read in pieces that make equal shares for them."""
    connection = make_connection_options(source.bootstrap_servers, source.options)
    options = {FETCH_WAIT: _FETCH_WAIT_MS, **connection}
    options["startingOffsets"] = _format_start(source.start)
    options["failOnDataLoss"] = str(source.fail_on_data_loss).lower()
    if source.subscribe:
        options["subscribe"] = ",".join(source.subscribe)
    elif source.pattern:
        options["subscribePattern"] = source.pattern
    else:
        options["assign"] = json.dumps(source.assign)
    if source.records_per_batch:
        options["maxOffsetsPerTrigger"] = str(source.records_per_batch)
    if source.split:
        cores = spark.sparkContext.defaultParallelism
        options |= _split_partitions(source, cores) if tasks is None else _cut_pieces(source, tasks)
    return options


def _split_partitions(source: KafkaSource, cores: int) -> dict[str, str]:
    """Read a large Kafka partition in several tasks: that of a hot key would be one slow task."""
    most = source.records_per_task
    if most is None:
        # Headroom, so that even Kafka partitions do not make a task more than there are cores. A
        # batch may be far below its limit, or have none: hence the limit of a task's own.
        fair = _TASK_HEADROOM * (source.records_per_batch or math.inf) / cores
        most = max(_TASK_RECORDS_MIN, math.ceil(min(fair, _TASK_RECORDS_MAX)))
    # By size alone, so that a small batch is not cut into tasks that cost more than they save.
    return {"maxRecordsPerPartition": str(most)}


def _cut_pieces(source: KafkaSource, tasks: int) -> dict[str, str]:
    """Read a batch of any size in pieces of which `tasks` tasks get equal shares."""
    topics = source.subscribe or []
    if find_security_options(reveal(source.options)):
        topics = []  # they are for Kafka's Java client
    sizes = read_sizes(topics, source.bootstrap_servers)
    options = {"minPartitions": str(choose_pieces(sizes, tasks))}
    if source.records_per_task:
        options["maxRecordsPerPartition"] = str(source.records_per_task)
    return options


def _format_start(start: object) -> str:
    if isinstance(start, str):
        return start
    return json.dumps(start)


def _read_files(spark: SparkSession, source: FilesSource) -> DataFrame:
    reader = spark.readStream
    if source.files_per_batch:
        reader = reader.option("maxFilesPerTrigger", str(source.files_per_batch))
    if source.bytes_per_batch:
        reader = reader.option("maxBytesPerTrigger", str(source.bytes_per_batch.amount))
    return _select_file_columns(reader, source.format, [source.path])


def _select_file_columns(
    reader: DataFrameReader | DataStreamReader, form: str, paths: Sequence[str]
) -> DataFrame:
    never_stamped = sf.lit(False).alias(STAMPED_ON_ARRIVAL)
    if form == "parquet":
        return _load(reader.format("parquet").schema(_SCHEMA), paths).select(
            *COLUMNS, never_stamped
        )
    lines = _load(reader.format("text"), paths)
    # A line's coordinates are its file and the start of Spark's split in it; its time the file's.
    return lines.select(
        sf.lit(None).cast("binary").alias("key"),
        sf.col("value").cast("binary").alias("value"),
        sf.col("_metadata.file_path").alias("topic"),
        sf.lit(0).alias("partition"),
        sf.col("_metadata.file_block_start").alias("offset"),
        sf.col("_metadata.file_modification_time").alias("timestamp"),
        never_stamped,
    )


def _load(reader: DataFrameReader | DataStreamReader, paths: Sequence[str]) -> DataFrame:
    if isinstance(reader, DataFrameReader):
        return reader.load(list(paths))
    (path,) = paths
    return reader.load(path)
