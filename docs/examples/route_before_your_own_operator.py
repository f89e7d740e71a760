"""Route before an operator of your own, in a batch job and in a stream.

    python docs/examples/route_before_your_own_operator.py

You have a job with a costly step in Python: `mapInArrow` over the partitions of `groupBy(user)`,
say, or of `repartition("user")`. One busy user makes one partition late, and all wait for it.

The first thing to try is the step in the tasks that read, with no shuffle before it: its partial
results are few, and a cheap `groupBy` behind it adds them up. That is all you need, unless a task
pays for each user that it meets. Here it loads a profile, and nearly every task loads nearly every
user's. Then put `route` before the step: every partition has the same number of events, and each
user but the busiest is met in one of them.

In both ways the records of a key may meet in several partitions. Where a sum is exact (counts,
integers, decimals, sketches; not floats), so is the total, whatever the routing.
"""

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew import route

PARTITIONS = 8
EVENTS = "user string, cents bigint"
PROFILE_SECONDS = 0.001
EVENT_SECONDS = 0.0002


def score(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The costly step, yours: called once a partition, with all of its rows."""
    loaded: set[str] = set()
    for batch in batches:
        new = set(batch["user"].to_pylist()) - loaded
        loaded |= new
        # Think of a store of profiles, and of a model.
        time.sleep(PROFILE_SECONDS * len(new) + EVENT_SECONDS * batch.num_rows)
        risk = pc.bit_wise_and(pc.multiply(batch["cents"], batch["cents"]), 1023)
        scored = pa.table({"user": batch["user"], "risk": risk})
        # One row for each user in this batch of rows: the partial result.
        sums = scored.group_by("user").aggregate([("risk", "sum"), ("risk", "count")])
        yield from sums.rename_columns(["user", "risk", "events"]).to_batches()


def add_up(events: DataFrame) -> DataFrame:
    """The step on the events as they lie, and the sum of its partial results."""
    partials = events.mapInArrow(score, "user string, risk bigint, events bigint")
    # The partial results are few: nothing here is skewed any more.
    return partials.groupBy("user").agg(
        sf.sum("risk").alias("risk"), sf.sum("events").alias("events")
    )


def scores(events: DataFrame, journal: str | None = None) -> DataFrame:
    """Events in, one exact total for each user out; `events` may be a stream."""
    return add_up(
        route(events, key="user", grouping="level", partitions=PARTITIONS, journal=journal)
    )


def in_a_batch(spark: SparkSession, folder: Path) -> DataFrame:
    """Over all files of a folder at once."""
    return scores(spark.read.schema(EVENTS).json(str(folder)))


def in_a_stream(spark: SparkSession, folder: Path, checkpoint: Path) -> DataFrame:
    """Some files after the others, with what is routed remembered from batch to batch."""
    events = spark.readStream.schema(EVENTS).option("maxFilesPerTrigger", 4).json(str(folder))
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


def count_rows_and_users(frame: DataFrame) -> list[tuple[int, int]]:
    """How many rows and different users each partition has."""
    counted = frame.groupBy(sf.spark_partition_id().alias("partition")).agg(
        sf.count("*").alias("rows"), sf.count_distinct("user").alias("users")
    )
    counts = {row["partition"]: (row["rows"], row["users"]) for row in counted.collect()}
    return [counts.get(number, (0, 0)) for number in range(PARTITIONS)]


def show(way: str, events: DataFrame) -> None:
    """Print what a way gives the partitions, and what the step takes then."""
    counts = count_rows_and_users(events)
    add_up(events).collect()  # the workers start
    began = time.perf_counter()
    add_up(events).collect()
    seconds = time.perf_counter() - began
    most, profiles = max(rows for rows, _ in counts), sum(users for _, users in counts)
    print(f"{way}: fullest {most} rows, {profiles} profiles loaded, {seconds:.1f} s")


def write_events(folder: Path) -> None:
    """Eight files of events; every second event is of one user."""
    for file in range(PARTITIONS):
        users = [
            "busy" if at % 2 else f"user{(at // 2 + 1500 * file) % 2000}" for at in range(3000)
        ]
        lines = [json.dumps({"user": user, "cents": 7 * at}) for at, user in enumerate(users)]
        (folder / f"{file}.json").write_text("\n".join(lines) + "\n")


def main(spark: SparkSession, folder: Path) -> None:
    """Show three ways, then the totals of a batch and of a stream."""
    write_events(folder)
    events = spark.read.schema(EVENTS).json(str(folder))
    show("at the source", events)
    show("repartition(user)", events.repartition(PARTITIONS, "user"))
    show("route(key=user)", route(events, key="user", partitions=PARTITIONS))

    batch = in_a_batch(spark, folder).orderBy("user").collect()
    with tempfile.TemporaryDirectory() as checkpoint:
        stream = in_a_stream(spark, folder, Path(checkpoint)).orderBy("user").collect()
    print("the busiest user:", max(batch, key=lambda row: row.events).asDict())
    print("batch and stream agree:", batch == stream)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        # As many slots as partitions: the step mostly waits.
        session = SparkSession.builder.master("local[8]").appName("example").getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        main(session, Path(made))
        session.stop()
    sys.exit(0)
