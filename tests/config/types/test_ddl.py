"""Spark DDL schemas: what lint accepts Spark must accept, and what lint refuses Spark must refuse.

Spark is asked as the engine asks it: `from_json` or `from_csv` with one more column behind.
"""

import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from unskew.config.types.ddl import DdlError, parse_columns

ACCEPTED = {
    "a INT": ("a",),
    "a INT, b STRING": ("a", "b"),
    " a\tINT ,\n b  BIGINT ": ("a", "b"),
    "`a b` INT, `it``s` INT": ("a b", "it`s"),
    "`größe` INT, `名前` STRING, `a.b` INT": ("größe", "名前", "a.b"),
    "1a INT, _b INT": ("1a", "_b"),
    "a INT NOT NULL COMMENT 'it\\'s', b INT COMMENT \"x\"": ("a", "b"),
    "a INT COMMENT 'x' 'y', b INT COMMENT 'd''e', c INT COMMENT r'f'": ("a", "b", "c"),
    "a INT /* of b */, -- and\n b INT": ("a", "b"),
    "a DECIMAL, b DECIMAL(10), c DECIMAL(10, 2), d NUMERIC(5), e DEC(5,5)": tuple("abcde"),
    "a DECIMAL(0), b DECIMAL(05,02)": ("a", "b"),
    "a ARRAY<STRING>, b MAP<STRING, INT>, c STRUCT<x: INT, y INT>": tuple("abc"),
    "a ARRAY<ARRAY<STRUCT<x: MAP<STRING, ARRAY<INT>>>>>": ("a",),
    "a STRUCT<>": ("a",),
    "a STRUCT<x: INT NOT NULL COMMENT 'c'>": ("a",),
    "a STRUCT<x: INT, X: STRING>": ("a",),
    "a TINYINT, b BYTE, c SMALLINT, d SHORT, e INTEGER, f LONG, g FLOAT, h REAL": tuple("abcdefgh"),
    "a DOUBLE, b DATE, c TIMESTAMP, d TIMESTAMP_NTZ, e TIMESTAMP_LTZ, f BINARY": tuple("abcdef"),
    "a TIMESTAMP WITHOUT TIME ZONE, b TIMESTAMP WITH LOCAL TIME ZONE": ("a", "b"),
    "a BOOLEAN, b VARIANT, c VOID": ("a", "b", "c"),
    "a INTERVAL, b INTERVAL DAY TO SECOND, c INTERVAL YEAR TO MONTH": tuple("abc"),
    "a INTERVAL MINUTE TO SECOND, b INTERVAL HOUR, c ARRAY<INTERVAL DAY>": tuple("abc"),
    "a TIME, b TIME(6), c TIME(0), d TIME(3) WITHOUT TIME ZONE": tuple("abcd"),
    "a STRING COLLATE UTF8_LCASE, b STRING COLLATE UNICODE_CI NOT NULL": ("a", "b"),
    "a STRING COLLATE `de_CI_AI`, b STRING COLLATE system.builtin.UNICODE": ("a", "b"),
    "a MAP<STRING COLLATE UTF8_LCASE, INT>": ("a",),
    "date DATE, timestamp TIMESTAMP, comment STRING, select INT": (
        *("date", "timestamp", "comment", "select"),
    ),
}
REJECTED = {
    "": 1,
    "a": 2,
    "a INT,": 7,
    ", a INT": 1,
    "a INT b INT": 7,
    "a: INT": 2,
    "a STRIN": 3,
    "a-b INT": 2,
    "größe INT": 1,
    "a STRUCT<ä: INT>": 10,
    "7 INT": 1,
    "7L INT": 1,
    "7e5 INT": 1,
    "a DECIMAL(39)": 11,
    "a DECIMAL(5,6)": 13,
    "a DECIMAL()": 11,
    "a DECIMAL(-1)": 11,
    "a VARCHAR": 3,
    "a VARCHAR(5)": 3,
    "a CHAR(5)": 3,
    "a GEOMETRY": 3,
    "a ARRAY": 8,
    "a ARRAY<>": 9,
    "a ARRAY<INT": 12,
    "a ARRAY<INT, INT>": 12,
    "a MAP<INT>": 10,
    "a STRUCT<x>": 11,
    "a INTERVAL FORTNIGHT": 12,
    "a INTERVAL SECOND TO DAY": 22,
    "a INTERVAL DAY TO MONTH": 19,
    "a INTERVAL DAY TO DAY": 19,
    "a INTERVALL": 3,
    "a TIME(7)": 8,
    "a TIME()": 8,
    "a TIMESTAMP(6)": 12,
    "a TIMESTAMP WITH TIME ZONE": 18,
    "a STRING(10)": 9,
    "a STRING COLLATE": 17,
    "a INT COLLATE UNICODE": 7,
    "a INT DEFAULT 5": 7,
    "a INT COMMENT 'x' NOT NULL": 19,
    "a INT NOT": 10,
    "a INT NULL": 7,
    "a INT COMMENT x": 15,
    "`a INT": 1,
    "a INT)": 6,
    "INT": 4,
    "a INT;": 6,
}
DOUBTED = {"a STRING COLLATE NONSENSE": 18, "a STRING COLLATE UTF8_LCASE_SOME": 18}


@pytest.mark.parametrize(("text", "columns"), ACCEPTED.items())
def test_columns(text: str, columns: tuple[str, ...]) -> None:
    assert parse_columns(text).names == columns
    assert parse_columns(text).doubts == ()


@pytest.mark.parametrize(("text", "column"), REJECTED.items())
def test_mistake_is_at_its_character(text: str, column: int) -> None:
    with pytest.raises(DdlError) as caught:
        parse_columns(text)

    assert caught.value.column == column


@pytest.mark.parametrize(("text", "column"), DOUBTED.items())
def test_what_only_spark_can_judge_is_a_doubt(text: str, column: int) -> None:
    (doubt,) = parse_columns(text).doubts

    assert doubt.column == column


@pytest.mark.parametrize(
    ("text", "suggestion"),
    [
        ("a INTERVALL", 'did you mean "INTERVAL"?'),
        ("a INT64", 'did you mean "BIGINT"?'),
        ("größe INT", "write `größe`"),
        ("a VARCHAR(5)", "write STRING: no length is checked"),
        ("a INT -- of b", "move it to a line before the last"),
    ],
)
def test_suggestion(text: str, suggestion: str) -> None:
    with pytest.raises(DdlError) as caught:
        parse_columns(text)

    assert caught.value.suggestion == suggestion


def test_columns_that_differ_in_case_alone_are_refused() -> None:
    with pytest.raises(DdlError, match='the column "A" is a duplicate'):
        parse_columns("a INT, A STRING")


def test_deep_types_are_refused() -> None:
    with pytest.raises(DdlError, match="nested deeper than"):
        parse_columns("a " + "ARRAY<" * 5_000 + "INT" + ">" * 5_000)


@pytest.mark.slow
@pytest.mark.spark
def test_spark_agrees(spark: SparkSession) -> None:
    assert [text for text in ACCEPTED if not accepts(spark, text)] == []
    assert [text for text in REJECTED if accepts(spark, text)] == []
    assert [text for text in DOUBTED if accepts(spark, text)] == []


def accepts(spark: SparkSession, text: str) -> bool:
    parsed = sf.from_json(sf.lit("{}"), f"{text}, more STRING")
    try:
        return bool(spark.range(1).select(parsed).schema)
    except AnalysisException:  # a ParseException is one too
        return False


@pytest.mark.spark
@pytest.mark.slow
def test_spark_fills_no_nested_column_from_csv(spark: SparkSession) -> None:
    for kind in ("ARRAY<INT>", "MAP<STRING, INT>", "STRUCT<x: INT>", "VOID"):
        parsed = spark.range(1).select(sf.from_csv(sf.lit("1"), f"a {kind}"))
        with pytest.raises(PySparkException, match="Unsupported data type"):
            parsed.collect()
