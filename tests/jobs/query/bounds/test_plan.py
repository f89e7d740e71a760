"""Expressions that a record could make endless: it is rejected, or its value is null, at once."""

from collections.abc import Sequence
from typing import Any

import pytest
from pyspark.sql import SparkSession

from unskew.jobs.query.bounds.plan import bound_expressions
from unskew.jobs.query.expressions import add_values

pytestmark = [pytest.mark.spark, pytest.mark.timeout(120)]

VAST = "1e100000000"
DECIMAL = "decimal(9,2)"
AT = "timestamp_seconds(%s)"
REJECTED = "expression_failed"
COLUMNS = "text STRING, reject_reason STRING"


def evaluate(spark: SparkSession, expression: str, texts: Sequence[Any]) -> list[tuple[Any, ...]]:
    """The value of an expression over each text, as a text, and why the record is rejected."""
    rows = spark.createDataFrame([(text, None) for text in texts], COLUMNS)
    valued = add_values(rows, {"v": expression})
    return [tuple(row) for row in valued.selectExpr("string(v)", "reject_reason").collect()]


@pytest.mark.parametrize(
    ("expression", "text", "value", "vast"),
    [
        (f"from_json(text, 'p {DECIMAL}').p", '{"p": "%s"}', "2.50", (None, None)),
        (f"from_json(text, 'p {DECIMAL}').p", '{"p": %s}', "2.50", (None, None)),
        (f"from_json(text, 'array<{DECIMAL}>')[0]", '["%s"]', "2.50", (None, None)),
        (f"from_json(text, 'map<string,{DECIMAL}>')['a']", '{"a": "%s"}', "2.50", (None, None)),
        (f"from_csv(text, 'p {DECIMAL}, t string').p", "%s,e1234", "2.50", (None, None)),
        (f"from_csv(text, 'p {DECIMAL}', map('sep', ';')).p", "%s;x", "2.50", (None, None)),
        (f"from_xml(text, 'p {DECIMAL}').p", "<r><p>%s</p></r>", "2.50", (None, None)),
        (f"variant_get(parse_json(text), '$.p', '{DECIMAL}')", '{"p": "%s"}', "2.50", None),
        (f"try_variant_get(parse_json(text), '$', '{DECIMAL}')", '"%s"', "2.50", (None, None)),
        (f"variant_get(parse_json(text), '$', 'array<{DECIMAL}>')[0]", '["%s"]', "2.50", None),
        (f"parse_json(text):p::{DECIMAL}", '{"p": "%s"}', "2.50", None),
        (f"parse_json(text)::{DECIMAL}", '"%s"', "2.50", None),
        (f"cast(split(text, ';') as array<{DECIMAL}>)[0]", "%s;1", "2.50", None),
        (f"try_cast(split(text, ';') as array<{DECIMAL}>)[0]", "%s;1", "2.50", (None, None)),
        (f"transform(split(text, ';'), x -> cast(x as {DECIMAL}))[0]", "%s;1", "2.50", None),
        (f"cast(str_to_map(text) as map<string,{DECIMAL}>)['a']", "a:%s", "2.50", None),
        (f"cast(struct(text, 'e1') as struct<a: {DECIMAL}, b: string>).a", "%s", "2.50", None),
        # Spark's own casts.
        ("cast(1.5 + cast(text as decimal(9,2)) as string)", "%s", "4.00", None),
        ("make_dt_interval(0, 0, 0, text)", "%s", "INTERVAL '0 00:00:02.5' DAY TO SECOND", None),
    ],
)  # fmt: skip
def test_a_vast_number_in_it_is_none(
    spark: SparkSession, expression: str, text: str, value: str, vast: tuple[None, None] | None
) -> None:
    rows = evaluate(spark, expression, [text % "2.5", text % VAST])
    assert rows == [(value, None), (None, REJECTED) if vast is None else vast]


def test_a_cast_among_many_columns_is_found(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(VAST, None)], COLUMNS)
    columns = {f"v{n}": f"text || '{n}'" for n in range(40)} | {"n": f"text::{DECIMAL}"}
    assert add_values(rows, columns).selectExpr("reject_reason").collect()[0][0] == REJECTED


@pytest.mark.parametrize(
    ("expression", "good", "value"),
    [
        ("length(repeat('*', int(text)))", "3", "3"),
        ("length(repeat(repeat(text, 1000000), 1000000))", "", "0"),
        ("length(lpad('x', int(text), ' '))", "3", "3"),
        ("length(rpad('x', int(text)))", "3", "3"),
        ("length(space(int(text)))", "3", "3"),
        ("size(array_repeat(1, int(text)))", "3", "3"),
        ("size(array_insert(array(1), int(text), 2))", "3", "3"),
        ("size(sequence(1, int(text)))", "3", "3"),
        ("size(sequence(1, int(text), 2))", "3", "2"),
        ("size(sequence(bigint(text), -5, -1))", "3", "9"),
        (
            f"size(sequence({AT % 0}, {AT % 'int(text)'}, interval '1' second))",
            "3",
            "4",
        ),
    ],
)
def test_a_size_that_a_record_says_is_bounded(
    spark: SparkSession, expression: str, good: str, value: str
) -> None:
    rows = evaluate(spark, expression, [good, "200000000"])
    assert rows == [(value, None), (None, REJECTED)]


def test_a_sequence_of_days_is_what_it_was(spark: SparkSession) -> None:
    days = "size(sequence(date'2026-01-01', date(text)))"
    texts = ["2026-01-03", "2025-12-31", "9999-12-31", None]
    assert evaluate(spark, days, texts) == [
        ("3", None),
        ("2", None),
        (None, REJECTED),
        (None, None),
    ]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("text rlike '^(a|b)*$'", "true"),
        ("regexp_replace(text, '(a|b)+', 'c')", "c"),
        (r"regexp_extract(text, '^((?:a|\\s)+)$', 1)", 300 * "a"),
        ("regexp_count(text, '(a|b)+')", "1"),
        ("size(split(text, '(a|b)+'))", "2"),
    ],
)
def test_a_text_on_which_a_pattern_overflows_the_stack_rejects_its_record(
    spark: SparkSession, expression: str, value: str
) -> None:
    texts = [300 * "a", 500_000 * "a", None]
    assert evaluate(spark, expression, texts)[:2] == [(value, None), (None, REJECTED)]


def test_what_needs_no_bound_is_left_as_it_is(spark: SparkSession) -> None:
    rows = spark.createDataFrame([("a",)], "text STRING")
    plain = rows.selectExpr(
        "lpad(text, 10, '0') a", "sequence(1, 3) b", "double(text) c", "text rlike '[ab]+' d"
    )
    assert bound_expressions(plain)._jdf.queryExecution().analyzed().toString() == (
        plain._jdf.queryExecution().analyzed().toString()
    )
