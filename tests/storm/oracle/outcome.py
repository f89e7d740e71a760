"""What a job wrote, read back and compared with what it must have written."""

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
from confluent_kafka import Consumer, TopicPartition
from psycopg import sql
from psycopg.rows import dict_row

from tests.storm.oracle.expected import DeadLetters, Outcome, Totals, millis
from tests.storm.oracle.world import World

_TIMES = frozenset({"window_start", "window_end", "first_seen", "last_seen", "at"})
_RESULT_KEY = ("window_start", "window_end", "key")
_COLUMNS = {
    "word_count": "count bigint",
    "vwap": "vwap numeric, volume numeric, trades bigint, high numeric, low numeric,"
    " open numeric, close numeric",
    "aggregate": "trades bigint, volume bigint, lowest numeric, first_user text, users bigint",
    "hashtags": "posts bigint, users bigint, first_seen timestamptz, last_seen timestamptz",
}
_SHOWN = 5
_READ_SECONDS = 60.0


def postgres_columns(world: World) -> str:
    """The columns of a table for the world's totals."""
    result_key = "key text PRIMARY KEY"
    if world.windowed:
        result_key = (
            "window_start timestamptz, window_end timestamptz, key text,"
            " PRIMARY KEY (window_start, window_end, key)"
        )
    return f"{result_key}, {_COLUMNS[world.operator]}"


def differences(want: Outcome, got: Outcome, *, letters_once: bool) -> list[str]:
    """Lines that say what is wrong; none if all is as it must be.

    Kafka has each dead letter at least once, a folder of files exactly once.
    """
    lines = _differing("total", want.totals, got.totals)
    had: DeadLetters = (
        got.dead_letters if letters_once else Counter(dict.fromkeys(got.dead_letters, 1))
    )
    return lines + _differing("dead letter", dict(want.dead_letters), dict(had))


def _differing(what: str, want: dict[Any, Any], got: dict[Any, Any]) -> list[str]:
    kinds = {
        "missing": [
            f"{result_key}: {want[result_key]}" for result_key in want if result_key not in got
        ],
        "too many": [
            f"{result_key}: {got[result_key]}" for result_key in got if result_key not in want
        ],
        "wrong": [
            f"{result_key}: {got[result_key]} instead of {want[result_key]}"
            for result_key in want
            if result_key in got and got[result_key] != want[result_key]
        ],
    }
    return [
        f"{len(read)} {what}s {kind}, such as {'; '.join(read[:_SHOWN])}"
        for kind, read in kinds.items()
        if read
    ]


def plain_rows(rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Rows with their times as milliseconds."""
    for row in rows:
        yield {name: _plain(name, value) for name, value in row.items()}


def totals_of(rows: Iterable[dict[str, Any]], *, once: bool) -> Totals:
    """Rows of results by window and key: each only `once`, or else the last one counts."""
    read: Totals = {}
    for plain in plain_rows(rows):
        result_key = tuple(plain.pop(name) for name in _RESULT_KEY if name in plain)
        if once and result_key in read:
            plain["written"] = "more than once"
        read[result_key] = plain
    return read


def _plain(name: str, value: Any) -> Any:
    if name in _TIMES:
        return millis(value if isinstance(value, datetime) else datetime.fromisoformat(value))
    return value


def file_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of all batches in a folder."""
    for path in sorted(folder.glob("batch_id=*/part-*.parquet")):
        yield from parquet_rows(path)


def parquet_rows(path: Path) -> Iterator[dict[str, Any]]:
    """The rows of a file, with times in UTC."""
    for row in pq.read_table(path, partitioning=None).to_pylist():
        yield {
            name: value.replace(tzinfo=value.tzinfo or UTC)
            if isinstance(value, datetime)
            else value
            for name, value in row.items()
        }


def table_rows(connection: psycopg.Connection[Any], table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table."""
    with connection.cursor(row_factory=dict_row) as cursor:
        yield from cursor.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier(table)))


def topic_rows(messages: Iterable[Any]) -> Iterator[dict[str, Any]]:
    """Results in a topic."""
    for message in messages:
        yield json.loads(message.value(), parse_float=Decimal)


def file_letters(folder: Path) -> DeadLetters:
    """Dead letters in a folder."""
    return Counter((row["partition"], row["offset"], row["reason"]) for row in file_rows(folder))


def topic_letters(messages: Iterable[Any]) -> DeadLetters:
    """Dead letters in a topic, by their headers."""
    read: DeadLetters = Counter()
    for message in messages:
        headers = {name: value.decode() for name, value in message.headers()}
        read[int(headers["partition"]), int(headers["offset"]), headers["reason"]] += 1
    return read


def messages_of(address: str, topic: str) -> list[Any]:
    """All messages of a topic with one partition, oldest first."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "storm", "log_level": 0})
    try:
        whole = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(whole, timeout=60)
        consumer.assign([whole])
        read: list[Any] = []
        deadline = time.monotonic() + _READ_SECONDS
        while end and (not read or read[-1].offset() + 1 < end):
            # It waits for this number of messages or this time, whichever comes first.
            messages = consumer.consume(10_000, timeout=0.5)
            assert messages or time.monotonic() < deadline, f"{topic} ends early"
            assert all(message.error() is None for message in messages)
            read += messages
        return read
    finally:
        consumer.close()
