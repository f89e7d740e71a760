"""How many records the partitions of topics have."""

from collections.abc import Sequence
from contextlib import closing

from confluent_kafka import Consumer, KafkaException, TopicPartition

_ANSWER_SECONDS = 5.0


def read_sizes(topics: Sequence[str], servers: str) -> list[int]:
    """The records of each partition of the topics; nothing if the brokers do not say."""
    if not topics:
        return []
    settings = {"bootstrap.servers": servers, "group.id": "unskew-sizes", "log_level": 0}
    with closing(Consumer(settings)) as consumer:
        try:
            return [size for topic in topics for size in _read_topic_sizes(consumer, topic)]
        except KafkaException:
            return []


def _read_topic_sizes(consumer: Consumer, topic: str) -> list[int]:
    partitions = consumer.list_topics(topic, timeout=_ANSWER_SECONDS).topics[topic].partitions
    bounds = [
        consumer.get_watermark_offsets(TopicPartition(topic, number), _ANSWER_SECONDS)
        for number in sorted(partitions)
    ]
    return [high - low for low, high in bounds]
