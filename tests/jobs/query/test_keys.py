"""Records with keys that are too long or too many: one dead letter each, and the job goes on."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import run_without_windows
from unskew import load_job
from unskew.jobs.query import source
from unskew.jobs.query.decode import MARK, decode
from unskew.jobs.query.pipeline import prepare_records
from unskew.jobs.query.prepare import keep_accepted, keep_rejected

pytestmark = pytest.mark.spark

AT = START.isoformat()
TWO_KIB = 2048


def counted(
    spark: SparkSession, folder: Path, rows: list[dict[str, Any]], grouping: str, **changes: Any
) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """The records counted by key, and each dead letter's reason and record."""
    changes = {"operator": {"type": "word_count", "text": "text"}, **changes}
    ran, dead_letters = run_without_windows(spark, folder, grouping, rows, **changes)
    totals = {row["key"]: row.get("count", row.get("posts")) for row in ran.rows}
    return totals, sorted(
        ((each["reason"], json.loads(each["value"])) for each in dead_letters), key=str
    )


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_of_a_record_with_long_words_the_others_count(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    longest, long = "é" * (TWO_KIB // 2), "é" * (TWO_KIB // 2) + "e"
    rows = [
        {"text": f"a {long} b {long} {600_000 * 'x'}", "at": AT},
        {"text": f"a {longest}", "at": AT},
    ]
    totals, dead_letters = counted(spark, tmp_path, rows, grouping)
    assert totals == {"a": 2, "b": 1, longest: 1}
    assert dead_letters == [("key_too_long", rows[0])]


def test_an_operator_with_a_key_a_record_rejects_the_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [{"symbol": symbol, "price": 1, "volume": 1, "at": AT} for symbol in ("ab", "abc")]
    operator = {"type": "paced", "key": "symbol", "cost": "0 s"}
    totals, dead_letters = counted(
        spark, tmp_path, rows, "level", operator=operator, max_key_bytes="2 B"
    )
    assert totals == {"ab": 1}
    assert dead_letters == [("key_too_long", rows[1])]


PRICED = {"price": 1, "volume": 1, "at": AT}


@pytest.mark.parametrize(
    ("operator", "short", "long"),
    [
        ({"type": "vwap"}, {"symbol": "abcd"}, {"symbol": "abcde"}),
        (
            # Together, though each is short enough.
            {
                "type": "aggregate",
                "key": {"symbol": "symbol", "user": "user"},
                "columns": {"count": "count(*)"},
            },
            {"symbol": "ab", "user": "cd"},
            {"symbol": "abc", "user": "de"},
        ),
        (
            {"type": "aggregate", "key": "symbol", "columns": {"count": "count(*)"}},
            {"symbol": "éé"},
            {"symbol": "ééé"},
        ),
    ],
    ids=["vwap", "two columns", "bytes"],
)
def test_a_key_that_is_too_long_rejects_the_record_of_every_operator(
    spark: SparkSession,
    tmp_path: Path,
    operator: dict[str, Any],
    short: dict[str, Any],
    long: dict[str, Any],
) -> None:
    rows = [{**PRICED, **short}, {**PRICED, **long}]
    changes = {"operator": operator, "max_key_bytes": "4 B"}
    ran, dead_letters = run_without_windows(spark, tmp_path, "level", rows, **changes)
    assert len(ran.rows) == 1
    assert all(
        ran.rows[0].get(name, ran.rows[0].get("key")) == text for name, text in short.items()
    )
    assert [(each["reason"], json.loads(each["value"])) for each in dead_letters] == [
        ("key_too_long", rows[1])
    ]


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_a_key_that_is_too_long_for_one_of_several_results_counts_in_the_others(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    rows = [
        {"symbol": symbol, "user": user, "at": AT}
        for symbol, user in (("abc", "d"), ("abc", "de"), ("abcde", "f"))
    ]
    results = [
        {"name": "by_symbol", "key": "symbol", "columns": {"n": "count(*)"}},
        {"name": "by_both", "key": {"s": "symbol", "u": "user"}, "columns": {"m": "count(*)"}},
    ]
    changes = {
        "operator": {"type": "results", "results": results},
        "sinks": [
            {"type": "memory", "table": "totals", "result": "by_symbol"},
            {"type": "memory", "table": "totals_by_both", "result": "by_both"},
        ],
        "max_key_bytes": "4 B",
    }
    ran, dead_letters = run_without_windows(spark, tmp_path, grouping, rows, **changes)
    both = spark.table("totals_by_both").select("s", "u", "m").collect()
    assert [tuple(row) for row in both] == [("abc", "d", 1)]
    (row,) = ran.rows
    assert (row["symbol"], row["n"]) == ("abc", 2)
    # Each record once for each result that cannot use it.
    assert sorted((each["reason"], json.loads(each["value"])["user"]) for each in dead_letters) == [
        ("by_both_key_too_long", "de"),
        ("by_both_key_too_long", "f"),
        ("by_symbol_key_too_long", "f"),
    ]


def test_of_a_post_with_a_long_tag_the_others_count(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"user": "u", "hashtags": ["ab", "abcde", "cd"], "at": AT}]
    operator = {"type": "hashtags", "hashtags": "hashtags", "user": "user"}
    changes = {"operator": operator, "max_key_bytes": "4 B"}
    totals, dead_letters = counted(spark, tmp_path, rows, "level", **changes)
    assert totals == {"ab": 1, "cd": 1}
    assert dead_letters == [("key_too_long", rows[0])]


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_a_record_of_too_many_keys_is_one_dead_letter(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    rows = [
        {"user": "u", "hashtags": [str(tag) for tag in range(count)], "at": AT}
        for count in (10_000, 10_001)
    ]
    totals, dead_letters = counted(
        spark,
        tmp_path,
        rows,
        grouping,
        operator={"type": "hashtags", "hashtags": "hashtags", "user": "user"},
    )
    assert totals == {str(tag): 1 for tag in range(10_000)}
    assert dead_letters == [("too_many_keys", rows[1])]


@pytest.mark.parametrize(
    ("operator", "field", "values"),
    [
        ({"type": "word_count", "text": "text"}, "text", ("a b", "a b c")),
        (
            {"type": "aggregate", "key": "hashtags", "columns": {"count": "count(*)"}},
            "hashtags",
            (["a", "b"], ["a", "b", "c"]),
        ),
    ],
    ids=["word_count", "aggregate"],
)
def test_too_many_keys_reject_the_record_of_every_operator_that_makes_several(
    spark: SparkSession, tmp_path: Path, operator: dict[str, Any], field: str, values: tuple[Any]
) -> None:
    rows = [{field: value, "at": AT} for value in values]
    changes = {"operator": operator, "max_keys_per_record": 2}
    ran, dead_letters = run_without_windows(spark, tmp_path, "level", rows, **changes)
    counts = sorted((next(iter(row.values())), row["count"]) for row in ran.rows)
    assert counts == [("a", 1), ("b", 1)]
    assert [(each["reason"], json.loads(each["value"])) for each in dead_letters] == [
        ("too_many_keys", rows[1])
    ]


@pytest.mark.slow
def test_a_million_tags_do_not_hold_the_others_up(spark: SparkSession, tmp_path: Path) -> None:
    rows = [{"user": "u", "hashtags": [str(tag) for tag in range(10**6)], "at": AT}]
    rows.append({"user": "u", "hashtags": ["one"], "at": AT})
    totals, dead_letters = counted(
        spark,
        tmp_path,
        rows,
        "level",
        operator={"type": "hashtags", "hashtags": "hashtags", "user": "user"},
    )
    assert totals == {"one": 1}
    assert [reason for reason, _ in dead_letters] == ["too_many_keys"]


@pytest.mark.parametrize(
    ("name", "costly"),
    [
        ("word_count", "regexp_extract_all("),
        # All of its columns: a record that may hold a vast number is read by its decimals first.
        ("vwap", "from_json(StructField(symbol,StringType,true), StructField(price,DecimalType"),
        ("vwap", f"from_json(StructField({MARK},ArrayType(StructType(StructField(symbol"),
    ],
    ids=["word_count", "vwap", "vwap_not_flat"],  # the mark is another in each process
)
def test_what_is_costly_is_computed_once_a_record(
    spark: SparkSession, name: str, costly: str
) -> None:
    job = load_job(name, {"checkpoint": "unused"})
    lines = source.read_static(spark, [b"a b"]).repartition(1)
    prepared, _ = prepare_records(decode(lines, job.decode, source.COLUMNS), job)
    for rows in (keep_accepted(prepared), keep_rejected(prepared)):
        assert rows._jdf.queryExecution().executedPlan().toString().count(costly) == 1
