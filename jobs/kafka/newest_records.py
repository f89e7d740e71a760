"""A bounded sample of topics' newest records, each partition's in its order."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from unskew.config.errors import ExternalError
from unskew.config.models.source import KafkaSource, Source
from unskew.config.types.secrets import reveal
from unskew.jobs.kafka.admin import describe_missing_topic, describe_no_answer
from unskew.jobs.kafka.native_options import is_of_the_group
from unskew.jobs.kafka.options import find_security_options

ANSWER_SECONDS = 5.0
_CHUNK_RECORDS = 10_000
_POLL_SECONDS = 0.2
_MESSAGE_BYTES = 64 << 20
_NO_PERMISSION = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
Progress = Callable[[int, int], None]
"""Called with the records that were read, and those that are asked for."""
Watch = Callable[[str], AbstractContextManager[Progress | None]]
"""Watches the reading of a topic."""


@dataclass
class RawSample:
    """Records by column, an entry each."""

    keys: list[bytes | None] = field(default_factory=list)
    values: list[bytes | None] = field(default_factory=list)
    partitions: list[int] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    timestamps_ms: list[int] = field(default_factory=list)
    there: int = 0
    """Records of the topic, read or not."""

    def append(self, other: Self, number: int, topics: int) -> None:
        """Append another topic's records; a task reads one partition of one topic.

        `number` of `topics` keeps the topics' partitions apart.
        """
        self.keys += other.keys
        self.values += other.values
        self.partitions += [partition * topics + number for partition in other.partitions]
        self.offsets += other.offsets
        self.timestamps_ms += other.timestamps_ms
        self.there += other.there

    def order_by_task(self) -> Self:
        """The records of each partition together, as a task reads them."""
        order = np.argsort(self.partitions, kind="stable").tolist()
        return type(self)(
            [self.keys[at] for at in order],
            [self.values[at] for at in order],
            [self.partitions[at] for at in order],
            [self.offsets[at] for at in order],
            [self.timestamps_ms[at] for at in order],
            self.there,
        )


@dataclass(frozen=True)
class Limits:
    """How much is read."""

    records: int
    seconds: float


def ignore_progress(_: str) -> AbstractContextManager[Progress | None]:
    """Show no progress."""
    return nullcontext()


def sample_source(
    source: Source, limits: Limits, watch: Watch = ignore_progress
) -> RawSample | None:
    """The newest records of a job's topics; None where only Spark can read its source."""
    if not isinstance(source, KafkaSource) or not source.subscribe:
        return None
    if find_security_options(reveal(source.options)):
        return None  # they are for Kafka's Java client
    return sample_topics(source.subscribe, source.bootstrap_servers, limits, {}, watch)


def sample_topics(
    topics: Sequence[str],
    servers: str,
    limits: Limits,
    client_options: Mapping[str, str],
    watch: Watch,
) -> RawSample:
    """The newest records of all topics, each by an equal part of the limits."""
    part = Limits(max(1, limits.records // len(topics)), limits.seconds / len(topics))
    whole = RawSample()
    for number, topic in enumerate(topics):
        with watch(topic) as progress:
            sample = sample_topic(topic, servers, part, client_options, progress)
        whole.append(sample, number, len(topics))
    return whole


def sample_topic(
    topic: str,
    servers: str,
    limits: Limits,
    client_options: Mapping[str, str],
    progress: Progress | None = None,
) -> RawSample:
    """The newest records of a topic, each of its partitions by its share of all of them.

    So they are about of the same time, and a partition with a hot key has its weight. No offset is
    committed.
    """
    errors: list[str] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": servers,
        "group.id": "unskew-compare",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "fetch.message.max.bytes": 4 << 20,
        "queued.max.messages.kbytes": _MESSAGE_BYTES >> 10,
        "log_level": 0,
        **client_options,
        "error_cb": lambda error: errors.append(error.str()),
    }
    try:
        consumer = Consumer(settings)
    except KafkaException as error:
        raise ExternalError(f"compare: --client-config: {error.args[0].str()}") from error
    try:
        sample = RawSample()
        starts, ends = _find_range(consumer, topic, servers, limits.records, sample, errors)
        _read(consumer, topic, starts, ends, limits, sample, progress)
    except KafkaException as error:
        raise ExternalError(_describe(topic, servers, error.args[0])) from error
    finally:
        consumer.close()
    return sample


def _find_range(
    consumer: Consumer, topic: str, servers: str, records: int, sample: RawSample, errors: list[str]
) -> tuple[dict[int, int], dict[int, int]]:
    """Find, for each partition with records, the offset to begin with and that after the last."""
    try:
        cluster = consumer.list_topics(topic, timeout=ANSWER_SECONDS)
    except KafkaException as error:
        consumer.poll(0)  # hands over errors from before the call gave up
        reason = f" ({errors[0]})" if errors else ""
        where = f"compare: {servers}"
        problem = describe_no_answer(where, ANSWER_SECONDS, reason, "--bootstrap-servers")
        raise ExternalError(problem) from error
    known = cluster.topics[topic]
    if known.error is not None and known.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        there = consumer.list_topics(timeout=ANSWER_SECONDS).topics
        raise ExternalError(describe_missing_topic(f"compare: {topic} on {servers}", topic, there))
    if known.error is not None:
        raise ExternalError(_describe(topic, servers, known.error))
    bounds = {
        number: consumer.get_watermark_offsets(TopicPartition(topic, number), ANSWER_SECONDS)
        for number in known.partitions
    }
    sample.there = sum(high - low for low, high in bounds.values())
    wanted = min(1.0, records / max(1, sample.there))
    starts = {n: high - round((high - low) * wanted) for n, (low, high) in bounds.items()}
    ends = {number: high for number, (_, high) in bounds.items() if high > starts[number]}
    return {number: starts[number] for number in ends}, ends


def _read(
    consumer: Consumer,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    limits: Limits,
    sample: RawSample,
    progress: Progress | None,
) -> None:
    left = dict(ends)
    asked = sum(ends[number] - starts[number] for number in ends)
    consumer.assign([TopicPartition(topic, number, at) for number, at in starts.items()])
    deadline = time.monotonic() + limits.seconds
    while left and time.monotonic() < deadline:
        for message in consumer.consume(_CHUNK_RECORDS, _POLL_SECONDS):
            _take(message, left, sample)
        if progress is not None:
            progress(len(sample.keys), asked)


def _take(message: Any, left: dict[int, int], sample: RawSample) -> None:
    """Keep a record; drop its partition from those that are left when it was the last."""
    error, number = message.error(), message.partition()
    if error is not None and is_of_the_group(error):
        return
    if error is not None:
        if error.code() != KafkaError._PARTITION_EOF:  # noqa: SLF001 - its public name
            raise KafkaException(error)
        left.pop(number, None)
        return
    if number not in left:
        return  # newer than the sample
    offset = message.offset()
    if offset < left[number]:
        sample.keys.append(message.key())
        sample.values.append(message.value())
        sample.partitions.append(number)
        sample.offsets.append(offset)
        sample.timestamps_ms.append(message.timestamp()[1])
    if offset >= left[number] - 1:
        del left[number]


def _describe(topic: str, servers: str, error: Any) -> str:
    where = f"compare: {topic} on {servers}"
    if error.code() in _NO_PERMISSION:
        return f"{where}: Kafka does not permit this user to read it: {error.str()}; it needs Read"
    if error.code() in (KafkaError._TIMED_OUT, KafkaError._TRANSPORT):  # noqa: SLF001
        return describe_no_answer(where, ANSWER_SECONDS, "", "--bootstrap-servers")
    return f"{where}: cannot be read: {error.str()}"
