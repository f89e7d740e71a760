"""What `compare --table` says of Spark's own ways, beside the files that Spark writes."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.grouping.family.members import zipf_keys
from unskew.grouping.base import Int64s
from unskew.grouping.simulation.loads import KeyBatch
from unskew.jobs.commands.prediction.table_writers import Writers, predict_writers
from unskew.jobs.engine.session import change_settings

pytestmark = [pytest.mark.spark, pytest.mark.slow]

RECORDS, VALUES, TASKS, WRITERS = 40_000, 300, 4, 8
ROW_BYTES = 133
"""What a row takes in the shuffle, compressed; so a writer's share is the advisory size."""
SET_AS_A_USER_WOULD = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": str(RECORDS * ROW_BYTES // WRITERS),
    # By default none is smaller than 1 MiB, which is more than a writer's share here.
    "spark.sql.adaptive.coalescePartitions.minPartitionSize": "1",
}
"""AQE, with a writer's share as the size of a partition."""
Shuffle = Callable[[DataFrame], DataFrame]
SHUFFLES: dict[str, Shuffle] = {
    "hash": lambda rows: rows.repartition(WRITERS, "value"),
    "REBALANCE": lambda rows: rows.hint("rebalance", "value"),
    "none": lambda rows: rows,
}


@pytest.mark.parametrize("z", [0.0, 0.8, 1.4])
def test_spark_writes_what_was_predicted(z: float, spark: SparkSession, tmp_path: Path) -> None:
    hashes = zipf_keys(RECORDS, z, distinct=VALUES, seed=5)
    predictions = predict_writers([KeyBatch.from_hashes(hashes)], WRITERS, TASKS)
    predicted = {each.way: each for each in predictions}
    rows = rows_in_tasks(spark, hashes.view(np.int64))
    made: dict[str, Writers] = {}
    with change_settings(spark, SET_AS_A_USER_WOULD):
        for way, shuffle in SHUFFLES.items():
            writer = shuffle(rows).write.partitionBy("value")
            writer.parquet(str(tmp_path / way))
            made[way] = read_writers(way, tmp_path / way)
    # Spark's hash of a BIGINT is known, so these are not alike but equal.
    assert made["hash"] == predicted["hash"]
    assert made["none"] == predicted["none"]
    # REBALANCE goes by bytes, which Spark knows of each block to a tenth.
    spread, guess = made["REBALANCE"], predicted["REBALANCE"]
    assert spread.files == pytest.approx(guess.files, rel=0.02)
    assert spread.most_files == pytest.approx(guess.most_files, rel=0.1)
    assert spread.slowest_over_mean == pytest.approx(guess.slowest_over_mean, abs=0.1)


def rows_in_tasks(spark: SparkSession, values: Int64s) -> DataFrame:
    """Rows that as many tasks have, one behind the other."""

    def add_values(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            ids = batch.column(0)
            taken = pa.array(values[ids.to_numpy()])
            yield pa.RecordBatch.from_arrays([ids, taken], ["id", "value"])

    rows = spark.range(0, RECORDS, 1, TASKS).mapInArrow(add_values, "id BIGINT, value BIGINT")
    return rows.select("value", sf.sha2(sf.col("id").cast("string"), 512).alias("payload"))


def read_writers(way: str, table: Path) -> Writers:
    """What the files say of their writers, whose numbers are in their names."""
    rows: Counter[int] = Counter()
    files: Counter[int] = Counter()
    for file in table.rglob("part-*.parquet"):
        writer = int(file.name.split("-")[1])
        files[writer] += 1
        rows[writer] += pq.read_metadata(file).num_rows
    assert rows.total() == RECORDS
    writers = TASKS if way == "none" else WRITERS
    slowest = max(rows.values()) * writers / RECORDS
    return Writers(way, files.total(), RECORDS / files.total(), max(files.values()), slowest)
