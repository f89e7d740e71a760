"""`grouping: local`: the operator works in the tasks that read, which get equal shares."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.batches import board_value
from tests.support.running.in_process import Ran
from unskew.jobs.engine.session import change_settings
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.query.source import make_file_settings

pytestmark = pytest.mark.spark

PARTITIONS = 3
OF_WORDS: dict[str, Any] = {
    "decode": {"type": "text"},
    "event_time": "timestamp",
    "window": {"type": "none"},
    "lateness": None,
    "partitions": PARTITIONS,
}
LOCAL = {"grouping": {"type": "local"}, **OF_WORDS}
REJECTED = b"\xff is no text"


@pytest.fixture
def _pieces(spark: SparkSession) -> Iterator[None]:
    """The settings of the session that a job with files and `local` starts."""
    with change_settings(spark, make_file_settings(PARTITIONS)):
        yield


def words(number: int, lines: int) -> list[bytes]:
    """Lines of three words, one of which is most of them, and a rejected record."""
    made = [b"hot hot w%d" % (line * 7 % 900 + number) for line in range(lines)]
    return [*made, REJECTED]


def counted(*files: list[bytes]) -> dict[Any, dict[str, int]]:
    """The oracle: the words of all files."""
    texts = [word.decode() for lines in files for line in lines[:-1] for word in line.split()]
    return {(word,): {"count": count} for word, count in Counter(texts).items()}


def exchanges(ran: Ran) -> int:
    """How often the last batch moved rows between tasks."""
    plan = ran.query._jsq.streamingQuery().lastExecution().executedPlan()
    return str(plan.toString()).count("Exchange ")


@pytest.mark.slow
@pytest.mark.usefixtures("_pieces")
def test_a_checkpoint_goes_on_with_another_grouping_and_local_has_no_shuffle_of_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    files = [words(0, 300), words(1, 12_000), words(2, 1), words(3, 200)]

    def run(grouping: str, *numbers: int) -> Ran:
        for number in numbers:
            (tmp_path / "in" / f"{number}.txt").write_bytes(b"\n".join(files[number]) + b"\n")
        return Ran(spark, tmp_path, "one", grouping={"type": grouping}, **OF_WORDS)

    level, local, key = run("level", 0), run("local", 1, 2), run("key", 3)

    assert level.last | local.last | key.last == counted(*files)
    assert exchanges(level) == 2
    assert exchanges(local) == 1
    large, small = local.batches
    assert large.stats is not None
    assert small.stats is not None
    assert large.stats.total == 36_000
    assert sorted(large.stats.executors) == [0, 1, 2]
    assert large.stats.max_over_mean < 1.2
    # One piece makes one task; nobody waits for the two that are not there.
    assert small.stats.records.tolist() == [3, 0, 0]
    assert sorted(small.stats.executors) == [0]
    assert local.rejected.total() == 3  # the journal has the batch before, too
    assert local.batches[0].routing is None
    board = Board("totals", Health(60.0))
    for done in local.batches:
        board.on_batch_done(done)
    assert [board_value(board, "partition_records", str(p)) > 0 for p in range(3)] == [True] * 3
    assert board_value(board, "records") == 36_003


@pytest.mark.slow
@pytest.mark.e2e
def test_a_topic_keyed_by_the_hot_key_is_cut_inside_its_kafka_partitions(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topics(["keyed"], partitions=2)
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    lines = words(0, 1000)
    for line in lines:
        producer.produce("keyed", line, partition=1 if line.endswith(b"w7") else 0)
    assert producer.flush(30) == 0
    source = {
        "type": "kafka",
        "bootstrap_servers": broker.address,
        "subscribe": ["keyed"],
        "records_per_batch": 600,
    }

    cut = Ran(spark, tmp_path, "cut", source, **LOCAL)
    whole = Ran(spark, tmp_path, "whole", {**source, "split": False}, **LOCAL)

    assert cut.last == whole.last == counted(lines)
    assert cut.rejected == whole.rejected
    assert cut.rejected.total() == 1
    batches = [done.stats for done in cut.batches if done.stats]
    assert sum(stats.total for stats in batches) == 3000
    large = [stats for stats in batches if stats.total > 900]
    assert len(large) == 2
    for stats in large:
        assert sorted(stats.executors) == [0, 1, 2]
        assert stats.max_over_mean < 1.15  # of so few records a piece has four or five
    unsplit = whole.batches[0].stats
    assert unsplit is not None
    assert unsplit.max_over_mean > 2.9
