"""Delta tables: their layout, and how a batch of results is added to one or merged with it.

Rows of a job whose only sink this is are written by Delta's own streaming sink, whose transaction
names query and batch. Here are the other two: a batch that several sinks share, under the same
names, so that a batch that runs again is not added again; and results that change, which replace
those of the same window and key, so that to write them again changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unskew.jobs.sinks.tables.layout import Layout

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from unskew.jobs.sinks.base import Batch

_INCOMING = "unskew_incoming"


@dataclass(frozen=True)
class DeltaTarget:
    """A Delta table that is written to."""

    path: str
    partition_by: Sequence[str]
    merges_columns: bool
    """Are columns added that the table lacks?"""


def read_delta_layout(spark: "SparkSession", path: str) -> Layout | None:
    """Read the layout of a Delta table; None if there is none yet."""
    from pyspark.errors import AnalysisException

    try:
        rows = spark.read.format("delta").load(path)
    except AnalysisException:
        return None
    quoted = path.replace("`", "``")
    detail = spark.sql(f"DESCRIBE DETAIL delta.`{quoted}`").collect()[0]
    return Layout.from_rows(rows, detail["partitionColumns"])


def append(rows: "DataFrame", target: DeltaTarget, batch: "Batch") -> None:
    """Add a batch's rows, if that was not done before."""
    from unskew.jobs.checkpoint.spark_log import read_query_id

    options = {
        # Not the job's name: a new checkpoint counts its batches from 0, and Delta would skip them.
        "txnAppId": read_query_id(batch.job),
        "txnVersion": str(batch.id),
        "mergeSchema": str(target.merges_columns).lower(),
    }
    writer = rows.write.format("delta").mode("append").options(**options)
    writer.partitionBy(*target.partition_by).save(target.path)


def merge(rows: "DataFrame", target: DeltaTarget, key: Sequence[str]) -> None:
    """Update the results of the windows and keys that the table has, and insert the others."""
    spark = rows.sparkSession
    if read_delta_layout(spark, target.path) is None:
        empty = spark.createDataFrame([], rows.schema).write.format("delta").mode("append")
        empty.partitionBy(*target.partition_by).save(target.path)
    rows.createOrReplaceTempView(_INCOMING)
    evolution = "WITH SCHEMA EVOLUTION " if target.merges_columns else ""
    path = target.path.replace("`", "``")
    same = " AND ".join(f"old.`{name}` <=> new.`{name}`" for name in key)
    spark.sql(
        f"MERGE {evolution}INTO delta.`{path}` old USING {_INCOMING} new ON {same}"
        " WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
    )
