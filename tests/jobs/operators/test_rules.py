"""Why a record is rejected: by each operator's rules, in Spark, over columns of every type."""

from decimal import Decimal

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.hashtags import Hashtags, HashtagsOptions
from unskew.jobs.operators.vwap import Vwap, VwapOptions
from unskew.jobs.operators.word_count import WordCount, WordCountOptions

pytestmark = pytest.mark.spark


def rows_of(spark: SparkSession, values: str, columns: str) -> DataFrame:
    """Literal rows; all text here is the tests' own."""
    return spark.sql(f"select * from values {values} as rows({columns})")  # noqa: S608


def reject_reasons(
    spark: SparkSession, operator: Operator, values: str, columns: str
) -> list[str | None]:
    """The first rule that each row breaks."""
    frame = rows_of(spark, values, columns)
    rules = [sf.when(sf.expr(text), name) for name, text in operator.reject_rules.items()]
    return [row[0] for row in frame.select(sf.coalesce(*rules, sf.lit(None))).collect()]


@pytest.mark.parametrize(
    ("kind", "values", "expected"),
    [
        (
            "double",
            ["null", "'NaN'", "'Infinity'", "1e12", "1e-7", "-1.5", "999999999999.5", "0.1"],
            [
                "price_null",
                "price_not_a_number",
                "price_out_of_range",
                "price_out_of_range",
                None,
                None,
                None,
                None,
            ],
        ),
        (
            "string",
            [
                "null",
                "'ten'",
                "''",
                "'1.0000001'",
                "'1000000000000'",
                "' 1.5 '",
                "'-2e3'",
                "'1e9999999'",
                "'1e-100000000'",
            ],
            [
                "price_null",
                "price_not_a_number",
                "price_not_a_number",
                "price_too_precise",
                "price_out_of_range",
                None,
                None,
                "price_out_of_range",
                "price_out_of_range",
            ],
        ),
        (
            "decimal(38, 10)",
            ["1.0000001", "1.000001", "1000000000000", "-999999999999.999999"],
            ["price_too_precise", None, "price_out_of_range", None],
        ),
        ("bigint", ["1000000000000", "999999999999", "0"], ["price_out_of_range", None, None]),
    ],
)
def test_prices_are_decimals_of_the_stated_precision(
    spark: SparkSession, kind: str, values: list[str], expected: list[str | None]
) -> None:
    operator = Vwap(VwapOptions(volume="0.000001BD"))
    rows = ", ".join(f"(cast({value} as {kind}))" for value in values)

    assert reject_reasons(spark, operator, rows, "price") == expected


def test_volumes_are_positive_and_amounts_leave_room_for_their_sum(
    spark: SparkSession,
) -> None:
    values = {
        "(1.0, null)": "volume_null",
        "(1.0, double('NaN'))": "volume_not_a_number",
        "(1.0, -0.5)": "volume_negative",
        "(1.0, 0.0)": "volume_zero",
        "(1.0, 1e-9)": "volume_zero",
        "(1e3, 1e11)": "amount_out_of_range",
        "(-1e3, 1e11)": "amount_out_of_range",
        "(999.0, 1e11)": None,
        "(null, -1.0)": "price_null",
    }
    rows = ", ".join(
        "(" + ", ".join(f"cast({part} as double)" for part in row[1:-1].split(", ")) + ")"
        for row in values
    )

    operator = Vwap(VwapOptions())
    assert reject_reasons(spark, operator, rows, "price, volume") == list(values.values())


def test_floats_are_rounded_half_up_once(spark: SparkSession) -> None:
    operator = Vwap(VwapOptions(price_decimals=2, volume_decimals=0))
    frame = spark.sql("select 0.125D as price, 2.5D as volume")

    row = frame.select(*[sf.expr(text) for text in operator.inputs.values()]).collect()[0]
    assert list(row) == [Decimal("0.13"), Decimal(3)]


def test_a_post_needs_a_user_and_names_a_hashtag_once(spark: SparkSession) -> None:
    operator = Hashtags(HashtagsOptions(user="who"))
    rows = "(null, array('a')), ('u', array('b', 'a', '', 'b', null)), ('u', null), ('', array())"

    assert reject_reasons(spark, operator, rows, "who, hashtags") == [
        "user_null",
        None,
        None,
        None,
    ]
    frame = rows_of(spark, rows, "who, hashtags")
    keys = [row[0] for row in frame.select(sf.expr(operator.key)).collect()]
    assert keys == [["a"], ["b", "a"], None, []]


def test_words_are_runs_of_letters_and_digits_of_any_script(spark: SparkSession) -> None:
    operator = WordCount(WordCountOptions(text="line"))
    texts = ["It's 2 o\u2019clock", "naïve—Straße", "日本 नमस्ते!", " ,;", "e\u0301te\u0301"]
    frame = spark.createDataFrame([(text,) for text in texts], "line string")

    assert [row[0] for row in frame.select(sf.expr(operator.key)).collect()] == [
        ["it's", "2", "o\u2019clock"],
        ["naïve", "straße"],
        ["日本", "नमस्ते"],
        [],
        ["e\u0301te\u0301"],
    ]
