"""Rejected records become dead letters: in pieces, once, however large, and leave the journal."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.running.in_process import Ran, job_over
from tests.support.running.topics import topic_records
from unskew.config.models.job import Job
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.rejected_file import PIECE_BYTES
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.replay.ledger import Ledger
from unskew.jobs.replay.reading import read_dead_letters
from unskew.jobs.replay.replaying import CUT_SHORT, REPLAYED, replay
from unskew.jobs.sinks.dead_letters import publish, write_dead_letters

BATCH = 7
# More than the Kafka client sends by default, and than a topic takes by default.
LARGE = 1_060_000
TOPIC_BYTES = str(2 << 20)


def rejected_records(offsets: range, value: bytes = b"\xff") -> pa.Table:
    """Rejected records as a task keeps them."""
    count = len(offsets)
    return pa.table(
        {
            "reason": ["not_utf8"] * count,
            "key": pa.nulls(count, pa.binary()),
            "value": [value] * count,
            "topic": ["lines"] * count,
            "partition": pa.array([0] * count, pa.int32()),
            "offset": list(offsets),
            "timestamp": pa.array(
                [datetime(2026, 3, 1, tzinfo=UTC)] * count, pa.timestamp("us", "UTC")
            ),
        }
    )


def leave(journal: Journal) -> None:
    """Six rejected records of three partitions."""
    for partition in range(3):
        journal.write_rejected(
            BATCH, partition, rejected_records(range(2 * partition, 2 * partition + 2))
        )


def sent(job: Job) -> list[int]:
    """The offsets of the dead letters in the job's folder."""
    files = Path(job.dead_letters.path).glob("batch_id=*/*.json")  # type: ignore[union-attr]
    return sorted(
        json.loads(line)["offset"] for file in files for line in file.read_text().splitlines()
    )


@pytest.mark.spark
def test_each_goes_once_and_then_leaves_the_journal(spark: SparkSession, tmp_path: Path) -> None:
    job = job_over({"type": "files", "path": str(tmp_path / "in")}, tmp_path, "letters")
    journal = open_journal(job)
    leave(journal)
    assert publish(spark, job, journal, BATCH) == 6
    assert sent(job) == list(range(6))
    assert list(journal.rejected(BATCH)) == []
    assert publish(spark, job, journal, BATCH) == 0

    # As a crash leaves it between the mark and the removal.
    leave(journal)
    assert publish(spark, job, journal, BATCH) == 0
    assert list(journal.rejected(BATCH)) == []

    # As a crash leaves it in the midst of sending: what went out is replaced.
    leave(journal)
    (Path(journal.location) / f"{BATCH:012d}" / "dead-letters.published").unlink()
    assert publish(spark, job, journal, BATCH) == 6
    assert sent(job) == list(range(6))


def test_many_of_a_partition_are_read_in_pieces(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    table = rejected_records(range(64), value=bytes(1 << 20))
    journal.write_rejected(BATCH, 0, table)
    pieces = list(journal.rejected(BATCH))
    assert max(piece.nbytes for piece in pieces) <= PIECE_BYTES
    assert pa.concat_tables(pieces).equals(table)


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.e2e
def test_one_larger_than_kafkas_default_is_sent(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topics(["large", "large-dead"], max_message_bytes=TOPIC_BYTES)
    producer = Producer(
        {"bootstrap.servers": broker.address, "message.max.bytes": 2 << 20, "log_level": 0}
    )
    producer.produce("large", b"a word")
    producer.produce("large", b"\xff" * LARGE)
    assert producer.flush(30) == 0
    ran = Ran(
        spark,
        tmp_path,
        "large",
        source={"type": "kafka", "bootstrap_servers": broker.address, "subscribe": ["large"]},
        decode={"type": "text"},
        operator={"type": "word_count"},
        event_time="timestamp",
        window={"type": "none"},
        lateness=None,
        dead_letters={"type": "kafka", "topic": "large-dead"},
    )
    assert ran.rejected == {"not_utf8": 1}
    (letter,) = topic_records(broker, "large-dead")
    assert letter.value() == b"\xff" * LARGE
    assert dict(letter.headers())["offset"] == b"1"


@pytest.mark.spark
@pytest.mark.e2e
def test_one_larger_than_the_topic_takes_is_cut_and_not_replayed(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topics(["source-of-cut", "cut-dead"])
    source = {"bootstrap_servers": broker.address, "subscribe": ["source-of-cut"]}
    job = job_over(
        {"type": "kafka", **source},
        tmp_path,
        "cut",
        dead_letters={"type": "kafka", "topic": "cut-dead"},
    )
    small, large = rejected_records(range(1)), rejected_records(range(1, 2), b"\xff" * LARGE)
    records = pa.concat_tables([small, large])
    records = records.set_column(3, "topic", [["source-of-cut"] * 2])
    write_dead_letters(spark.createDataFrame(records), job, BATCH)
    # The first attempt may have sent the small one.
    sent_again = {
        dict(each.headers())["offset"]: each for each in topic_records(broker, "cut-dead")
    }
    assert sent_again[b"0"].value() == b"\xff"
    value, headers = sent_again[b"1"].value(), dict(sent_again[b"1"].headers())
    assert len(value) > LARGE * 0.9
    assert value == b"\xff" * len(value)
    assert headers["cut_from_bytes"] == str(LARGE).encode()
    assert "cut_from_bytes" not in dict(sent_again[b"0"].headers())
    outcomes = replay(job, read_dead_letters(job), Ledger(str(tmp_path / "ledger")))
    assert (outcomes[REPLAYED], outcomes[CUT_SHORT]) == (1, 1)
