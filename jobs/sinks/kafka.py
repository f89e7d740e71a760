"""Results and dead letters as records of a Kafka topic."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from unskew.config.models.base import Servers, Topic
from unskew.config.models.kafka import KafkaOptions
from unskew.config.models.sink import Identity
from unskew.config.models.source import KafkaSource
from unskew.config.models.window import Merge, NoWindow
from unskew.config.rules.kafka import find_insecure_options, find_reading_field
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.jobs.kafka.options import make_connection_options
from unskew.jobs.kafka.topic_limits import read_message_bytes_max
from unskew.jobs.sinks.base import (
    Batch,
    DeadLetters,
    RejectedTotal,
    Sink,
    Target,
    WrittenTopic,
)

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from unskew.config.models.job import Job

# Bounds of windows are part of a Kafka key: it must be the same in a session of another zone.
_IN_UTC = {"timeZone": "UTC"}
_OF_RECORD = ("key", "value")
"""What a dead letter has as the record had it; its other columns are headers."""
# The Kafka client's own limit is 1 MiB: a dead letter above it would end every attempt to send it.
_REQUEST_BYTES = 16 << 20
# What the client sends at most if it is not told otherwise, and what a record has around its key
# and value.
_MAX_REQUEST = "kafka.max.request.size"
_CLIENT_REQUEST_BYTES = 1 << 20
# What a topic takes at most if its brokers do not say otherwise.
_TOPIC_BYTES = 1 << 20
_TOO_LARGE = "RecordTooLargeException"
CUT_FROM_BYTES = "cut_from_bytes"
"""A header of a dead letter that was too large for its topic: the bytes of its key and value."""
# Beside key, value and headers' values; of the rest a key that was cut has this part at most.
_DEAD_LETTER_BYTES = 1024
_KEY_PART = 4
_OVERHEAD_BYTES = 128
# A key is in a record's key and value, and JSON may write six bytes for one; the rest has columns
# of a fixed size.
_JSON_BYTES = 12
_OTHER_BYTES = 4096
_OPTIONS = {"kafka.compression.type": "zstd"}


class KafkaTarget(Target):
    """A topic, and the brokers that have it."""

    holds: ClassVar[str] = "results"
    """The kind of its records, for messages."""

    topic: Topic = Field(examples=["word-counts"])
    """The topic; make it a compacted one, so that a replay converges to the exact totals."""
    bootstrap_servers: Servers | None = Field(default=None, examples=["127.0.0.1:9092"])
    """The brokers to ask first; without it, those of the source."""
    options: KafkaOptions = Field(default_factory=dict, examples=[_OPTIONS])
    """Options for the Kafka client by their own names with `kafka.` before them; without any, and
    with the source's brokers, those of the source."""

    def identity(self) -> Identity:
        return Identity("topic", (self.bootstrap_servers, self.topic))

    def topics(self, job: "Job") -> Sequence[WrittenTopic]:
        return [WrittenTopic("topic", self.topic, self.make_client_options(job), {})]

    def make_client_options(self, job: "Job") -> dict[str, str]:
        """Make the options of Spark's connector; the source's where the brokers are the same."""
        servers, options = self.bootstrap_servers, self.options
        if isinstance(job.source, KafkaSource):
            shared = servers in (None, job.source.bootstrap_servers)
            options = options or (job.source.options if shared else {})
            servers = servers or job.source.bootstrap_servers
        assert servers is not None, "checked by knows_its_brokers"
        return {"topic": self.topic, **make_connection_options(servers, options)}

    @agrees_with("source")
    def knows_its_brokers(self, source: Any) -> Iterator[Contradiction]:
        """Without `bootstrap_servers`, the source must be Kafka."""
        if self.bootstrap_servers is None and not isinstance(source, KafkaSource):
            yield Contradiction(
                ("bootstrap_servers",),
                f"missing, and source.type {source.type} has none to take over",
                'add it, e.g. "bootstrap_servers: 127.0.0.1:9092"',
            )

    @agrees_with("source")
    def is_not_read_again(self, source: Any) -> Iterator[Contradiction]:
        """The source must not read this topic: records would go around for ever."""
        if not isinstance(source, KafkaSource):
            return
        if self.bootstrap_servers not in {None, source.bootstrap_servers}:
            return
        if read_by := find_reading_field(source, self.topic):
            yield Contradiction(
                ("topic",),
                f'"{self.topic}" is read by source.{read_by}: {self.holds} would be read again',
                "choose another topic",
            )

    @agrees_with()
    def is_secured_as_a_whole(self) -> Iterator[Contradiction]:
        """SASL and TLS options work only with the protocol that asks for them."""
        yield from find_insecure_options(self.options, ("options",))


class KafkaSink(KafkaTarget, Sink):
    """Writes to a Kafka topic.

    Results as records of a Kafka topic, keyed by window and key.
    """

    def topics(self, job: "Job") -> Sequence[WrittenTopic]:
        # The last total of each key stays; a window's key never comes again, so it may get old.
        policy = "compact" if isinstance(job.window, NoWindow) else "compact,delete"
        options = self.make_client_options(job)
        return [WrittenTopic("topic", self.topic, options, {"cleanup.policy": policy})]

    def replaces_results(self, merge: Merge) -> bool:
        return True  # in a compacted topic

    def stream(self, results: "DataFrame", job: "Job") -> "DataStreamWriter | None":
        # Spark's own writer cannot leave a row out: only where none can be too large.
        if self._may_be_too_large(results, job):
            return None
        writer = make_kafka_rows(results, self.result_key(job)).writeStream.format("kafka")
        return writer.options(**self.make_client_options(job))

    def write(self, results: "DataFrame", batch: Batch) -> None:
        rows = make_kafka_rows(results, self.result_key(batch.job))
        if self._may_be_too_large(results, batch.job):
            self._write_apart(rows, batch)
        else:
            self._write(rows, batch)

    def _write(self, rows: "DataFrame", batch: Batch) -> None:
        rows.write.format("kafka").options(**self.make_client_options(batch.job)).save()

    def _write_apart(self, rows: "DataFrame", batch: Batch) -> None:
        """Write the records that Kafka's client sends; the others are not taken."""
        from pyspark.sql import functions as sf

        most, limit = self._find_record_bytes_max(batch.job)
        size = sf.octet_length("key") + sf.octet_length("value") + sf.lit(_OVERHEAD_BYTES)
        # Kept, because they are read twice, and to compute them again would be the whole batch.
        cached = rows.withColumn("size", size).persist()
        try:
            self._write(cached.where(sf.col("size") <= most).drop("size"), batch)
            for row in cached.where(sf.col("size") > most).toLocalIterator():
                why = f"{row['size']} bytes are more than {limit}, {most}"
                batch.rejected_totals.append(RejectedTotal(f"kafka {self.topic}", row["key"], why))
        finally:
            cached.unpersist()

    def _may_be_too_large(self, results: "DataFrame", job: "Job") -> bool:
        bound = job.max_key_bytes.bytes * _JSON_BYTES + _OTHER_BYTES
        unbounded = _has_unbounded_columns(results, self.result_key(job))
        return unbounded or bound > self._find_record_bytes_max(job)[0]

    def _find_record_bytes_max(self, job: "Job") -> tuple[int, str]:
        """Find the largest record that client and topic take, and whose limit that is."""
        options = self.make_client_options(job)
        sent = int(options.get(_MAX_REQUEST, _CLIENT_REQUEST_BYTES))
        taken = read_message_bytes_max(options, self.topic)
        if taken is None or sent <= taken:
            return sent, _MAX_REQUEST
        return taken, "the topic's max.message.bytes"


class KafkaDeadLetters(KafkaTarget, DeadLetters):
    """Writes rejected records to a Kafka topic.

    Rejected records as records of a Kafka topic.
    """

    holds: ClassVar[str] = "dead letters"

    topic: Topic = Field(examples=["word-count-dead-letters"])
    """The topic; none that the job reads or writes otherwise. A dead letter is a record with some
    200 bytes of headers, with `on_error: dead_letter` also a key: let the topic's own
    `max.message.bytes` be no smaller than the source topic's and those. A dead letter that is
    larger is cut, and has a header more, `cut_from_bytes`; the whole record is where its other
    headers say."""
    options: KafkaOptions = Field(default_factory=dict, examples=[_OPTIONS])
    """Options for the Kafka client by their own names with `kafka.` before them; without any, and
    with the source's brokers, those of the source. `kafka.max.request.size` is 16 MiB here if it
    is not set."""

    @agrees_with("sinks")
    def is_apart_from_results(self, sinks: list[Any]) -> Iterator[Contradiction]:
        """Dead letters need another topic than results."""
        for index, sink in enumerate(sinks):
            if (sink.type, sink.identity()) == (self.type, self.identity()):
                yield Contradiction(
                    ("topic",),
                    f'"{self.topic}" is also sinks[{index}].topic: results and rejected records'
                    " would mix",
                    "choose another topic",
                )

    def write(self, records: "DataFrame", batch: Batch, *, more: bool = False) -> None:
        from py4j.protocol import Py4JError
        from pyspark.errors import PySparkException

        options = {
            _MAX_REQUEST: str(_REQUEST_BYTES),
            **self.make_client_options(batch.job),
            "includeHeaders": "true",
        }
        try:
            _send(records, options)
        except (PySparkException, Py4JError) as error:
            if _TOO_LARGE not in str(error):
                raise
            # Only now: a record that is too large as it is may be sent compressed.
            taken = read_message_bytes_max(self.make_client_options(batch.job), self.topic)
            most = min(int(options[_MAX_REQUEST]), taken or _TOPIC_BYTES)
            _send(_cut(records, most), options)

    def read(self, job: "Job") -> Iterator[Mapping[str, Any]]:
        from unskew.jobs.sinks.stored_dead_letters import read_topic

        return read_topic(self.topic, self.make_client_options(job), f"dead-letters: {job.name}")


def _send(records: "DataFrame", options: dict[str, str]) -> None:
    """Write rejected records: what is not of the record itself as headers."""
    from pyspark.sql import functions as sf

    headers = [
        sf.struct(
            sf.lit(name).alias("key"), sf.col(name).cast("string").cast("binary").alias("value")
        )
        for name in records.columns
        if name not in _OF_RECORD
    ]
    made = sf.array(*headers)
    if CUT_FROM_BYTES in records.columns:
        made = sf.filter(
            made, lambda each: (each["key"] != CUT_FROM_BYTES) | each["value"].isNotNull()
        )
    rows = records.select("key", "value", made.alias("headers"))
    rows.write.format("kafka").options(**options).save()


def _cut(records: "DataFrame", most: int) -> "DataFrame":
    """The records with keys and values cut such that no dead letter has more bytes."""
    from pyspark.sql import functions as sf

    def size(name: str) -> "Column":
        return sf.coalesce(sf.octet_length(sf.col(name)), sf.lit(0))

    others = [name for name in records.columns if name not in _OF_RECORD]
    texts = records.select("*", *[sf.col(name).cast("string").alias(f"_{name}") for name in others])
    room = sf.lit(most - _DEAD_LETTER_BYTES) - sum((size(f"_{name}") for name in others), sf.lit(0))
    whole = size("key") + size("value")
    key_room = sf.least(size("key"), (room / _KEY_PART).cast("int"))
    is_cut = whole > room
    return texts.select(
        sf.when(is_cut, sf.substring("key", sf.lit(1), key_room))
        .otherwise(sf.col("key"))
        .alias("key"),
        sf.when(is_cut, sf.substring("value", sf.lit(1), room - key_room))
        .otherwise(sf.col("value"))
        .alias("value"),
        *others,
        sf.when(is_cut, whole).alias(CUT_FROM_BYTES),
    )


def _has_unbounded_columns(results: "DataFrame", key: Sequence[str]) -> bool:
    """May a column beside the key be as large as it likes?"""
    from pyspark.sql.types import AtomicType, BinaryType, StringType, VariantType

    others = [field.dataType for field in results.schema if field.name not in key]
    return any(
        not isinstance(kind, AtomicType) or isinstance(kind, BinaryType | StringType | VariantType)
        for kind in others
    )


def make_kafka_rows(results: "DataFrame", key: Sequence[str]) -> "DataFrame":
    """Make Kafka records of results, keyed by window and key: a compacted topic keeps the last."""
    from pyspark.sql import functions as sf

    return results.select(
        sf.to_json(sf.struct(*key), _IN_UTC).alias("key"),
        sf.to_json(sf.struct("*"), _IN_UTC).alias("value"),
    )
