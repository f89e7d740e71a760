"""Five steps for which work at the source is no answer, and what routing gives them.

    python docs/examples/where_records_must_move.py

- *After a join.* Both sides are shuffled by the item, and half of the orders are of one item. So
  the tasks that join are skewed already, and a step in the same tasks is, too.
- *A source that cannot split.* One compressed file is read by one task, which would do all of the
  work. Round robin spreads it, but then each task meets nearly all keys.
- *Large partials.* A step makes a sketch of some kilobytes for each key that a task meets.
- *Memory a task.* A step holds something large for each key while it works. Where the records are
  read each task meets all keys, and holds them all.
- *Whole keys.* A step needs all rows of a key at once, in one task: nothing can be added up later.

Every second visit is of one user, so that a hash of the user, which keeps keys together as well,
gives one partition half of the rows. Only the whole keys are of visits without that user: a key
that must stay whole makes its partition as full as it is itself.
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew import route

PARTITIONS = 8
RECORDS = 12_000
KEYS = 2_000
PROFILE_KIB, SKETCH_KIB = 64, 4


def make_orders(spark: SparkSession) -> DataFrame:
    """Orders, every second of item 0, read by as many tasks as there are partitions."""
    orders = spark.range(RECORDS, numPartitions=PARTITIONS)
    item = sf.when(sf.col("id") % 2 == 0, 0).otherwise(sf.col("id") % 400)
    return orders.select("id", item.alias("item"))


def join_items(spark: SparkSession, orders: DataFrame) -> DataFrame:
    """Look up each order's item: both sides are shuffled, as those too large to broadcast are."""
    items = spark.range(400).select(sf.col("id").alias("item"), (sf.col("id") * 10).alias("price"))
    shuffled = items.repartition(PARTITIONS, "item").hint("merge")
    return orders.repartition(PARTITIONS, "item").join(shuffled, "item")


def make_visits(spark: SparkSession, tasks: int = PARTITIONS, *, hot: bool = True) -> DataFrame:
    """Visits of users, in any order, read by so many tasks; every second of user 0 if `hot`."""
    visits = spark.range(RECORDS, numPartitions=tasks)
    of_one = (sf.col("id") % 2 == 0) & sf.lit(hot)
    number = sf.when(of_one, 0).otherwise(sf.col("id") * 7 % KEYS)
    return visits.select("id", sf.concat(sf.lit("u"), number).alias("user"))


def count_by_partition(frame: DataFrame, key: str) -> list[tuple[int, int]]:
    """Rows and different keys of each partition that has any."""
    counted = frame.groupBy(sf.spark_partition_id().alias("partition")).agg(
        sf.count("*").alias("rows"), sf.count_distinct(key).alias("keys")
    )
    return [(row["rows"], row["keys"]) for row in counted.collect()]


def show_a_join(spark: SparkSession) -> None:
    """The fullest partition before the join, in it and behind `route`."""
    orders = make_orders(spark)
    joined = join_items(spark, orders)
    ways = {
        "before it": orders,
        "in the tasks that join": joined,
        "route": route(joined, key="item", partitions=PARTITIONS),
    }
    for name, frame in ways.items():
        fullest = max(rows for rows, _ in count_by_partition(frame, "item"))
        print(f"after a join, {name}: fullest {fullest} of {RECORDS} rows")


def show_one_task(spark: SparkSession) -> None:
    """Rows and keys of the fullest partition, where one task reads everything."""
    visits = make_visits(spark, tasks=1)
    ways = {
        "at the source": visits,
        "round robin": visits.repartition(PARTITIONS),
        "hash": visits.repartition(PARTITIONS, "user"),
        "route": route(visits, key="user", partitions=PARTITIONS),
    }
    for name, frame in ways.items():
        rows, keys = max(count_by_partition(frame, "user"))
        print(f"one file, {name}: fullest {rows} rows of {keys} users")


def read_and_route(spark: SparkSession) -> dict[str, DataFrame]:
    """The visits in the tasks that read them, by a hash of the user, and routed."""
    visits = make_visits(spark)
    return {
        "at the source": visits,
        "hash": visits.repartition(PARTITIONS, "user"),
        "route": route(visits, key="user", partitions=PARTITIONS),
    }


def show_partials(spark: SparkSession) -> None:
    """How many sketches go to the merge."""
    for name, frame in read_and_route(spark).items():
        counted = count_by_partition(frame, "user")
        made, fullest = sum(keys for _, keys in counted), max(rows for rows, _ in counted)
        mebibytes = f"{made * SKETCH_KIB / 1024:.0f} MiB to merge"
        print(f"partials, {name}: {made} sketches, {mebibytes}; fullest {fullest} rows")


def show_memory(spark: SparkSession) -> None:
    """What a task holds at most, where it keeps something for each key."""
    for name, frame in read_and_route(spark).items():
        counted = count_by_partition(frame, "user")
        most, fullest = max(keys for _, keys in counted), max(rows for rows, _ in counted)
        mebibytes = f"{most * PROFILE_KIB / 1024:.0f} MiB a task"
        print(f"memory, {name}: {most} profiles, {mebibytes}; fullest {fullest} rows")


def show_whole_keys(spark: SparkSession) -> None:
    """In how many partitions a key is at most; and how full the fullest is."""
    visits = make_visits(spark, hot=False)
    routed = route(visits, key="user", grouping="whole", partitions=PARTITIONS)
    for name, frame in {"as read": visits, "route(whole)": routed}.items():
        placed = frame.select("user", sf.spark_partition_id().alias("partition")).distinct()
        most = placed.groupBy("user").count().agg(sf.max("count")).collect()[0][0]
        fullest = max(rows for rows, _ in count_by_partition(frame, "user"))
        print(f"whole keys, {name}: a user in up to {most} partitions, fullest {fullest} rows")


def main(spark: SparkSession) -> None:
    """Show all five."""
    show_a_join(spark)
    show_one_task(spark)
    show_partials(spark)
    show_memory(spark)
    show_whole_keys(spark)


if __name__ == "__main__":
    session = SparkSession.builder.master("local[*]").appName("example").getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    main(session)
    session.stop()
    sys.exit(0)
