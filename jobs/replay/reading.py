"""Reads a job's dead letters from where it writes them, without Spark."""

import base64
import json
from collections.abc import Iterator
from typing import Any, cast

import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from unskew.config.errors import ExternalError, UsageError
from unskew.config.models.job import Job
from unskew.grouping.spark.locations import open_location
from unskew.jobs.checkpoint.files import names_in, read_bytes
from unskew.jobs.kafka.native_options import is_of_the_group, native_options
from unskew.jobs.replay.dead_letter import DeadLetter, read_coordinates
from unskew.jobs.sinks.files import FilesDeadLetters
from unskew.jobs.sinks.kafka import KafkaDeadLetters
from unskew.jobs.sinks.registry import dead_letters_of

ANSWER_SECONDS = 15.0
_MESSAGES = 1000
# `consume` waits all of this time, unless there are so many.
_WAIT_SECONDS = 0.1


def read_dead_letters(job: Job) -> Iterator[DeadLetter]:
    """Read those that are there now, oldest first in each partition; a few may come twice."""
    target = dead_letters_of(job)
    if isinstance(target, KafkaDeadLetters):
        yield from _read_topic(job, target)
    elif isinstance(target, FilesDeadLetters):
        yield from _read_folder(target)
    else:
        raise UsageError(f"dead_letters: type {job.dead_letters.type} cannot be read back")


def _read_topic(job: Job, target: KafkaDeadLetters) -> Iterator[DeadLetter]:
    options = native_options(target.client_options(job), f"dead-letters: {job.name}")
    said: list[str] = []
    consumer = Consumer(
        {
            **options,
            "group.id": "unskew-dead-letters",
            "enable.auto.commit": False,
            "log_level": 0,
            "error_cb": lambda error: said.append(error.str()),
        }
    )
    try:
        for message in _read_messages(consumer, target.topic):
            yield _read_message(message)
    except KafkaException as error:
        # A refused log-in, or a certificate, is said before the call gives up: `poll` has it.
        consumer.poll(0)
        reason = said[0] if said else error.args[0].str() if error.args else str(error)
        where = f"{target.topic} on {options['bootstrap.servers']}"
        raise ExternalError(f"dead_letters.topic: {where}: {reason}") from error
    finally:
        consumer.close()


def _read_messages(consumer: Consumer, topic: str) -> Iterator[Message]:
    """The messages of a topic up to where it ends now."""
    known = consumer.list_topics(topic, timeout=ANSWER_SECONDS).topics[topic]
    if known.error is not None:
        raise KafkaException(known.error)
    for number in sorted(known.partitions):
        partition = TopicPartition(topic, number, OFFSET_BEGINNING)
        begin, end = consumer.get_watermark_offsets(partition, timeout=ANSWER_SECONDS)
        consumer.assign([partition])
        # The end may be a marker of a transaction, which is no message: the position tells.
        while begin < end and consumer.position([partition])[0].offset < end:
            messages = consumer.consume(_MESSAGES, timeout=_WAIT_SECONDS)
            for message in messages:
                error = message.error()
                if error is not None and not is_of_the_group(error):
                    raise KafkaException(error)
                if error is None and (message.offset() or 0) < end:
                    yield message


def _read_message(message: Message) -> DeadLetter:
    # A list of pairs, whatever the client's types say.
    pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    headers = {name: value.decode(errors="replace") for name, value in pairs if value is not None}
    return DeadLetter(
        headers.get("reason", ""), message.key(), message.value(), read_coordinates(headers)
    )


def _read_folder(target: FilesDeadLetters) -> Iterator[DeadLetter]:
    root = target.path.rstrip("/")
    batches = [name for name in names_in(root) if name.startswith("batch_id=")]
    for batch in sorted(batches, key=lambda name: int(name.removeprefix("batch_id="))):
        for name in names_in(f"{root}/{batch}"):
            if name.startswith("part-"):
                yield from _read_file(f"{root}/{batch}/{name}")


def _read_file(file: str) -> Iterator[DeadLetter]:
    try:
        rows = _read_parquet(file) if file.endswith(".parquet") else _read_json(file)
        for row in rows:
            yield DeadLetter(row["reason"], row.get("key"), row.get("value"), read_coordinates(row))
    except (KeyError, TypeError, ValueError) as error:
        raise ExternalError(f"dead_letters.path: {file}: cannot be read: {error}") from error


def _read_json(file: str) -> Iterator[dict[str, Any]]:
    for line in (read_bytes(file) or b"").splitlines():
        row = json.loads(line)
        for name in ("key", "value"):
            if row.get(name) is not None:
                row[name] = base64.b64decode(row[name], validate=True)
        yield row


def _read_parquet(file: str) -> Iterator[dict[str, Any]]:
    system, path = open_location(file)
    for row in pq.read_table(path, filesystem=system, partitioning=None).to_pylist():
        at = row["timestamp"]
        yield {**row, "timestamp": None if at is None else at.isoformat()}
