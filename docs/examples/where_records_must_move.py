"""Three steps that work at the source cannot do, and what routing gives them.

    python docs/examples/where_records_must_move.py

- *After a join.* Orders are even until their brand is looked up: half of them are of one brand.
  What is done for each brand can no longer be done where the records were read.
- *Memory a task.* A step holds something large for each key while it works. Where the records are
  read each task meets all keys, and holds them all.
- *Whole keys.* A step needs all rows of a key at once, in one task: nothing can be added up later.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew import route

PARTITIONS = 8
RECORDS = 12_000
KEYS = 2_000
PROFILE_KIB = 64


def make_orders(spark: SparkSession) -> DataFrame:
    """As many orders of each item, read by as many tasks as there are partitions."""
    orders = spark.range(RECORDS, numPartitions=PARTITIONS)
    return orders.select("id", (sf.col("id") % 400).alias("item"))


def join_brands(spark: SparkSession, orders: DataFrame) -> DataFrame:
    """Every second item is of one brand."""
    brand = sf.when(sf.col("id") % 2 == 0, "acme").otherwise(sf.concat(sf.lit("b"), sf.col("id")))
    items = spark.range(400).select(sf.col("id").alias("item"), brand.alias("brand"))
    return orders.join(sf.broadcast(items), "item")


def make_visits(spark: SparkSession) -> DataFrame:
    """Visits of users, in any order."""
    visits = spark.range(RECORDS, numPartitions=PARTITIONS)
    return visits.select("id", sf.concat(sf.lit("u"), sf.col("id") * 7 % KEYS).alias("user"))


def count_by_partition(frame: DataFrame, key: str) -> list[tuple[int, int]]:
    """Rows and different keys of each partition that has any."""
    counted = frame.groupBy(sf.spark_partition_id().alias("partition")).agg(
        sf.count("*").alias("rows"), sf.count_distinct(key).alias("keys")
    )
    return [(row["rows"], row["keys"]) for row in counted.collect()]


def show_a_join(spark: SparkSession) -> None:
    """The fullest partition before the join, and behind it in two ways."""
    orders = make_orders(spark)
    joined = join_brands(spark, orders)
    ways = {
        "as read": (orders, "item"),
        "repartition(brand)": (joined.repartition(PARTITIONS, "brand"), "brand"),
        "route(key=brand)": (route(joined, key="brand", partitions=PARTITIONS), "brand"),
    }
    for name, (frame, key) in ways.items():
        fullest = max(rows for rows, _ in count_by_partition(frame, key))
        print(f"after a join, {name}: fullest {fullest} of {RECORDS} rows")


def show_memory(spark: SparkSession) -> None:
    """What a task holds at most, where it keeps something for each key."""
    visits = make_visits(spark)
    ways = {"at the source": visits, "route": route(visits, key="user", partitions=PARTITIONS)}
    for name, frame in ways.items():
        most = max(keys for _, keys in count_by_partition(frame, "user"))
        print(f"memory, {name}: {most} profiles, {most * PROFILE_KIB / 1024:.0f} MiB a task")


def show_whole_keys(spark: SparkSession) -> None:
    """In how many partitions a key is at most; and how full the fullest is."""
    visits = make_visits(spark)
    routed = route(visits, key="user", grouping="whole", partitions=PARTITIONS)
    for name, frame in {"as read": visits, "route(whole)": routed}.items():
        placed = frame.select("user", sf.spark_partition_id().alias("partition")).distinct()
        most = placed.groupBy("user").count().agg(sf.max("count")).collect()[0][0]
        fullest = max(rows for rows, _ in count_by_partition(frame, "user"))
        print(f"whole keys, {name}: a user in up to {most} partitions, fullest {fullest} rows")


def main(spark: SparkSession) -> None:
    """Show all three."""
    show_a_join(spark)
    show_memory(spark)
    show_whole_keys(spark)


if __name__ == "__main__":
    session = SparkSession.builder.master("local[*]").appName("example").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    main(session)
    session.stop()
    sys.exit(0)
