"""Rejected records of plain Spark: read again from the source, only where a batch has some."""

import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.dead_letters import dead_letters_in
from tests.support.oracles import START
from tests.support.running.in_process import CountsReads, Ran, write_lines
from unskew.jobs.kafka.broker import Broker

pytestmark = pytest.mark.spark

OF_WORDS: dict[str, Any] = {
    "operator": {"type": "word_count", "text": "text"},
    "grouping": {"type": "none"},
    "window": {"type": "none"},
    "lateness": None,
}
MARK = "dead-letters.published"


def write(folder: Path, number: int, rejected: int) -> None:
    """A file, which is a batch: a word, and rejected lines. Its name is no pattern."""
    rows = [{"text": f"w{number}", "at": START.isoformat()}]
    rows += [{"text": None, "at": START.isoformat()}] * rejected
    write_lines(folder / "in", f"[{number}] a.json", rows)


def run(spark: SparkSession, folder: Path) -> Ran:
    return Ran(spark, folder, "none", pipeline=CountsReads, **OF_WORDS)


def batches_of(folder: Path) -> list[str]:
    """The batch of each dead letter."""
    files = (folder / "bad").glob("batch_id=*/*.json")
    return sorted(file.parent.name[9:] for file in files for _ in file.read_text().splitlines())


def test_a_batch_is_read_again_if_it_rejected_something_or_nobody_knows(
    spark: SparkSession, tmp_path: Path
) -> None:
    CountsReads.reads.clear()
    # What a query of an earlier version wrote, of seven batches, is not replaced.
    former = tmp_path / "checkpoints" / "none" / "unskew-refused" / "offsets"
    former.mkdir(parents=True)
    (former / "6").touch()
    for number, rejected in enumerate([2, 0, 1]):
        write(tmp_path, number, rejected)
    first = run(spark, tmp_path)
    shown = [[each.reason for each in done.samples] for done in first.batches if done.has_rows]
    assert shown == [["null_key"] * 2, [], ["null_key"]]
    assert first.batches[0].samples[0].topic.endswith("%5B0%5D%20a.json")
    assert len(CountsReads.reads) == 2
    assert batches_of(tmp_path) == ["7", "7", "9"]

    # As a crash leaves it before the dead letters of two batches: there are no counts any more.
    for batch in (1, 2):
        (Path(first.journal.location) / f"{batch:012d}" / MARK).unlink()
    for file in (tmp_path / "bad" / "batch_id=9").iterdir():
        file.unlink()
    write(tmp_path, 3, 1)
    second = run(spark, tmp_path)
    assert len(CountsReads.reads) == 5
    assert batches_of(tmp_path) == ["10", "7", "7", "9"]
    assert {row["key"]: row["count"] for row in second.rows} == {f"w{n}": 1 for n in range(4)}


@pytest.mark.slow
@pytest.mark.e2e
def test_of_kafka_each_is_there_with_its_coordinates(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    wanted = []
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for topic in ("plain-a", "plain-b"):
        broker.create_topics([topic], partitions=2)
        for number in range(40):
            text = None if number % 13 == 5 else "w"
            value = json.dumps({"text": text, "at": START.isoformat()})
            producer.produce(topic, value, partition=number % 2)
            if text is None:
                wanted.append((topic, number % 2, number // 2))
    assert producer.flush(30) == 0
    source = {
        "type": "kafka",
        "bootstrap_servers": broker.address,
        "pattern": "plain-.*",
        "records_per_batch": 30,
    }
    ran = Ran(spark, tmp_path, "none", source, **OF_WORDS)
    published = dead_letters_in(tmp_path / "bad")
    assert sorted((row["topic"], row["partition"], row["offset"]) for row in published) == sorted(
        wanted
    )
    assert {row["key"]: row["count"] for row in ran.rows} == {"w": 74}
