"""Route before a partitioned table, in a batch job and in a stream: few files, no slow writer.

    python docs/examples/route_before_a_table.py

A table is partitioned by `country`, and half of the rows are of one. Partitioned by hash, all of
those are written by one task, and the batch waits for it; without a shuffle, every task writes a
file for every country. `route` gives each writer the same number of rows: only the largest
countries have more than one file. Delta works the same way, with `.format("delta")`.
"""

import json
import sys
import tempfile
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew import route

WRITERS = 8
EVENTS = "country string, cents bigint"


def write_batch(events: DataFrame, table: Path, how: str = "parquet") -> None:
    """All of the rows at once."""
    routed = route(events, key="country", grouping="level", partitions=WRITERS)
    rows = routed.drop("partition_key")
    rows.write.partitionBy("country").format(how).mode("append").save(str(table))


def write_stream(events: DataFrame, table: Path, checkpoint: Path, how: str = "parquet") -> None:
    """Batch after batch, each row once: the sink is Spark's own."""
    routed = route(events, key="country", partitions=WRITERS, journal=f"{checkpoint}/unskew")
    rows = routed.drop("partition_key")
    writer = rows.writeStream.partitionBy("country").format(how).option("path", str(table))
    writer = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
    writer.start().awaitTermination()


def files(table: Path) -> int:
    """How many files of data the table's folder has."""
    return sum(1 for _ in table.rglob("part-*.parquet"))


def rows_of_writers(frame: DataFrame) -> list[int]:
    """How many rows each partition has."""
    rows = frame.groupBy(sf.spark_partition_id().alias("writer")).count().collect()
    counts = {row["writer"]: row["count"] for row in rows}
    return [counts.get(number, 0) for number in range(WRITERS)]


def write_events(folder: Path) -> None:
    """Three files of events; every second event is of one country."""
    folder.mkdir()
    for file in range(3):
        countries = ["big" if number % 2 else f"c{number % 40}" for number in range(2000)]
        lines = [json.dumps({"country": name, "cents": at}) for at, name in enumerate(countries)]
        (folder / f"{file}.json").write_text("\n".join(lines) + "\n")


def main(spark: SparkSession, folder: Path) -> None:
    """Show rows and files of both ways, then read the tables."""
    write_events(folder / "in")
    events = spark.read.schema(EVENTS).json(str(folder / "in"))
    print("rows of each writer")
    print("  repartition(country):", rows_of_writers(events.repartition(WRITERS, "country")))
    routed = route(events, key="country", partitions=WRITERS)
    print("  route(key=country):  ", rows_of_writers(routed))

    write_batch(events, folder / "batch")
    arriving = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1)
    write_stream(arriving.json(str(folder / "in")), folder / "stream", folder / "checkpoint")
    print("files:", files(folder / "batch"), files(folder / "stream"))
    for name in ("batch", "stream"):
        table = spark.read.parquet(str(folder / name))
        print(name, table.count(), table.where("country = 'big'").count())


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        session = SparkSession.builder.master("local[*]").appName("example").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        main(session, Path(made))
        session.stop()
    sys.exit(0)
