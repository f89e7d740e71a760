"""`whole` in a real stream: a key's rows of a batch are in one partition from all sources."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.route import route

pytestmark = pytest.mark.spark

PARTITIONS, SOURCES, BATCHES = 6, 3, 3
KEYS = np.repeat(np.arange(300), np.rint(900 / np.arange(1, 301) ** 0.8).astype(int))


@pytest.fixture
def one_task_a_file(spark: SparkSession) -> Iterator[None]:
    name = "spark.sql.files.openCostInBytes"
    before = spark.conf.get(name)
    spark.conf.set(name, str(spark.conf.get("spark.sql.files.maxPartitionBytes")).rstrip("b"))
    yield
    spark.conf.set(name, str(before))


def write_batch(folder: Path, batch: int) -> None:
    """The same keys in every batch, dealt to the files in another way."""
    shuffled = np.random.default_rng(batch).permutation(KEYS)
    for source in range(SOURCES):
        table = pa.table({"key": shuffled[source::SOURCES]})
        pq.write_table(table, folder / f"{batch}-{source}.parquet")


@pytest.mark.slow
def test_keys_stay_whole_over_all_sources_and_the_second_batch_is_balanced(
    spark: SparkSession, tmp_path: Path, one_task_a_file: None
) -> None:
    for name in ("in", "journal"):
        (tmp_path / name).mkdir()
    seen: list[Counter[tuple[int, int]]] = []

    def collect(frame: DataFrame, batch: int) -> None:
        counted = frame.groupBy("key", "at").count().collect()
        seen.append(Counter({(row["key"], row["at"]): row["count"] for row in counted}))

    lines = spark.readStream.schema("key long").parquet(str(tmp_path / "in"))
    routed = route(
        lines, key="key", grouping="whole", partitions=PARTITIONS, journal=tmp_path / "journal"
    )
    for batch in range(BATCHES):
        write_batch(tmp_path / "in", batch)
        query = (
            routed.withColumn("at", sf.spark_partition_id())
            .writeStream.foreachBatch(collect)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    over_mean = []
    for rows in seen:
        assert len(rows) == len({key for key, _ in rows}) == 300
        loads: Counter[int] = Counter()
        for (_, partition), count in rows.items():
            loads[partition] += count
        assert loads.total() == KEYS.size
        over_mean.append(max(loads.values()) * PARTITIONS / KEYS.size)
    journal = Journal(str(tmp_path / "journal"))
    assert [len(journal.states(batch)) for batch in range(BATCHES)] == [SOURCES] * BATCHES
    assert over_mean[0] > 1.2
    assert max(over_mean[1:]) <= 1.03
