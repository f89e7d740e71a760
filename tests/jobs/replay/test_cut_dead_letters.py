"""A dead letter that was cut to fit its topic is read as such, and not replayed."""

from pathlib import Path

import pytest
from confluent_kafka import Producer

from tests.support.running.in_process import job_over
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.kafka.topic_limits import read_message_bytes_max
from unskew.jobs.replay.ledger import Ledger
from unskew.jobs.replay.reading import read_dead_letters
from unskew.jobs.replay.replaying import CUT_SHORT, REPLAYED, replay

pytestmark = pytest.mark.e2e

WHERE = {"topic": "lines-of-cut", "partition": "0", "timestamp": "2026-03-01 00:00:00"}


def test_a_cut_one_is_told_apart_from_a_whole_one(broker: Broker, tmp_path: Path) -> None:
    broker.create_topics(["lines-of-cut", "letters-of-cut"])
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for offset, more in (("1", {}), ("2", {"cut_from_bytes": "9000000"})):
        headers = {"reason": "not_utf8", "offset": offset, **WHERE, **more}
        producer.produce("letters-of-cut", b"\xff", headers=list(headers.items()))
    assert producer.flush(30) == 0
    source = {"bootstrap_servers": broker.address, "subscribe": ["lines-of-cut"]}
    target = {"type": "kafka", "topic": "letters-of-cut"}
    job = job_over({"type": "kafka", **source}, tmp_path, "cut", dead_letters=target)
    assert [letter.cut for letter in read_dead_letters(job)] == [False, True]
    outcomes = replay(job, read_dead_letters(job), Ledger(str(tmp_path / "ledger")))
    assert outcomes == {REPLAYED: 1, CUT_SHORT: 1}


def test_a_topic_says_how_large_a_record_may_be(broker: Broker) -> None:
    broker.create_topics(["of-8000"], max_message_bytes="8000")
    options = {"kafka.bootstrap.servers": broker.address}
    assert read_message_bytes_max(options, "of-8000") == 8000
    assert read_message_bytes_max(options, "not-there") is None
