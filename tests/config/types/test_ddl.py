"""Spark DDL schemas: what is right here must be right for Spark, and the other way round."""

import pytest

from unskew.config.types.ddl import DdlError, parse_columns

GOOD = {
    "a INT": ("a",),
    "a INT, b STRING": ("a", "b"),
    "a: INT, b: STRING": ("a", "b"),
    " a\tINT ,\n b  BIGINT ": ("a", "b"),
    "`a b` INT, `it``s` INT": ("a b", "it`s"),
    "1a INT": ("1a",),
    "a INT NOT NULL COMMENT 'it\\'s', b INT COMMENT \"x\"": ("a", "b"),
    "a DECIMAL, b DECIMAL(10), c DECIMAL(10, 2), d NUMERIC(5), e DEC(5,5)": tuple("abcde"),
    "a CHAR(3), b VARCHAR(10), c CHARACTER(4)": tuple("abc"),
    "a ARRAY<STRING>, b MAP<STRING, INT>, c STRUCT<x: INT, y INT>": tuple("abc"),
    "a ARRAY<ARRAY<STRUCT<x: MAP<STRING, ARRAY<INT>>>>>": ("a",),
    "a STRUCT<>": ("a",),
    "a STRUCT<x: INT NOT NULL COMMENT 'c'>": ("a",),
    "a TINYINT, b BYTE, c SMALLINT, d SHORT, e INTEGER, f LONG, g FLOAT, h REAL": tuple("abcdefgh"),
    "a DOUBLE, b DATE, c TIMESTAMP, d TIMESTAMP_NTZ, e TIMESTAMP_LTZ, f BINARY": tuple("abcdef"),
    "a BOOLEAN, b VARIANT": ("a", "b"),
    "date DATE, timestamp TIMESTAMP, comment STRING": ("date", "timestamp", "comment"),
}
BAD = {
    "": 1,
    "a": 2,
    "a INT,": 7,
    ", a INT": 1,
    "a INT b INT": 7,
    "a STRIN": 3,
    "a-b INT": 2,
    "a DECIMAL(39)": 11,
    "a DECIMAL(5,6)": 13,
    "a DECIMAL()": 11,
    "a DECIMAL(-1)": 11,
    "a VARCHAR": 10,
    "a ARRAY": 8,
    "a ARRAY<>": 9,
    "a ARRAY<INT": 12,
    "a ARRAY<INT, INT>": 12,
    "a MAP<INT>": 10,
    "a STRUCT<x>": 11,
    "a INT NOT": 10,
    "a INT NULL": 7,
    "a INT COMMENT x": 15,
    "`a INT": 1,
    "a INT)": 6,
    "INT": 4,
    "a INT;": 6,
}


@pytest.mark.parametrize(("text", "columns"), GOOD.items())
def test_columns(text: str, columns: tuple[str, ...]) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize(("text", "column"), BAD.items())
def test_mistake_is_at_its_character(text: str, column: int) -> None:
    with pytest.raises(DdlError) as caught:
        parse_columns(text)

    assert caught.value.column == column


def test_deep_types_are_refused() -> None:
    with pytest.raises(DdlError, match="nested deeper than"):
        parse_columns("a " + "ARRAY<" * 5_000 + "INT" + ">" * 5_000)


@pytest.mark.spark
@pytest.mark.usefixtures("spark")
def test_spark_agrees() -> None:
    from pyspark.sql.types import StructType

    for text, columns in GOOD.items():
        assert tuple(StructType.fromDDL(text).fieldNames()) == columns, text
    for text in BAD:
        if text:
            assert not accepted_by_spark(StructType, text), text


def accepted_by_spark(struct_type: type, text: str) -> bool:
    try:
        found = struct_type.fromDDL(text)  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 - whatever Spark raises, it is a refusal
        return False
    return isinstance(found, struct_type)
