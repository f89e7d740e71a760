"""Kafka's partitions in as few pieces as give tasks equal shares."""

from collections.abc import Sequence
from itertools import count

import pytest
from confluent_kafka import Producer
from hypothesis import assume, given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from unskew.jobs.kafka.broker import Broker
from unskew.jobs.kafka.sizes import read_sizes
from unskew.jobs.query.pieces import choose_pieces, compute_largest_share, cut


@pytest.mark.parametrize(
    ("sizes", "tasks", "asked"),
    [
        pytest.param([100] * 4, 16, 16, id="even partitions are cut once"),
        pytest.param([100] * 16, 16, 32, id="with a partition a task, executors are preferred"),
        pytest.param([90, 100, 110, 100], 16, 32, id="a little uneven"),
        pytest.param([1000, 10, 10, 10], 16, 64, id="one partition has it all"),
        pytest.param([400] + [40] * 15, 16, 128, id="many partitions, a hot one"),
        pytest.param([], 16, 64, id="sizes are not known"),
        pytest.param([0, 0], 16, 64, id="no records yet"),
    ],
)
def test_as_few_pieces_are_asked_for_as_are_even(
    sizes: Sequence[int], tasks: int, asked: int
) -> None:
    assert choose_pieces(sizes, tasks) == asked


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=40), st.integers(2, 40))
def test_no_share_is_far_above_the_mean(sizes: list[int], tasks: int) -> None:
    # Of more Kafka partitions a task, those that are nearly empty may fill tasks by their number.
    assume(sum(sizes) > 0 and len(sizes) <= 5 * tasks)
    asked = choose_pieces(sizes, tasks)

    assert len(sizes) < asked <= 32 * tasks or asked == 32 * tasks
    assert compute_largest_share(sizes, asked, tasks) < 1.2


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.spark
def test_spark_cuts_a_topic_as_we_expect(spark: SparkSession, broker: Broker) -> None:
    wanted = [700, 150, 40, 3]
    broker.create_topics(["sized"], partitions=len(wanted))
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for partition, size in zip(count(), wanted):
        for _ in range(size):
            producer.produce("sized", b"x", partition=partition)
    assert producer.flush(30) == 0

    sizes = read_sizes(["sized"], broker.address)
    options = {"kafka.bootstrap.servers": broker.address, "subscribe": "sized"}
    for tasks in (3, 7):
        asked = choose_pieces(sizes, tasks)
        read = spark.read.format("kafka").options(**options, minPartitions=str(asked)).load()
        pieces = read.groupBy(sf.spark_partition_id()).count().collect()
        joined = read.coalesce(tasks).groupBy(sf.spark_partition_id()).count().collect()
        # A piece has whole records.
        expected = [pytest.approx(size, abs=1) for size in sorted(cut(sizes, asked))]
        assert sorted(row["count"] for row in pieces) == expected
        assert len(joined) == tasks
        largest = compute_largest_share(sizes, asked, tasks) * sum(sizes) / tasks
        assert max(row["count"] for row in joined) <= largest + asked / tasks
    assert sizes == wanted
    assert read_sizes(["absent"], broker.address) == []
