"""Where results go, and where records go that cannot be processed."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from unskew.config.models.base import Location, Model, Servers, Topic, rule_error
from unskew.config.models.kafka import KafkaOptions
from unskew.config.types.secrets import Secret

_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")
_CREDENTIALS = re.compile(r"[?&;](user|password)=|//[^/@\s]*@", re.IGNORECASE)


def _table(text: str) -> str:
    parts = text.split(".")
    if len(parts) > 2 or not all(_IDENTIFIER.fullmatch(part) for part in parts):
        raise rule_error("a table's name, table or schema.table", "letters, digits, underscores")
    return text


def _view(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise rule_error("a table's name", "letters, digits, underscores")
    return text


def _jdbc(text: str) -> str:
    if not text.startswith("jdbc:postgresql:"):
        raise rule_error("a PostgreSQL address", "e.g. jdbc:postgresql://host:5432/database")
    if _CREDENTIALS.search(text):
        raise rule_error(
            "an address without user and password", "write user and password as fields", hide=True
        )
    return text


class KafkaSink(Model):
    """Results as records of a Kafka topic, keyed by window and key."""

    type: Literal["kafka"]
    """Writes to a Kafka topic."""
    topic: Topic
    """The topic; make it a compacted one, so that a replay converges to the exact totals."""
    bootstrap_servers: Servers | None = Field(default=None, examples=["127.0.0.1:9092"])
    """The brokers to ask first; without it, those of the source."""
    options: KafkaOptions
    """Options for the Kafka client by their own names with `kafka.` before them; without any, and
    with the source's brokers, those of the source."""


class FilesSink(Model):
    """Complete windows as files, each exactly once."""

    type: Literal["files"]
    """Writes files; needs `merge.output: append`."""
    path: Location
    """The folder, a path or a URI; each batch is a folder `batch_id=N` in it. A new checkpoint
    counts from 0, and so needs a folder of its own."""
    format: Literal["parquet", "json"] = "parquet"
    """The files' format."""


class PostgresSink(Model):
    """Results as rows of a PostgreSQL table, inserted or updated by window and key."""

    type: Literal["postgres"]
    """Inserts or updates rows of a table."""
    url: Annotated[str, AfterValidator(_jdbc)] = Field(
        examples=["jdbc:postgresql://127.0.0.1:5432/unskew"]
    )
    """The database as a JDBC address, without user and password."""
    table: Annotated[str, AfterValidator(_table)]
    """The table, which must have a unique key over window and key."""
    user: Annotated[str, Field(min_length=1, max_length=63)]
    """The database user."""
    password: Secret | None = None
    """The user's password, as a reference: ${env:NAME} or ${file:/path}."""


class ConsoleSink(Model):
    """Results on the terminal."""

    type: Literal["console"]
    """Prints each micro-batch."""
    rows: Annotated[int, Field(ge=1, le=100_000)] = 20
    """At most this many rows a micro-batch."""


class MemorySink(Model):
    """Results in the driver's memory, for tests and notebooks."""

    type: Literal["memory"]
    """Keeps results in a table of the Spark session."""
    table: Annotated[str, AfterValidator(_view)]
    """The table's name."""


Sink = Annotated[
    KafkaSink | FilesSink | PostgresSink | ConsoleSink | MemorySink, Field(discriminator="type")
]


class KafkaDeadLetters(Model):
    """Bad records as records of a Kafka topic."""

    type: Literal["kafka"]
    """Writes them to a Kafka topic."""
    topic: Topic
    """The topic; none that the job reads or writes otherwise. A letter is a record with some 200
    bytes of headers: let the topic's own `max.message.bytes` be no smaller than the source
    topic's and those."""
    bootstrap_servers: Servers | None = Field(default=None, examples=["127.0.0.1:9092"])
    """The brokers to ask first; without it, those of the source."""
    options: KafkaOptions
    """Options for the Kafka client by their own names with `kafka.` before them; without any, and
    with the source's brokers, those of the source. `kafka.max.request.size` is 16 MiB here if it
    is not set."""


class FilesDeadLetters(Model):
    """Bad records as files."""

    type: Literal["files"]
    """Writes them to files."""
    path: Location
    """The folder, a path or a URI; each batch is a folder `batch_id=N` in it. A new checkpoint
    counts from 0, and so needs a folder of its own."""
    format: Literal["parquet", "json"] = "json"
    """The files' format."""


DeadLetters = Annotated[KafkaDeadLetters | FilesDeadLetters, Field(discriminator="type")]
