"""An operator that raises on a row: the row is found, named, or set apart."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.dead_letters import dead_letters_in
from tests.support.fragile_operator import FRAGILE
from tests.support.installed import install_module
from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.config.models.operator import OperatorOptions
from unskew.jobs.engine.service import Service
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.operators.user_code.failing_rows import describe_failure, make_partials
from unskew.jobs.operators.user_code.rows import RowOperator

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
ENTRY_POINTS = """[unskew.operators]
fragile = user_fragile:Fragile
fragile_words = user_fragile:FragileWords
"""
TEXTS = (("u", "one"), ("u", "boom"), ("v", "two"), ("v", "boom"), ("u", "three"), (None, "x"))


class Fragile(RowOperator):
    """Counts keys, and raises on two of them."""

    Options = OperatorOptions
    key = "key"
    partial_columns: Mapping[str, str] = {}
    merge: Mapping[str, str] = {}

    @property
    def _types(self) -> dict[str, pa.DataType]:  # type: ignore[override]
        return {"count": pa.int64()}

    def start(self) -> int:
        return 0

    def add(self, state: int, row: Any) -> int:
        if row.key.startswith("bad"):
            raise KeyError(row.key)
        return state + 1

    def result(self, state: int) -> dict[str, int]:
        return {"count": state}


def rows(keys: list[str]) -> pa.Table:
    return pa.table(
        {
            "key": keys,
            "key_hash": pa.array([hash(key) for key in keys], pa.int64()),
            "pane": pa.array([0] * len(keys), pa.int64()),
            "event_time": pa.array([AT] * len(keys), pa.timestamp("us", "UTC")),
        }
    )


def test_all_rows_but_those_that_raise_are_in_partials() -> None:
    keys = ["a", "b", "bad 1", "a", "c", "bad 2", "a"]
    parts = list(make_partials(Fragile(OperatorOptions()), rows(keys)))
    failed = [part for part in parts if part.partials is None]
    counts: dict[str, int] = {}
    for part in parts:
        for row in part.partials.to_pylist() if part.partials else ():
            counts[row["key"]] = counts.get(row["key"], 0) + row["count"]
    assert counts == {"a": 3, "b": 1, "c": 1}
    assert [part.rows["key"].to_pylist() for part in failed] == [["bad 1"], ["bad 2"]]


def test_rows_that_raise_nothing_are_one_part() -> None:
    assert len(list(make_partials(Fragile(OperatorOptions()), rows(["a"] * 1000)))) == 1


def test_the_message_has_error_file_line_and_row() -> None:
    operator = Fragile(OperatorOptions())
    (part,) = make_partials(operator, rows([f"bad {'x' * 100}"]))
    line = Fragile.add.__code__.co_firstlineno + 2
    assert describe_failure(operator, part) == (
        f"operator Fragile: KeyError: 'bad {'x' * 100}' ({__file__}:{line})"
        f' on a row with key "bad {"x" * 76}..." at 2026-03-01T12:00:00+00:00'
    )


@pytest.fixture
def installed(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The operator of a user, as pip would leave it, here and with Spark's workers."""
    module = install_module(tmp_path, monkeypatch, "user_fragile", ENTRY_POINTS, FRAGILE)
    spark.sparkContext.addPyFile(str(module))
    return module


def service_of(
    spark: SparkSession,
    folder: Path,
    texts: Sequence[tuple[str | None, str]] = TEXTS,
    **changes: Any,
) -> Service:
    (folder / "in").mkdir()
    lines = [json.dumps({"user": u, "text": text, "at": AT.isoformat()}) for u, text in texts]
    (folder / "in" / "1.json").write_text("\n".join(lines))
    settings = {
        "source": {"type": "files", "path": str(folder / "in")},
        "decode": {"type": "json", "schema": "user STRING, text STRING, at STRING"},
        "operator": {"type": "fragile"},
        "event_time": "at",
        "grouping": {"type": "shuffle"},
        "partitions": 2,
        "window": {"type": "none"},
        "lateness": None,
        "merge": {"partitions": 1},
        "trigger": {"type": "available_now"},
        "sinks": [{"type": "memory", "table": "fragile"}],
        "dead_letters": {"type": "files", "path": str(folder / "dead_letters")},
        "checkpoint": str(folder / "checkpoint"),
        **changes,
    }
    return Service(load_job("word_count", settings), spark)


@pytest.mark.spark
@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("grouping", ["shuffle", pytest.param("none", marks=pytest.mark.slow)])
def test_a_job_may_go_on_without_the_record(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    changes = {"on_error": "dead_letter", "grouping": {"type": grouping}}
    service_of(spark, tmp_path, **changes).run()
    rows = spark.table("fragile").orderBy("key").collect()
    assert [(row.key, row.texts) for row in rows] == [("u", 2), ("v", 1)]
    dead_letters = dead_letters_in(tmp_path / "dead_letters")
    assert sorted((each["reason"], json.loads(each["value"])["text"]) for each in dead_letters) == [
        ("null_key", "x"),
        ("operator_failed", "boom"),
        ("operator_failed", "boom"),
    ]


@pytest.mark.spark
@pytest.mark.usefixtures("installed")
def test_of_a_record_with_several_keys_the_dead_letter_names_the_key_and_the_others_count(
    spark: SparkSession, tmp_path: Path
) -> None:
    texts = [("u", "one boom two bang"), ("u", "two")]
    changes = {"on_error": "dead_letter", "operator": {"type": "fragile_words"}}
    service_of(spark, tmp_path, texts, **changes).run()
    rows = spark.table("fragile").collect()
    assert {row.key: row.texts for row in rows} == {"one": 1, "two": 2}
    dead_letters = dead_letters_in(tmp_path / "dead_letters")
    assert sorted(
        (each["reason"], each["failed_key"], json.loads(each["value"])["text"])
        for each in dead_letters
    ) == [("operator_failed", key, texts[0][1]) for key in ("bang", "boom")]


@pytest.mark.spark
def test_by_default_the_job_stops_with_one_line(
    spark: SparkSession, tmp_path: Path, installed: Path
) -> None:
    line = FRAGILE.splitlines().index('            raise ValueError("cannot\\n read this")') + 1
    with pytest.raises(ExternalError) as raised:
        service_of(spark, tmp_path).run()
    message = str(raised.value)
    assert "\n" not in message
    assert message.startswith("word_count: operator Fragile: ValueError: cannot read this (")
    assert f"user_fragile.py:{line}) on a row with key " in message
    assert "[row" not in message
    file = f"file:{tmp_path / 'in' / '1.json'}"
    assert message.endswith(
        "at 2026-03-01T12:00:00+00:00, text boom"
        f"; of the record at topic {file}, partition 0, offset 0"
    )


@pytest.mark.spark
@pytest.mark.usefixtures("installed")
def test_the_message_has_the_records_coordinates_in_kafka(
    spark: SparkSession, tmp_path: Path, broker: Broker
) -> None:
    broker.create_topics(["failing"])
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for user, text in (("u", "one"), ("v", "boom"), ("u", "two")):
        record = {"user": user, "text": text, "at": AT.isoformat()}
        producer.produce("failing", json.dumps(record).encode(), partition=0)
    assert producer.flush(30) == 0
    source = {"type": "kafka", "bootstrap_servers": broker.address, "subscribe": ["failing"]}
    changes = {"source": {**source, "start": "earliest"}}
    where = "; of the record at topic failing, partition 0, offset 1$"
    with pytest.raises(ExternalError, match=where):
        service_of(spark, tmp_path, **changes).run()
