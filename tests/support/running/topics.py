"""What a topic holds."""

from typing import Any

from confluent_kafka import Consumer, TopicPartition

from unskew.jobs.kafka.broker import Broker


def topic_records(broker: Broker, topic: str, partitions: int) -> list[Any]:
    """All records of a topic's partitions, one after the other, oldest first."""
    consumer = Consumer({"bootstrap.servers": broker.address, "group.id": "t", "log_level": 0})
    records: list[Any] = []
    try:
        for number in range(partitions):
            start = TopicPartition(topic, number, 0)
            _, end = consumer.get_watermark_offsets(start, timeout=20)
            consumer.assign([start])
            of_partition: list[Any] = []
            while end and (not of_partition or of_partition[-1].offset() + 1 < end):
                messages = consumer.consume(10_000, timeout=1)
                assert messages, f"{topic} ends early"
                of_partition += messages
            records += of_partition
        return records
    finally:
        consumer.close()
