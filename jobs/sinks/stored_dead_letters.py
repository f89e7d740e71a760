"""Reads dead letters from the topic or the folder that has them, without Spark.

Each as its fields by the names of the columns that were written.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import open_location
from unskew.jobs.checkpoint.files import list_names, read_bytes
from unskew.jobs.kafka.native_options import is_of_the_group, translate_options

ANSWER_SECONDS = 15.0
_MESSAGES = 1000
# `consume` waits all of this time, unless it gets `_MESSAGES` before.
_WAIT_SECONDS = 0.1


def read_topic(
    topic: str, client_options: Mapping[str, str], client: str
) -> Iterator[dict[str, Any]]:
    """Read what is in a topic now, oldest first in each partition; a few may come twice."""
    options = translate_options(client_options, client)
    errors: list[str] = []
    consumer = Consumer(
        {
            **options,
            "group.id": "unskew-dead-letters",
            "enable.auto.commit": False,
            "log_level": 0,
            "error_cb": lambda error: errors.append(error.str()),
        }
    )
    try:
        for message in _read_messages(consumer, topic):
            yield _read_message(message)
    except KafkaException as error:
        # A refused log-in, or a certificate, is said before the call gives up: `poll` has it.
        consumer.poll(0)
        reason = errors[0] if errors else error.args[0].str() if error.args else str(error)
        where = f"{topic} on {options['bootstrap.servers']}"
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
        # The last offset may be a transaction's marker, not a message: go by the position.
        while begin < end and consumer.position([partition])[0].offset < end:
            messages = consumer.consume(_MESSAGES, timeout=_WAIT_SECONDS)
            for message in messages:
                error = message.error()
                if error is not None and not is_of_the_group(error):
                    raise KafkaException(error)
                if error is None and (message.offset() or 0) < end:
                    yield message


def _read_message(message: Message) -> dict[str, Any]:
    # A list of pairs, whatever the client's types say.
    pairs = cast("list[tuple[str, bytes | None]]", message.headers() or [])
    headers = {name: value.decode(errors="replace") for name, value in pairs if value is not None}
    return {"reason": "", **headers, "key": message.key(), "value": message.value()}


def read_folder(path: str) -> Iterator[dict[str, Any]]:
    """Read what is in the folders of batches below `path`, the first batch first."""
    root = path.rstrip("/")
    batches = [name for name in list_names(root) if name.startswith("batch_id=")]
    for batch in sorted(batches, key=lambda name: int(name.removeprefix("batch_id="))):
        for name in list_names(f"{root}/{batch}"):
            if name.startswith("part-"):
                yield from _read_file(f"{root}/{batch}/{name}")


def _read_file(file: str) -> Iterator[dict[str, Any]]:
    rows = _read_parquet(file) if file.endswith(".parquet") else _read_json(file)
    try:
        for row in rows:
            _ = row["reason"]
            yield row
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
