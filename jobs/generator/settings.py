"""The settings of a stream, from a command line that is right."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The stream itself; times in microseconds, shares from 0 to 1."""

    stream: str
    seed: int
    keys: int
    skew: float
    drift: int
    rate: float
    records: int | None
    """None: until it is stopped."""
    start: int
    """Event time of the first record, since 1970."""
    flare: float
    flare_every: int
    flare_for: int
    rejected: float
    late: float
    late_by: int
    words: int
    users: int
    trace: str | None = None
    """The trace that the stream `keys` is drawn from."""


@dataclass(frozen=True)
class OracleSettings:
    """Where the exact totals go, and of which windows."""

    path: str
    window: int | None
    slide: int | None


@dataclass(frozen=True)
class KafkaTarget:
    """A Kafka topic to write to."""

    servers: str
    topic: str
    partitions: int | None
    """How many partitions the topic must have."""
    options: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class FileTarget:
    """A file: a record a line, or with the ending .parquet Kafka's columns."""

    path: str


@dataclass(frozen=True)
class Plan:
    """The settings of one run."""

    settings: Settings
    target: KafkaTarget | FileTarget
    oracle: OracleSettings | None
    paced: bool
