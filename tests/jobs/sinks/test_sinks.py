"""What becomes of a batch's results: all of them are computed, kept flat, and keyed alike."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import Ran, write_lines
from unskew.jobs.sinks.kafka import make_kafka_rows

pytestmark = pytest.mark.spark

WORD_COUNT = {"type": "word_count", "text": "text"}


def write_words(folder: Path, batches: int, words: int) -> None:
    """Files, a batch each, with every word once."""
    text = " ".join(f"w{number}" for number in range(words))
    for batch in range(batches):
        write_lines(folder / "in", f"{batch}.json", [{"text": text, "at": START.isoformat()}])


def test_the_console_computes_also_what_it_does_not_show(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_words(tmp_path, batches=2, words=200)
    ran = Ran(
        spark,
        tmp_path,
        "console",
        operator=WORD_COUNT,
        window={"type": "none"},
        lateness=None,
        sinks=[{"type": "console", "rows": 20}],
    )
    assert capsys.readouterr().out.count("only showing top 20 rows") == 2
    assert ran.batches[-1].merge_rows == 200


def test_results_that_spark_sorts_go_to_two_sinks(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"text": f"s{n % 2}", "n": n, "at": START.isoformat()} for n in range(1, 5)]
    write_lines(tmp_path / "in", "0.json", rows)
    ran = Ran(
        spark,
        tmp_path,
        "sorted",
        decode={"type": "json", "schema": "text STRING, n INT, at TIMESTAMP"},
        operator={"type": "vwap", "symbol": "text", "price": "n", "volume": "1"},
        window={"type": "none"},
        lateness=None,
        sinks=[{"type": "memory", "table": "totals"}, {"type": "console"}],
    )
    assert [(row["key"], row["trades"]) for row in ran.rows] == [("s0", 2), ("s1", 2)]


@pytest.mark.slow
def test_the_memory_sink_does_not_pile_up_plans(spark: SparkSession, tmp_path: Path) -> None:
    write_words(tmp_path, batches=3, words=2)
    ran = Ran(
        spark, tmp_path, "memory", operator=WORD_COUNT, window={"type": "none"}, lateness=None
    )
    assert [
        (row["batch_id"], row["key"], row["count"]) for row in ran.rows if row["key"] == "w0"
    ] == [
        (0, "w0", 1),
        (1, "w0", 2),
        (2, "w0", 3),
    ]
    plan = spark.table("totals")._jdf.queryExecution().analyzed().toString()
    assert "Union" not in plan


def test_kafka_keys_are_the_same_in_a_session_of_another_zone(spark: SparkSession) -> None:
    results = spark.sql(
        "select timestamp'2026-03-01 12:00:00Z' as window_start,"
        " timestamp'2026-03-01 12:01:00Z' as window_end, 'a' as key, 7L as count"
    )
    window = '"window_start":"2026-03-01T12:00:00.000Z","window_end":"2026-03-01T12:01:00.000Z"'
    try:
        spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
        (row,) = make_kafka_rows(results, ("window_start", "window_end", "key")).collect()
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    assert row.key == f'{{{window},"key":"a"}}'
    assert row.value == f'{{{window},"key":"a","count":7}}'
