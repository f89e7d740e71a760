"""The PostgreSQL sink against a real server."""

import datetime as dt
import decimal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pyspark.sql import SparkSession

from tests.support.running.job_process import finished, job_words, make_topics, produce
from tests.support.running.postgres_server import PostgresServer
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.postgres import PostgresSink

pytestmark = [pytest.mark.e2e, pytest.mark.spark, pytest.mark.xdist_group("spark")]

START = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
END = START + dt.timedelta(minutes=1)
SCHEMA = (
    "window_start TIMESTAMP, window_end TIMESTAMP, key STRING, volume BIGINT, vwap DECIMAL(38,18)"
)


@pytest.fixture(scope="module")
def server(postgres: PostgresServer) -> Iterator[psycopg.Connection[Any]]:
    """A connection to the server."""
    with postgres.connect() as connection:
        yield connection


def sink(server: psycopg.Connection[Any], table: str) -> PostgresSink:
    """A sink by the server's socket."""
    return PostgresSink(
        url=f"jdbc:postgresql:///{server.info.dbname}?host={server.info.host}",
        table=table,
        user=server.info.user,
    )


def job_of(*, windowed: bool) -> Job:
    """A job with windows, or with running totals."""
    running = {"window": {"type": "none"}, "lateness": None, "merge": {"output": "update"}}
    return load_job("word_count", {} if windowed else running)


def row(key: str | None, volume: int | None, price: str) -> tuple[Any, ...]:
    return START, END, key, volume, decimal.Decimal(price)


def test_totals_are_inserted_then_updated_and_a_replay_changes_nothing(
    server: psycopg.Connection[Any], spark: SparkSession
) -> None:
    server.execute(
        "CREATE TABLE vwap (window_start timestamptz, window_end timestamptz, key text,"
        " volume bigint, vwap numeric(38,18), PRIMARY KEY (window_start, window_end, key))"
    )
    first = [row('A "quoted", \n key', 1, "1.5"), row("", None, "0.000000000000000001")]
    later = [row("", 7, "99999999999999999999.5"), row("C\\N", 2, "3")]
    batch = Batch(0, job_of(windowed=True), spark)
    for rows in (first, later, later):
        frame = spark.createDataFrame(rows, SCHEMA).repartition(3)
        sink(server, "vwap").write(frame, batch)

    written = server.execute("SELECT * FROM vwap ORDER BY key").fetchall()
    assert written == [later[0], first[0], later[1]]


def test_what_the_table_lacks_is_said_before_the_start(server: psycopg.Connection[Any]) -> None:
    server.execute("CREATE TABLE plain (key text, count bigint)")
    server.execute('CREATE TABLE "Keyed" (key text PRIMARY KEY, count bigint)')
    away = sink(server, "plain").model_copy(update={"url": "jdbc:postgresql://127.0.0.1:1/x"})

    windowed, running = job_of(windowed=True), job_of(windowed=False)
    assert list(sink(server, "gone").problems(windowed)) == [
        "postgres: gone: no such table; make it, with PRIMARY KEY (window_start, window_end, key)"
    ]
    assert list(sink(server, "plain").problems(running)) == [
        "postgres: plain: has no unique key over (key) alone; add one"
    ]
    assert list(sink(server, "Keyed").problems(running)) == []
    assert list(sink(server, "Keyed").problems(windowed)) == [
        "postgres: Keyed: has no unique key over (window_start, window_end, key) alone; add one"
    ]
    (problem,) = away.problems(running)
    assert "refused" in problem
    assert problem.endswith("check url, user and password")


@pytest.mark.slow
def test_a_job_keeps_its_running_totals_in_a_table(
    server: psycopg.Connection[Any], broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, "to-postgres")
    counts = produce(broker, "to-postgres", 500, seed=3)
    server.execute("CREATE TABLE words (key text PRIMARY KEY, count bigint)")
    where = sink(server, "words")
    target = f"{{type: postgres, url: '{where.url}', table: words, user: {where.user}}}"
    words = job_words(broker.address, tmp_path, "to-postgres", sinks=f"[{target}]")

    code, _, errors = finished(words, "--available-now")

    assert code == 0, errors
    assert dict(server.execute("SELECT key, count FROM words").fetchall()) == counts


def test_rights_that_the_user_lacks_are_said_before_the_start(
    server: psycopg.Connection[Any], spark: SparkSession
) -> None:
    server.execute("CREATE TABLE owned (key text PRIMARY KEY, count bigint)")
    server.execute(f"REVOKE TEMP ON DATABASE {server.info.dbname} FROM PUBLIC")
    server.execute("CREATE ROLE poor LOGIN")
    server.execute("GRANT SELECT ON owned TO poor")
    server.commit()
    of_poor = sink(server, "owned").model_copy(update={"user": "poor"})
    running = job_of(windowed=False)
    assert list(of_poor.problems(running)) == [
        (
            "postgres: owned: poor may not make temporary tables, through which rows are written;"
            " GRANT TEMP ON DATABASE"
        ),
        "postgres: owned: poor lacks INSERT, UPDATE on it; GRANT INSERT, UPDATE",
    ]
    # What the page says is enough, to the last right.
    server.execute(f"GRANT TEMP ON DATABASE {server.info.dbname} TO poor")
    server.execute("GRANT INSERT (key, count), UPDATE (key, count) ON owned TO poor")
    server.commit()
    assert list(of_poor.problems(running)) == []
    of_poor.write(
        spark.createDataFrame([("a", 1)], "key STRING, count BIGINT"), Batch(0, running, spark)
    )
    server.commit()
    assert server.execute("SELECT * FROM owned").fetchall() == [("a", 1)]
