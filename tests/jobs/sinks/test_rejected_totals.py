"""A total that a sink rejects: a dead letter, and the others are written."""

import json
import random
import string
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from tests.support.dead_letters import dead_letters_in
from tests.support.oracles import START
from tests.support.running.in_process import Ran, write_lines
from tests.support.running.postgres_server import PostgresServer
from tests.support.running.topics import topic_records
from unskew.grouping.spark.journal import Journal
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.sinks.base import Batch, RejectedTotal
from unskew.jobs.sinks.postgres import Destination
from unskew.jobs.sinks.rejected_totals import RejectedTotals

pytestmark = [pytest.mark.e2e, pytest.mark.xdist_group("spark")]

TABLE = "CREATE TABLE {} (key text PRIMARY KEY, count bigint)"
# More than a row of an index may have, and nothing that compresses.
LONG = "".join(random.Random(7).choices(string.ascii_lowercase + string.digits, k=5000))


def destination(postgres: PostgresServer, table: str) -> Destination:
    url = postgres.url.removeprefix("jdbc:postgresql:///")
    return Destination(f"postgresql:///{url}", "me", None, (table,), ("key",))


def totals(rows: dict[str, int | None]) -> list[pa.RecordBatch]:
    """The rows in two batches."""
    table = pa.table({"key": list(rows), "count": pa.array(rows.values(), pa.int64())})
    return table.to_batches(max_chunksize=max(1, len(rows) // 2))


def test_postgres_writes_all_rows_but_the_one_that_it_refuses(postgres: PostgresServer) -> None:
    with postgres.connect() as connection:
        connection.execute(TABLE.format("most"))
        rows = {**{f"k{number}": number for number in range(100)}, LONG: 7, "last": 1}
        (rejected,) = destination(postgres, "most").upsert(totals(rows))
        written = dict(connection.execute("SELECT key, count FROM most").fetchall())
    assert json.loads(rejected["key"]) == {"key": LONG}
    assert rejected["reason"].startswith("index row ")
    assert written == {key: count for key, count in rows.items() if key != LONG}


def test_a_key_with_nul_is_not_taken_and_replaces_no_other_key(postgres: PostgresServer) -> None:
    symbol = "a\N{SYMBOL FOR NULL}"
    with postgres.connect() as connection:
        connection.execute(TABLE.format("nul"))
        rows: dict[str, int | None] = {"a\0": 1, symbol: 2, "b": 3}
        (rejected,) = destination(postgres, "nul").upsert(totals(rows))
        written = dict(connection.execute("SELECT key, count FROM nul").fetchall())
    assert json.loads(rejected["key"]) == {"key": "a\0"}
    assert "NUL" in rejected["reason"]
    assert written == {symbol: 2, "b": 3}


def test_rows_of_a_start_that_was_taken_over_are_not_committed(postgres: PostgresServer) -> None:
    def taken_over() -> None:
        raise ValueError("another start writes here")

    with postgres.connect() as connection:
        connection.execute(TABLE.format("fenced"))
        with pytest.raises(ValueError, match="another start"):
            destination(postgres, "fenced").upsert(totals({"a": 1, LONG: 2}), taken_over)
        assert connection.execute("SELECT count(*) FROM fenced").fetchall() == [(0,)]


@pytest.mark.slow
def test_a_table_that_refuses_everything_still_stops_the_job(postgres: PostgresServer) -> None:
    with postgres.connect() as connection:
        connection.execute(
            "CREATE TABLE none (key text PRIMARY KEY, count bigint CHECK (count < 0))"
        )
        with pytest.raises(psycopg.IntegrityError):
            destination(postgres, "none").upsert(totals({f"k{n}": n for n in range(1100)}))
        assert connection.execute("SELECT count(*) FROM none").fetchall() == [(0,)]


def kept(tmp_path: Path, *batches: list[str]) -> list[list[str]]:
    """The keys of the dead letters that a start keeps of batches with such totals."""
    journal = Journal(str(tmp_path))
    first = len(journal.batches())
    kept_totals = RejectedTotals(journal)
    dead_letters = []
    for number, keys in enumerate(batches, first):
        totals = [RejectedTotal("kafka topic", key, "large") for key in keys]
        kept_totals.keep(Batch(number, None, None, totals))  # type: ignore[arg-type]
        tables = [piece["key"].to_pylist() for piece in journal.rejected(number)]
        dead_letters.append([key.decode() for table in tables for key in table])
        if not tables:
            journal.mark_dead_letters_written(number)
    return dead_letters


def test_a_window_and_key_is_one_dead_letter_also_over_a_restart(tmp_path: Path) -> None:
    assert kept(tmp_path, ["a"], ["a", "b"], []) == [["a"], ["b"], []]
    assert kept(tmp_path, ["a", "b"], ["c"]) == [[], ["c"]]
    # It ended before another batch: its letter may not have been published.
    assert kept(tmp_path, ["c", "b"]) == [["c"]]


def test_a_damaged_list_of_them_stops_no_job(tmp_path: Path) -> None:
    kept(tmp_path, ["a"], [])
    for damage in (b"[1", b"1", b"\xff", b'[["a"]]'):
        (tmp_path / "totals-not-taken").write_bytes(damage)
        assert kept(tmp_path, ["a"]) == [["a"]]


def run(
    spark: SparkSession, folder: Path, sinks: list[dict[str, Any]], texts: list[str]
) -> tuple[Ran, list[dict[str, Any]]]:
    """A job over a file more, and its dead letters."""
    number = len(list(folder.glob("in/*")))
    rows = [{"text": text, "at": START.isoformat()} for text in texts]
    write_lines(folder / "in", f"{number}.json", rows)
    ran = Ran(
        spark,
        folder,
        "rejected",
        operator={"type": "word_count", "text": "text"},
        window={"type": "none"},
        lateness=None,
        max_key_bytes="10 KiB",
        sinks=sinks,
    )
    return ran, dead_letters_in(folder / "bad")


@pytest.mark.spark
def test_in_a_job_it_becomes_a_dead_letter(
    spark: SparkSession, postgres: PostgresServer, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    with postgres.connect() as connection:
        connection.execute(TABLE.format("totals"))
        sink = {"type": "postgres", "url": postgres.url, "table": "totals", "user": "me"}
        ran, dead_letters = run(spark, tmp_path, [sink], [f"a {LONG} b", "a"])
        written = dict(connection.execute("SELECT key, count FROM totals").fetchall())
    assert written == {"a": 2, "b": 1}
    (letter,) = dead_letters
    assert letter["reason"] == "total_not_taken"
    assert json.loads(letter["key"]) == {"key": LONG}
    about = json.loads(letter["value"])
    assert about["sink"] == "postgres totals"
    assert about["why"].startswith("index row ")
    assert all(isinstance(done, BatchDone) for done in ran.batches)


@pytest.mark.slow
@pytest.mark.spark
def test_kafka_gets_all_but_the_one_that_is_too_large(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topics(["rejected"])
    (tmp_path / "in").mkdir()
    for number in range(2):
        # The total that is too large grows: its dead letter is written once.
        write_lines(
            tmp_path / "in", f"{number}.json", [{"text": f"c {LONG}", "at": START.isoformat()}]
        )
    kafka = {
        "type": "kafka",
        "topic": "rejected",
        "bootstrap_servers": broker.address,
        "options": {"kafka.max.request.size": 8_000},
    }
    _, dead_letters = run(spark, tmp_path, [kafka], [f"a {LONG} b", "a"])
    last = {
        json.loads(message.key())["key"]: json.loads(message.value())["count"]
        for message in topic_records(broker, "rejected")
    }
    assert last == {"a": 2, "b": 1, "c": 2}
    (letter,) = dead_letters
    assert letter["reason"] == "total_not_taken"
    assert json.loads(letter["value"])["sink"] == "kafka rejected"
    assert "more than kafka.max.request.size, 8000" in json.loads(letter["value"])["why"]


@pytest.mark.slow
@pytest.mark.spark
def test_kafka_gets_all_but_the_one_that_is_too_large_for_the_topic(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topics(["small-records"], max_message_bytes="8000")
    (tmp_path / "in").mkdir()
    kafka = {"type": "kafka", "topic": "small-records", "bootstrap_servers": broker.address}
    _, dead_letters = run(spark, tmp_path, [kafka], [f"a {LONG} b", "a"])
    last = {
        json.loads(message.key())["key"]: json.loads(message.value())["count"]
        for message in topic_records(broker, "small-records")
    }
    assert last == {"a": 2, "b": 1}
    (letter,) = dead_letters
    assert "more than the topic's max.message.bytes, 8000" in json.loads(letter["value"])["why"]
