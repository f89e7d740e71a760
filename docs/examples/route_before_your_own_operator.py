"""Route before an operator of your own, in a batch job and in a stream.

    python docs/examples/route_before_your_own_operator.py

You have a job with a costly step in Python: `mapInArrow` over the partitions of `groupBy(user)`,
say, or of `repartition("user")`. One busy user makes one partition late, and all wait for it.

Put `route` before the step. Nothing else changes, but for one rule: the records of a key may now
meet in several partitions, so the step makes *partial results* and a cheap `groupBy` behind it adds
them up. Where a sum is exact (counts, integers, decimals, sketches; not floats), so is the total,
whatever the routing.
"""

import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew import route

PARTITIONS = 8
EVENTS = "user string, cents bigint"


def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The costly step, yours: called once a partition, with all of its rows."""
    for batch in batches:
        cents = batch["cents"]
        risk = pc.bit_wise_and(pc.multiply(cents, cents), 1023)  # think of a model here
        scored = pa.table({"user": batch["user"], "risk": risk})
        # One row for each user in this batch of rows: the partial result.
        sums = scored.group_by("user").aggregate([("risk", "sum"), ("risk", "count")])
        yield from sums.rename_columns(["user", "risk", "events"]).to_batches()


def scores(events: DataFrame, journal: str | None = None) -> DataFrame:
    """Events in, one exact total for each user out; `events` may be a stream."""
    routed = route(events, key="user", grouping="level", partitions=PARTITIONS, journal=journal)
    partials = routed.mapInArrow(score, "user string, risk bigint, events bigint")
    # The partial results are few: nothing here is skewed any more.
    return partials.groupBy("user").agg(
        sf.sum("risk").alias("risk"), sf.sum("events").alias("events")
    )


def in_a_batch(spark: SparkSession, folder: Path) -> DataFrame:
    """Over all files of a folder at once."""
    return scores(spark.read.schema(EVENTS).json(str(folder)))


def in_a_stream(spark: SparkSession, folder: Path, checkpoint: Path) -> DataFrame:
    """File after file, with what is routed remembered from batch to batch."""
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 1).json(str(folder))
    # Beside the checkpoint, so that both are moved and removed together. One folder a query.
    query = (
        scores(events, journal=f"{checkpoint}/unskew")
        .writeStream.outputMode("complete")
        .format("memory")
        .queryName("scores")
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return spark.table("scores")


def loads(frame: DataFrame) -> list[int]:
    """How many rows each partition has."""
    rows = frame.groupBy(sf.spark_partition_id().alias("partition")).count().collect()
    counts = {row["partition"]: row["count"] for row in rows}
    return [counts.get(number, 0) for number in range(PARTITIONS)]


def write_events(folder: Path) -> None:
    """Three files of events; every second event is of one user."""
    for file in range(3):
        users = ["busy" if number % 2 else f"user{number % 97}" for number in range(2000)]
        lines = [json.dumps({"user": user, "cents": 7 * at}) for at, user in enumerate(users)]
        (folder / f"{file}.json").write_text("\n".join(lines) + "\n")


def main(spark: SparkSession, folder: Path) -> None:
    """Show the loads, then the totals of both ways."""
    write_events(folder)
    events = spark.read.schema(EVENTS).json(str(folder))
    print("rows in each partition")
    print("  repartition(user):", loads(events.repartition(PARTITIONS, "user")))
    print("  route(key=user):  ", loads(route(events, key="user", partitions=PARTITIONS)))

    batch = in_a_batch(spark, folder).orderBy("user").collect()
    with tempfile.TemporaryDirectory() as checkpoint:
        stream = in_a_stream(spark, folder, Path(checkpoint)).orderBy("user").collect()
    print("the busiest user:", max(batch, key=lambda row: row.events).asDict())
    print("batch and stream agree:", batch == stream)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        session = SparkSession.builder.master("local[*]").appName("example").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        main(session, Path(made))
        session.stop()
    sys.exit(0)
