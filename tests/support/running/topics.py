"""What a topic holds."""

import time
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from unskew.jobs.kafka.broker import Broker

_ANSWER_SECONDS = 20.0


def topic_records(broker: Broker, topic: str, partitions: int = 1) -> list[Any]:
    """All records of a topic's partitions, one after the other, oldest first."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "t", "log_level": 0})
    try:
        return [record for number in range(partitions) for record in _read(consumer, topic, number)]
    finally:
        consumer.close()


def _read(consumer: Consumer, topic: str, partition: int) -> list[Any]:
    start = TopicPartition(topic, partition, 0)
    _, end = consumer.get_watermark_offsets(start, timeout=_ANSWER_SECONDS)
    consumer.assign([start])
    records: list[Any] = []
    deadline = time.monotonic() + _ANSWER_SECONDS
    while end and (not records or records[-1].offset() + 1 < end):
        assert time.monotonic() < deadline, f"{topic} ends early"
        # It waits all of the time that it is given, unless this number of messages comes before.
        records += consumer.consume(10_000, timeout=0.1)
    return records
