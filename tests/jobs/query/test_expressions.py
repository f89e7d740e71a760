"""An expression that raises on a record rejects the record; the others count."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START
from tests.support.running.in_process import Ran, run_without_windows
from unskew.config.errors import UsageError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.engine.preflight import check_before_spark, check_expressions_first
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query.bounds.plan import bound_expressions
from unskew.jobs.query.check_expressions import check_expressions
from unskew.jobs.query.decode import decode
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.query.prepare_rows import prepare_rows, select_table_columns
from unskew.jobs.query.source import COLUMNS, read_static

pytestmark = pytest.mark.spark

AT = START.isoformat()
TEXTS = ["1", "2", "x", None, "9999999999", "1"]


def run(
    spark: SparkSession, folder: Path, grouping: str, rows: list[dict[str, Any]], **changes: Any
) -> tuple[Ran, list[tuple[str, str | None]]]:
    """The job, and each dead letter's reason and text."""
    ran, dead_letters = run_without_windows(spark, folder, grouping, rows, **changes)
    texts = [(each["reason"], json.loads(each["value"]).get("text")) for each in dead_letters]
    return ran, sorted(texts, key=str)


CASES: tuple[tuple[dict[str, Any], str], ...] = (
    ({"type": "word_count", "text": "cast(int(text) as string)"}, "at"),
    # What both have in common Spark would evaluate before, and outside of, either.
    (
        {"type": "word_count", "text": "cast(int(text) + 0 as string)"},
        "timestampadd(SECOND, int(text) + 0, at)",
    ),
    ({"type": "paced", "key": "int(text)", "cost": "0 s"}, "at"),
    (
        {"type": "word_count", "text": "if(int(text) > 5, raise_error('no'), text)"},
        "case when int(text) = 1 then at else at end",
    ),
)
QUICK = (("level", 3), ("none", 1))


@pytest.mark.parametrize(
    ("grouping", "operator", "event_time"),
    [
        pytest.param(grouping, *case, marks=[] if (grouping, number) in QUICK else pytest.mark.slow)
        for grouping in ("level", "none")
        for number, case in enumerate(CASES)
    ],
)
def test_the_record_is_rejected(
    spark: SparkSession, tmp_path: Path, grouping: str, operator: dict[str, Any], event_time: str
) -> None:
    rows = [{"text": text, "at": AT} for text in TEXTS]
    ran, dead_letters = run(
        spark, tmp_path, grouping, rows, operator=operator, event_time=event_time
    )
    assert {row["key"]: row["count"] for row in ran.rows} == {"1": 2, "2": 1}
    assert dead_letters == [
        ("expression_failed", "9999999999"),
        ("expression_failed", "x"),
        ("null_key", None),
    ]


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_inputs_that_several_rules_look_at(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    rows = [
        {"text": text, "symbol": "s", "volume": 1, "at": AT} for text in ("1", "3", "x", "0", None)
    ]
    operator = {"type": "vwap", "price": "12 / int(text)", "volume": "volume * int(text)"}
    ran, dead_letters = run(spark, tmp_path, grouping, rows, operator=operator)
    (row,) = ran.rows
    assert (row["trades"], float(row["high"]), float(row["low"])) == (2, 12.0, 4.0)
    assert dead_letters == [
        ("expression_failed", "0"),
        ("expression_failed", "x"),
        ("price_null", None),
    ]


# A number of so many digits that Spark, which writes each of them out, would not come to an end.
VAST = (
    "1e-100000000",
    "-1E+100000000",
    "1e-" + 9 * "\N{ARABIC-INDIC DIGIT FOUR}",
    10_000_000 * "7",
)
NUMBER = "cast(text as decimal(9, 2))"


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("grouping", "changes", "reasons"),
    [
        ("level", {"where": f"{NUMBER} > 0"}, {"expression_failed"}),
        ("none", {"where": "try_cast(text as decimal(9, 2)) > 0"}, set()),
        ("level", {"select": {"n": f"'k' || ({NUMBER} + 1)"}}, {"expression_failed"}),
        (
            "level",
            {
                "operator": {
                    "type": "aggregate",
                    "key": "'k'",
                    "columns": {"count": "count(*)", "sum": f"sum({NUMBER})"},
                }
            },
            {"expression_failed"},
        ),
        ("level", {"event_time": "timestamp_seconds(text::decimal(9, 2))"}, {"expression_failed"}),
    ],
)
def test_a_text_that_is_no_decimal_of_a_sane_length_holds_nothing_up(
    spark: SparkSession,
    tmp_path: Path,
    grouping: str,
    changes: dict[str, Any],
    reasons: set[str],
) -> None:
    rows = [{"text": text, "at": AT} for text in ("2.5", " 1e1 ", *VAST)]
    counting = {"type": "aggregate", "key": "'k'", "columns": {"count": "count(*)"}}
    changes = {"operator": counting, **changes}
    ran, dead_letters = run(spark, tmp_path, grouping, rows, **changes)
    assert [row["count"] for row in ran.rows] == [2]
    assert {reason for reason, _ in dead_letters} == reasons
    assert len(dead_letters) == (len(VAST) if reasons else 0)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("grouping", ["level", "none"])
def test_a_column_that_raises_on_a_total_is_null_there(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    rows = [
        {"symbol": "none", "volume": 0, "text": "x", "at": AT},
        {"symbol": "vast", "volume": 2, "text": VAST[0], "at": AT},
        {"symbol": "good", "volume": 4, "text": "6", "at": AT},
    ]
    columns = {
        "count": "count(*)",
        "share": "12 / sum(volume)",
        "number": "int(max(text)) + 1",
        # What both have in common Spark would evaluate before, and outside of, either.
        "twice": "(int(max(text)) + 1) * 2",
        "decimal": "string(cast(max(text) as decimal(9, 2)))",
    }
    operator = {"type": "aggregate", "key": "symbol", "columns": columns}
    ran, dead_letters = run(spark, tmp_path, grouping, rows, operator=operator)
    assert {row["symbol"]: tuple(row[name] for name in columns) for row in ran.rows} == {
        "none": (1, None, None, None, None),
        "vast": (1, 6.0, None, None, None),
        "good": (1, 3.0, 7, 14, "6.00"),
    }
    assert dead_letters == []


def test_other_casts_to_decimals_are_what_they_were(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("2.5", 1), (None, 2), (" 1e2", 3)], "text STRING, n INT")
    casts = ("cast(text as decimal(9, 2)) a", "cast(n as decimal(9, 2)) b", "cast(n as string) c")
    bounded = bound_expressions(rows.selectExpr("text", *casts))
    assert [[None if v is None else str(v) for v in row] for row in bounded.collect()] == [
        ["2.5", "2.50", "1.00", "1"],
        [None, None, "2.00", "2"],
        [" 1e2", "100.00", "3.00", "3"],
    ]


@pytest.mark.parametrize(
    "text",
    [
        "reflect('java.lang.System', 'exit', 1)",
        "concat(a, JAVA_METHOD ('java.util.UUID', 'randomUUID'))",
        "`try_reflect`('java.lang.System', 'exit', 1)",
    ],
)
def test_what_calls_java_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"operator\.text: .*calls any method of Java"):
        load_job("word_count", {"operator": {"type": "word_count", "text": text}})


def test_a_text_or_a_column_of_that_name_is_not() -> None:
    text = "concat(reflect, 'reflect(x)', `java_method`)"
    decode = {"type": "json", "schema": "reflect STRING, java_method STRING"}
    changes = {"decode": decode, "operator": {"type": "word_count", "text": text}}
    assert load_job("word_count", changes)


KEYED = """
from unskew import OperatorOptions, RowOperator


class Counting(RowOperator):
    Options = OperatorOptions
    key = "{key}"
    partial_columns = {{"n": "BIGINT"}}
    merge = {{"n": "sum(n)"}}

    def start(self):
        return 0

    def add(self, state, row):
        return state + 1

    def result(self, state):
        return {{"n": state}}
"""


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        # What lint lets pass, since types are Spark's.
        ("size(value)", r"operator\.class: size\(value\): .*STRING"),
        ("no_such_function(value)", r"operator\.class: no_such_function\(value\): .*routine"),
    ],
)
def test_a_wrong_key_of_a_class_is_named_before_kafka_is_asked(
    spark: SparkSession, tmp_path: Path, key: str, problem: str
) -> None:
    (tmp_path / "counting_by_key.py").write_text(KEYED.format(key=key))
    section = {"type": "python", "file": str(tmp_path / "counting_by_key.py"), "class": "Counting"}
    nobody = {"source.bootstrap_servers": "127.0.0.1:1", "checkpoint": str(tmp_path / "checkpoint")}
    job = load_job("word_count", {"operator": section, **nobody})
    assert_refused_before_kafka(spark, job, problem)
    assert not (tmp_path / "checkpoint").exists()


def test_a_type_that_cannot_be_summed_is_named_before_kafka_is_asked(
    spark: SparkSession, tmp_path: Path
) -> None:
    operator = {"type": "aggregate", "key": "user_id", "columns": {"t": "sum(latency)"}}
    job = load_job(
        "word_count",
        {
            "decode": {"type": "json", "schema": "user_id BIGINT, latency DOUBLE"},
            "operator": operator,
            "source.bootstrap_servers": "127.0.0.1:1",
            "checkpoint": str(tmp_path / "checkpoint"),
        },
    )
    assert_refused_before_kafka(spark, job, r"operator\.columns\.t: latency: a sum of DOUBLE")


def load_table_job(folder: Path, partition_by: str, columns: dict[str, str] | None = None) -> Job:
    table = {"type": "table", "format": "parquet", "path": str(folder / "table")}
    operator = {"type": "rows", **({"columns": columns} if columns else {})}
    changes = {
        "decode": {"type": "json", "schema": "country STRING, n INT, s STRUCT<a: INT, b: INT>"},
        "operator": operator,
        "sinks": [{**table, "partition_by": [partition_by]}],
        "source.bootstrap_servers": "127.0.0.1:1",
        "checkpoint": str(folder / "checkpoint"),
    }
    return load_job("events_to_delta", changes)


@pytest.mark.parametrize(
    ("partition_by", "columns", "problem"),
    [
        ("dat(n) AS d", None, r"sinks\[0\]\.partition_by\[0\]: dat\(n\): Cannot resolve routine"),
        ("upper(no) AS d", None, r"partition_by\[0\]: upper\(no\): A column, .* `no` cannot be"),
        ("sum(n) AS d", None, r"sinks\[0\]\.partition_by\[0\]: sum\(n\): "),
        (
            "struct(n) AS d",
            None,
            r"partition_by\[0\]: d: one value \(got STRUCT<N:INT>\): a folder's",
        ),
        (
            "t",
            {"t": "struct(n)", "n": "n"},
            r"partition_by\[0\]: t: one value \(got STRUCT<N:INT>\)",
        ),
        ("n", {"n": "n", "m": "sum(n)"}, r"operator\.columns\.m: sum\(n\): "),
    ],
)
def test_what_a_table_cannot_be_partitioned_by_is_named_before_kafka_is_asked(
    spark: SparkSession,
    tmp_path: Path,
    partition_by: str,
    columns: dict[str, str] | None,
    problem: str,
) -> None:
    job = load_table_job(tmp_path, partition_by, columns)
    assert_refused_before_kafka(spark, job, problem)
    assert not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "table").exists()


def test_words_of_sql_are_no_columns_of_a_table(spark: SparkSession, tmp_path: Path) -> None:
    columns = {"n": "n", "yes": "true", "none": "null", "day": "CURRENT_DATE"}
    job = load_table_job(tmp_path, "yes", columns)
    check_expressions(spark, job)
    decoded = decode(read_static(spark, [b'{"n": 1}']), job.decode, COLUMNS)
    rows, _ = prepare_rows(decoded, make_operator(job.operator), job)
    (row,) = select_table_columns(rows).collect()
    assert (row["n"], row["yes"], row["none"]) == (1, True, None)
    assert row["day"] is not None


def assert_refused_before_kafka(spark: SparkSession, job: Job, problem: str) -> None:
    pipeline = Pipeline(job, open_journal(job))
    check_before_spark(pipeline)
    with pytest.raises(UsageError, match=problem):
        check_expressions_first(spark, pipeline)
