"""Where records come from: Kafka, or files for replays and backfills."""

from typing import Annotated, ClassVar, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from unskew.config.models.base import Location, Model, Servers, Topic
from unskew.config.models.kafka import KafkaOptions
from unskew.config.types.units import ByteSize
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.printed import show

OFFSET_EARLIEST = -2
RECORDS_MAX = 1_000_000_000

Offset = Annotated[int, Field(ge=OFFSET_EARLIEST)]
Offsets = dict[
    Topic, Annotated[dict[Annotated[int, Field(ge=0, le=100_000)], Offset], Field(min_length=1)]
]


def _start_form(value: object) -> str:
    return "by-topic" if isinstance(value, dict) else "word"


def _word(value: object) -> object:
    if value in ("earliest", "latest"):
        return value
    raise make_rule_error(
        'earliest, latest, or offsets as "topic: {partition: offset}"', "write start: earliest"
    )


V = TypeVar("V", str, int)


def _distinct(values: list[V]) -> list[V]:
    seen: set[V] = set()
    for value in values:
        if value in seen:
            raise make_rule_error(f"each only once ({show(value)} is a duplicate)", "remove one")
        seen.add(value)
    return values


Partitions = Annotated[
    list[Annotated[int, Field(ge=0, le=100_000)]], Field(min_length=1), AfterValidator(_distinct)
]
Start = Annotated[
    Annotated[Literal["earliest", "latest"], BeforeValidator(_word), Tag("word")]
    | Annotated[Offsets, Tag("by-topic")],
    Discriminator(_start_form),
]


class KafkaSource(Model):
    """Records of Kafka topics; `subscribe`, `pattern` or `assign` says which."""

    exclusive: ClassVar = (("subscribe", "pattern", "assign"),)
    needed: ClassVar = ("subscribe", "pattern", "assign")

    type: Literal["kafka"]
    """Reads from Kafka."""
    bootstrap_servers: Servers = Field(examples=["127.0.0.1:9092"])
    """The brokers to ask first, as host:port with commas between."""
    subscribe: Annotated[list[Topic], Field(min_length=1), AfterValidator(_distinct)] | None = None
    """The topics to read, all partitions of each."""
    pattern: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    """A Java regular expression: read every topic whose whole name matches it."""
    assign: Annotated[dict[Topic, Partitions], Field(min_length=1)] | None = None
    """The partitions to read, by topic."""
    start: Start = "earliest"
    """Where a job without a checkpoint begins: earliest, latest, or offsets by topic and partition
    (-2 is earliest, -1 latest). A job that has a checkpoint goes on from there."""
    records_per_batch: Annotated[int, Field(ge=1, le=RECORDS_MAX)] | None = None
    """At most this many records a micro-batch; without it, all there are."""
    split: bool = True
    """Let several tasks share a large Kafka partition."""
    records_per_task: Annotated[int, Field(ge=1, le=RECORDS_MAX)] | None = None
    """With `split`: at most this many records of a Kafka partition a task; without it, sized from
    the batch and the cores. With `grouping: local`, whose tasks read several pieces each, a
    piece."""
    fail_on_data_loss: bool = True
    """Stop when records are gone that the checkpoint expects (retention, a topic made again)."""
    options: KafkaOptions
    """Options for the Kafka client by their own names with `kafka.` before them, such as
    `kafka.security.protocol`; secrets only as references."""


class FilesSource(Model):
    """Records from files, for replays and backfills."""

    exclusive: ClassVar = (("files_per_batch", "bytes_per_batch"),)

    type: Literal["files"]
    """Reads files."""
    path: Location
    """A folder or a glob of files; new files in it are read as they appear."""
    format: Literal["lines", "parquet"] = "lines"
    """`lines`: each line is a record's value; its topic is the file, its offset where in it the
    part begins that a task reads: all lines of that part share it. `parquet`: files with Kafka's
    own columns (key, value, topic, partition, offset, timestamp), as an archive of a topic has
    them."""
    files_per_batch: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """At most this many files a micro-batch."""
    bytes_per_batch: ByteSize | None = None
    """At most this many bytes a micro-batch, in whole files."""


Source = Annotated[KafkaSource | FilesSource, Field(discriminator="type")]
