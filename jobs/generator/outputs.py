"""Where records are written: a Kafka topic, a file of lines, or one of Kafka's columns."""

import time
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import KafkaException, Producer

from unskew.config.errors import ExternalError
from unskew.grouping.base import Int64s
from unskew.jobs.generator.files import remove
from unskew.jobs.generator.settings import FileTarget, KafkaTarget
from unskew.jobs.kafka.admin import describe_missing_topic, describe_no_answer

ANSWER_SECONDS = 5.0
DELIVERY_SECONDS = 20.0
FLUSH_SECONDS = 10.0
_QUEUE_RECORDS = 200_000
_TURN_RECORDS = 64
"""Records sent to one Kafka partition before the next one takes its turn."""


class Output(ABC):
    """Takes records; `written` counts those that are safely stored."""

    name: str
    """The output's name in messages."""

    @abstractmethod
    def write(self, values: list[bytes], times: Int64s) -> None:
        """Write more records."""

    @abstractmethod
    def close(self) -> None:
        """Write all records that are still held."""

    @property
    @abstractmethod
    def written(self) -> int:
        """The number of records that are safely written."""


class KafkaOutput(Output):
    """A topic. Which Kafka partition a record goes to depends on its number alone."""

    def __init__(self, target: KafkaTarget) -> None:
        self._target = target
        self.name = f"{target.topic} on {target.servers}"
        self._failed = 0
        self._reason = ""
        self._sent = 0
        settings = {
            "bootstrap.servers": target.servers,
            "linger.ms": 20,
            "batch.size": 1 << 20,
            "queue.buffering.max.messages": 2 * _QUEUE_RECORDS,
            "message.timeout.ms": round(DELIVERY_SECONDS * 1000),
            "enable.idempotence": True,
            "log_level": 0,
            **dict(target.options),
        }
        callbacks: dict[str, Any] = {
            "error_cb": self._note_reason,
            "on_delivery": self._note_failure,
            # Python is called for failures alone: a call a record would take most of the time.
            "delivery.report.only.error": True,
        }
        try:
            self._producer = Producer({**settings, **callbacks})
        except KafkaException as error:
            raise ExternalError(f"generate: --kafka: {error.args[0].str()}") from error
        self._partitions = self._count_partitions()

    def _count_partitions(self) -> int:
        target = self._target
        try:
            cluster = self._producer.list_topics(timeout=ANSWER_SECONDS)
        except KafkaException as error:
            reason = f" ({self._reason})" if self._reason else ""
            where = f"generate: {target.servers}"
            problem = describe_no_answer(where, ANSWER_SECONDS, reason, "--bootstrap-servers")
            raise ExternalError(problem) from error
        topic = cluster.topics.get(target.topic)
        if topic is None or not topic.partitions:
            problem = describe_missing_topic(f"generate: {self.name}", target.topic, cluster.topics)
            raise ExternalError(problem)
        there = len(topic.partitions)
        if target.partitions is not None and there < target.partitions:
            raise ExternalError(
                f"generate: {self.name}: has {there} partitions, --partitions asks for"
                f" {target.partitions}; add some, or ask for fewer"
            )
        return there

    def write(self, values: list[bytes], times: Int64s) -> None:
        """Hand over to the client, which sends in the background."""
        producer, topic = self._producer, self._target.topic
        numbers = np.arange(self._sent, self._sent + len(values))
        partitions = (numbers // _TURN_RECORDS % self._partitions).tolist()
        produce = producer.produce
        rows = zip(values, partitions, (times // 1000).tolist(), strict=True)
        try:
            for value, partition, when in rows:
                try:
                    produce(topic, value, partition=partition, timestamp=when)
                except BufferError:  # the user's own options may leave room for less
                    self._insist(value, partition, when)
        except KafkaException as error:  # a record that is too large for the client, for one
            raise ExternalError(f"generate: {self.name}: {error.args[0].str()}") from error
        self._sent += len(values)
        producer.poll(0)
        while len(producer) > _QUEUE_RECORDS and not self._failed:
            producer.poll(0.05)
        self._check()

    def _insist(self, value: bytes, partition: int, when: int) -> None:
        """Hand a record over once there is room for it."""
        while True:
            self._producer.poll(0.05)
            self._check()
            with suppress(BufferError):
                self._producer.produce(
                    self._target.topic, value, partition=partition, timestamp=when
                )
                return

    def close(self) -> None:
        """Wait until the broker has all, for as long as it takes them."""
        deadline, left = time.monotonic() + FLUSH_SECONDS, len(self._producer)
        while left and not self._failed:
            now = self._producer.flush(0.2)
            if now < left:
                deadline, left = time.monotonic() + FLUSH_SECONDS, now
            elif time.monotonic() > deadline:
                self._failed, self._reason = left, self._reason or "it takes no more"
        self._check()

    def _check(self) -> None:
        if self._failed:
            raise ExternalError(
                f"generate: {self.name}: {self._reason}; {self.written:,} of {self._sent:,}"
                " records are there"
            )

    @property
    def written(self) -> int:
        """Records that the broker has acknowledged."""
        return self._sent - len(self._producer) - self._failed

    def _note_failure(self, error: Any, _message: Any) -> None:
        self._failed += 1
        self._reason = error.str()

    def _note_reason(self, error: Any) -> None:
        self._reason = error.str()


class LinesOutput(Output):
    """A file, a record a line."""

    def __init__(self, target: FileTarget) -> None:
        self.name = target.path
        self._records = 0
        self._bytes = 0
        try:
            self._file = Path(target.path).open("wb", buffering=0)  # noqa: SIM115 - closed by close
        except OSError as error:
            raise ExternalError(f"generate: --out: {self.name}: {error.strerror}") from error

    def write(self, values: list[bytes], times: Int64s) -> None:
        """Append the records; on an error remove what was written of them."""
        text = memoryview(b"\n".join(values) + b"\n")
        try:
            done = 0
            while done < len(text):
                done += self._file.write(text[done:]) or 0
        except OSError as error:
            with suppress(OSError):  # a device cannot be truncated
                self._file.truncate(self._bytes)
            self._file.close()
            raise ExternalError(
                f"generate: {self.name}: {error.strerror}; {self._records:,} records are in it"
            ) from error
        self._bytes += len(text)
        self._records += len(values)

    def close(self) -> None:
        """Close the file; each write was complete."""
        self._file.close()

    @property
    def written(self) -> int:
        """Records in the file."""
        return self._records


class ParquetOutput(Output):
    """Kafka's columns, for a job whose source is files of the format `parquet`."""

    _SCHEMA = pa.schema(
        {
            "key": pa.binary(),
            "value": pa.binary(),
            "topic": pa.string(),
            "partition": pa.int32(),
            "offset": pa.int64(),
            "timestamp": pa.timestamp("us", "UTC"),
        }
    )

    def __init__(self, target: FileTarget, topic: str) -> None:
        self.name = target.path
        self._topic = topic
        self._records = 0
        self._held: list[pa.Table] = []
        try:
            self._writer = pq.ParquetWriter(target.path, self._SCHEMA)
        except OSError as error:
            raise ExternalError(
                f"generate: --out: {self.name}: {_describe_error(error)}"
            ) from error

    def write(self, values: list[bytes], times: Int64s) -> None:
        """Append."""
        count = len(values)
        columns = [
            pa.nulls(count, pa.binary()),
            pa.array(values, pa.binary()),
            pa.array([self._topic] * count),
            pa.array(np.zeros(count, np.int32)),
            pa.array(np.arange(self._records, self._records + count)),
            pa.array(times).cast(pa.timestamp("us", "UTC")),
        ]
        self._held.append(pa.table(columns, schema=self._SCHEMA))
        self._records += count
        if len(self._held) >= 32:
            self._put()

    def _put(self) -> None:
        try:
            if self._held:
                self._writer.write_table(pa.concat_tables(self._held))
                self._held.clear()
        except OSError as error:
            raise self._drop_file(error) from error

    def close(self) -> None:
        """Write what is held and the file's foot."""
        self._put()
        try:
            self._writer.close()
        except OSError as error:
            raise self._drop_file(error) from error

    def _drop_file(self, error: OSError) -> ExternalError:
        # Without its foot nothing in it can be read.
        self._writer.is_open = False
        remove(self.name)
        return ExternalError(
            f"generate: {self.name}: {_describe_error(error)}; nothing of it can be kept"
        )

    @property
    def written(self) -> int:
        """Records in the file once it is closed."""
        return self._records


def _describe_error(error: OSError) -> str:
    return error.strerror or str(error).partition("Detail:")[2].strip(" .") or str(error)


def open_output(target: KafkaTarget | FileTarget, stream: str) -> Output:
    """Open the output that the target asks for."""
    if isinstance(target, KafkaTarget):
        return KafkaOutput(target)
    return (
        ParquetOutput(target, stream) if target.path.endswith(".parquet") else LinesOutput(target)
    )
