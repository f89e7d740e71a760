"""How users spread rows over the writers of a partitioned table: Spark's own ways, and Delta's."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.jobs.engine.session import change_settings

Shuffle = Callable[[DataFrame, int], DataFrame]
BY_HAND: Mapping[str, Shuffle | None] = {
    "no shuffle": lambda rows, _: rows,
    "repartition(col)": lambda rows, writers: rows.repartition(writers, "country"),
    "repartition(n, col, salt)": lambda rows, writers: rows.repartition(
        writers, "country", sf.pmod(sf.xxhash64("number"), sf.lit(4))
    ),
    "REBALANCE": lambda rows, _: rows.hint("rebalance", "country"),
    "Delta's optimized write": None,
}
"""By the number of writers; None: an option of the table's own writer."""
_ROW_BYTES = 130
"""About what a row takes in a shuffle."""
_MEGABYTE = 2**20


def set_as_a_user_would(
    spark: SparkSession, name: str, records: int, writers: int
) -> AbstractContextManager[None]:
    """Set the sizes that a user would choose for REBALANCE and Delta's optimized write.

    It is the share of a writer.
    """
    share = records * _ROW_BYTES // writers
    changes = {
        "REBALANCE": {
            "spark.sql.shuffle.partitions": "200",
            "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(share),
        },
        "Delta's optimized write": {
            # Delta takes whole megabytes, and with none makes a task of every block.
            "spark.databricks.delta.optimizeWrite.binSize": f"{max(1, round(share / _MEGABYTE))}m",
        },
    }.get(name, {})
    return change_settings(spark, changes)
