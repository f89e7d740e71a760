"""What is read of SQL without Spark, beside what Spark says of the same text."""

import re
from collections.abc import Iterator, Sequence

import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from unskew.config.types.sql import read_expression

COLUMNS = {
    "amount > 0 and Country like 'a%'": ["amount", "Country"],
    "sum(a) / count(b)": ["a", "b"],
    "comment || `odd name` || end": ["comment", "odd name", "end"],
    "date(ts) < date '2026-01-01' + interval 1 day": ["ts"],
    "ts - interval '1:30' hour to minute": ["ts"],
    "timestampadd(hour, n, ts) > current_timestamp": ["n", "ts"],
    "datediff(day, a, b) + date_diff(b, a)": ["a", "b"],
    "extract(year from ts) * hour(ts)": ["ts"],
    "user": [],
    "`user`": [],
    "coalesce(current_user, name)": ["name"],
    "aggregate(xs, first, (acc, x) -> acc + x.y + z)": ["xs", "first", "z"],
    "array_distinct(filter(tags, tag -> tag is not null and tag != 'x'))": ["tags"],
    "struct(a as b, c).b": ["a", "c"],
    "a.b.c + m['x'].y[0]": ["a", "m"],
    "case when x in (1, y) then 'z' else w end": ["x", "y", "w"],
    "trim(both x from y) <=> substring(a from 2 for b)": ["x", "y", "a", "b"],
    "cast(a as struct<b: int, c: array<decimal(18, 4)>>).b": ["a"],
    r"regexp_extract_all(lower(text), '[\\p{L}\\x27\\u2019]+', 0)": ["text"],
    "from_json(value, 'a INT', map('mode', m)).a": ["value", "m"],
    "count_if(x between 1 and 2) filter (where y)": ["x", "y"],
    "a collate UNICODE_CI": ["a"],
}
ERRORS = ["amount +", "amount >", "* 2 /", "= 3", "> 1 and b", "a ||", "/ 2", "not a ="]
DOUBTS = ["x >>> 2", "case when a then b", "cast(a decimal)", "a && b", "a b c", "a, b", "a from b"]
_EXAMPLE = re.compile(r"^\s*> (?:SELECT|select) (.*?);\s*$", re.MULTILINE)


@pytest.mark.parametrize("text", COLUMNS)
def test_columns_are_read(text: str) -> None:
    reading = read_expression(text)
    assert sorted(reading.columns) == sorted(COLUMNS[text])
    assert not reading.error + reading.doubt


def test_what_cannot_be_read_is_an_error_only_where_no_sql_is_so() -> None:
    assert [text for text in ERRORS if not read_expression(text).error] == []
    assert [text for text in DOUBTS if not read_expression(text).doubt] == []
    deep = read_expression("(" * 9_000 + "a" + ")" * 9_000)
    assert deep.doubt
    assert not read_expression("x >>> 2 -- +").error
    assert read_expression("(select max(x) from t) + y") == ((), "", "")


@pytest.mark.spark
def test_spark_sees_the_same_columns_and_errors(spark: SparkSession) -> None:
    wrong = []
    for text in COLUMNS:
        columns = read_expression(text).columns
        if complaint(spark, text, columns).startswith("UNRESOLVED_COLUMN"):
            wrong.append(text)
        wrong += [
            f"{column} in {text}"
            for column in columns
            if not complaint(spark, text, [each for each in columns if each != column])
        ]
    assert wrong == []
    accepted = [text for text in ERRORS if "PARSE" not in complaint(spark, text, ["a", "amount"])]
    assert accepted == []


def complaint(spark: SparkSession, text: str, columns: Sequence[str]) -> str:
    """What Spark has against it where these columns are there, all of them null."""
    nulls = ", ".join(["1 AS _", *(f"NULL AS `{name}`" for name in columns)])
    try:
        spark.sql(f"SELECT ({text}) FROM (SELECT {nulls})")  # noqa: S608
    except AnalysisException as error:
        return str(error.getCondition())
    return ""


@pytest.mark.spark
def test_no_example_of_a_function_of_sparks_is_an_error(spark: SparkSession) -> None:
    examples = list(expressions_of_examples(spark))
    readings = {text: read_expression(text) for text in examples}
    assert len(readings) > 500
    # Without FROM there are no columns: whatever is read as one is read wrongly.
    seen = {text: r for text, r in readings.items() if r.columns or r.error}
    assert seen == {}
    doubts = [text for text, reading in readings.items() if reading.doubt]
    assert len(doubts) < len(readings) / 50, doubts


def expressions_of_examples(spark: SparkSession) -> Iterator[str]:
    """The expressions in Spark's own documentation of its functions that need no table."""
    assert spark._jvm is not None
    for (
        info
    ) in spark._jvm.org.apache.spark.sql.api.python.PythonSQLUtils.listBuiltinFunctionInfos():
        for text in _EXAMPLE.findall(info.getExamples()):
            if not re.search(r"\bfrom\s+(values|\w*\s*\()", text, re.IGNORECASE):
                yield text
