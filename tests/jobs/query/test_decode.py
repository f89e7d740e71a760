"""Decoding as Spark does it: good, broken, missing and foreign bytes, for every kind."""

import decimal
import io
import json
import re
import time
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from pyspark.sql import DataFrame, SparkSession

from unskew.config.models.decode import (
    RESERVED_COLUMNS,
    AvroDecode,
    CsvDecode,
    Decode,
    JsonDecode,
    TextDecode,
)
from unskew.jobs.query import expressions
from unskew.jobs.query.decode import _CORRUPT, _PRESENT, MARK, REJECT_REASON, decode
from unskew.jobs.query.source import COLUMNS, STAMPED_ON_ARRIVAL

pytestmark = pytest.mark.spark

AVRO = {
    "type": "record",
    "name": "Trade",
    "fields": [
        {"name": "symbol", "type": ["null", "string"]},
        {
            "name": "price",
            "type": [
                "null",
                {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 4},
            ],
        },
    ],
}


def avro(record: dict[str, object]) -> bytes:
    buffer = io.BytesIO()
    fastavro.schemaless_writer(buffer, fastavro.parse_schema(AVRO), record)
    return buffer.getvalue()


def decoded(spark: SparkSession, how: Decode, values: list[bytes | None]) -> list[tuple[Any, ...]]:
    """The decoded columns and the reason, one row a value."""
    columns = [*how.columns, "reject_reason"]
    return [tuple(row) for row in decoded_rows(spark, how, values).select(*columns).collect()]


def decoded_rows(spark: SparkSession, how: Decode, values: list[bytes | None]) -> DataFrame:
    rows = [
        (None, bytearray(v) if v is not None else None, "t", 0, i) for i, v in enumerate(values)
    ]
    raw: DataFrame = spark.createDataFrame(
        rows, "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT"
    ).selectExpr("*", "timestamp '2026-01-01' AS timestamp")
    return decode(raw, how, COLUMNS).orderBy("raw_offset")


def test_text(spark: SparkSession) -> None:
    how = TextDecode(type="text")
    assert decoded(spark, how, [b"to be", "é".encode(), b"", b"\xff\xfe", None]) == [
        ("to be", None),
        ("é", None),
        ("", None),
        (decoded(spark, how, [b"\xff\xfe"])[0][0], "not_utf8"),
        (None, "no_value"),
    ]


def test_json(spark: SparkSession) -> None:
    how = JsonDecode.model_validate({"type": "json", "schema": "a STRING, n BIGINT"})
    values = [
        b'{"a": "x", "n": 1}',
        b'{"a": "x"}',
        b"{",
        b'{"n": "many"}',
        b"[]",
        b"",
        None,
        b"\xff",
    ]
    reasons = [row[-1] for row in decoded(spark, how, values)]
    assert reasons == [
        None,
        None,
        "not_decoded",
        "not_decoded",
        "not_decoded",
        "not_decoded",
        "no_value",
        "not_utf8",
    ]
    assert decoded(spark, how, values[:2]) == [("x", 1, None), ("x", None, None)]


def test_json_that_is_not_one_object_to_its_end_is_rejected(spark: SparkSession) -> None:
    how = JsonDecode.model_validate({"type": "json", "schema": "a STRING, n BIGINT"})
    values: list[bytes | None] = [
        b'{"a": "x"}{"a": "y"}',
        b'{"a": "x"} {"a": "y"}',
        b'{"a": "x"}\n{"a": "y"}',
        b'{"a": "x"}, {"a": "y"}',
        b'{"a": "x"} garbage',
        b'{"a": "x"}}',
        b'{"a": "x"}]',
        b'{"a": "x"}]}',
        b'{"a": "x"}]} garbage',
        b'[{"a": "x"}, {"a": "y"}]',
        b'[{"a": "x"}]',
        b"null",
        b"1",
        b'"x"',
        b'{"n": 1, "a": {"b": 1}} 1',
        # What would end an object around the text, and begin another.
        b'{"a": "x"}],"_end":true}',
        b'{"a": "x"}],"more":[{"a": "y"}',
        b'{"a": "x"}],"_records":[{"a": "y"}',
        b'{"a": "x"},{"_end":true}]}',
        b'{"a": "x"},{}],"more":[{"a": "y"}',
    ]
    reasons = [row[-1] for row in decoded(spark, how, values)]
    assert dict(zip(values, reasons, strict=True)) == dict.fromkeys(values, "not_decoded")


def test_json_may_hold_more_than_is_asked_for(spark: SparkSession) -> None:
    ddl = "`an a` STRING NOT NULL COMMENT 'x', s STRUCT<n: BIGINT, l: ARRAY<STRING>>"
    how = JsonDecode.model_validate({"type": "json", "schema": ddl})
    values = [
        b' {"an a": "x]}", "s": {"n": 1, "l": ["{", null], "more": 2}, "_records": [1]} \n',
        b'{"s": {"n": "many"}}',
        b'{"an a": "x", "s": {"l": 7}}',
        b"{}",
    ]
    assert [row[-1] for row in decoded(spark, how, values)] == [
        None,
        "not_decoded",
        "not_decoded",
        None,
    ]
    ((text, struct, _), *_) = decoded(spark, how, values)
    assert (text, struct.n, struct.l) == ("x]}", 1, ["{", None])


def test_json_is_read_alike_whether_its_text_is_flat_or_not(spark: SparkSession) -> None:
    """A text that begins with a space takes the way of those with braces inside."""
    ddl = "a STRING, n BIGINT, f DOUBLE, b BOOLEAN, l ARRAY<INT>, d DECIMAL(9,2)"
    how = JsonDecode.model_validate({"type": "json", "schema": ddl})
    whole = b'{"a": "x", "n": 1, "f": 1.5, "b": true, "l": [1, 2], "d": 1.25}'
    random = np.random.default_rng(5)
    values = [
        whole,
        b"{}",
        b'{"a": "}',
        b"{'a': 'x'}",
        b'{"a": NaN}',
        b'{"f": NaN}',
        b'{"a": "x",}',
    ]
    values += [
        b'{"a": "x"} ',
        b'{"a": "x"}}',
        b'{"_corrupt": "x", "a": "y"}',
        b'{"a": 1, "a": "y"}',
    ]
    for _ in range(1500):
        text = bytearray(whole)
        for _ in range(random.integers(1, 4)):
            at = int(random.integers(len(text)))
            piece = random.choice([b"", b"}", b"{", b'"', b",", b"]", b"1", b"null", b"\\", b"x"])
            text[at : at + int(random.integers(3))] = piece
        values.append(bytes(text))

    flat = decoded(spark, how, list(values))
    padded = decoded(spark, how, [b" " + value for value in values])

    reasons = [row[-1] for row in flat]
    # Of a record that is rejected nothing decoded is looked at; NaN equals itself as text only.
    assert [row[-1] or repr(row) for row in flat] == [row[-1] or repr(row) for row in padded]
    assert 300 < reasons.count("not_decoded") < len(values) - 100


def test_csv(spark: SparkSession) -> None:
    how = CsvDecode.model_validate(
        {"type": "csv", "schema": "a STRING, p DECIMAL(18,4)", "separator": ";"}
    )
    assert decoded(spark, how, [b'"x;y";1.25', b";2", b"x;dear", b"x;1;2", None]) == [
        ("x;y", decimal.Decimal("1.2500"), None),
        (None, decimal.Decimal("2.0000"), None),
        ("x", None, "not_decoded"),
        ("x", decimal.Decimal("1.0000"), "not_decoded"),
        (None, None, "no_value"),
    ]


@pytest.mark.parametrize("wire", ["plain", "confluent"])
def test_avro(spark: SparkSession, tmp_path: Path, wire: str) -> None:
    file = tmp_path / "trade.avsc"
    file.write_text(json.dumps(AVRO))
    how = AvroDecode.model_validate({"type": "avro", "schema_file": str(file), "wire": wire})
    head = b"\x00\x00\x00\x00\x07" if wire == "confluent" else b""
    good = avro({"symbol": "A", "price": decimal.Decimal("1.25")})
    nulls = avro({"symbol": None, "price": None})
    values = [head + good, head + nulls, head + good[:-1], b"", None]
    assert decoded(spark, how, values) == [
        ("A", decimal.Decimal("1.2500"), None),
        (None, None, None),
        (None, None, "not_decoded"),
        (None, None, "not_decoded"),
        (None, None, "no_value"),
    ]


def test_a_confluent_record_without_its_header_is_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    file = tmp_path / "trade.avsc"
    file.write_text(json.dumps(AVRO))
    how = AvroDecode.model_validate({"type": "avro", "schema_file": str(file), "wire": "confluent"})
    values = [b"\x01\x00\x00\x00\x07" + avro({"symbol": "A", "price": None}), b"\x00\x00"]
    assert [row[-1] for row in decoded(spark, how, values)] == ["not_decoded", "not_decoded"]


VAST = ("1e100000000", "-1E+100000000", "0.1e0099999999")
# Texts that Spark takes for such a number: with commas, escapes, digits of other scripts.
VAST_TEXTS = (
    "1e1,00,000000",
    "1\\u0065100000000",
    "\\u0031e\\u0031\\u0030\\u003000000000",
    "1e\\uff11\\uff10\\uff10\\uff10\\uff1000000",
    "1e" + 9 * "\N{ARABIC-INDIC DIGIT FOUR}",
)


@pytest.mark.parametrize("number", VAST)
def test_a_number_of_a_hundred_million_digits_is_rejected_at_once(
    spark: SparkSession, number: str
) -> None:
    ddl = "p DECIMAL(18,4), s STRUCT<l: ARRAY<DECIMAL(38,18)>>, m MAP<STRING, DECIMAL(9,2)>"
    how = JsonDecode.model_validate({"type": "json", "schema": ddl})
    texts = [
        '{"p": %s}',
        '{"p": "%s"}',
        '{"p": %s, "p": 1}',
        '{"p": %s',
        '{"s": {"l": [1, %s]}}',
        '{"m": {"a": "%s"}, "m": {"a": 1}}',
        '{"p": 1}{"m": {"a": %s}}',
    ]
    values = [(text % number).encode() for text in texts]
    csv = CsvDecode.model_validate({"type": "csv", "schema": "n INT, p DECIMAL(18,4)"})
    began = time.monotonic()
    assert [row[-1] for row in decoded(spark, how, list(values))] == ["not_decoded"] * len(texts)
    assert decoded(spark, csv, [f"1,{number}".encode()]) == [(1, None, "not_decoded")]
    assert time.monotonic() - began < 20


def test_a_text_of_a_million_digits_is_rejected_at_once(spark: SparkSession) -> None:
    ddl = "p DECIMAL(18,4), t STRING"
    how = JsonDecode.model_validate({"type": "json", "schema": ddl})
    csv = CsvDecode.model_validate({"type": "csv", "schema": ddl})
    digits = 10_000_000 * b"7"
    began = time.monotonic()
    assert decoded(spark, how, [b'{"p": "%s"}' % digits])[0][-1] == "not_decoded"
    assert decoded(spark, csv, [b"%s,x" % digits])[0][-1] == "not_decoded"
    assert decoded(spark, how, [b'{"p": 1.5, "t": "%s"}' % digits])[0][-1] is None
    assert time.monotonic() - began < 30


def test_a_line_of_too_many_columns_is_rejected(spark: SparkSession) -> None:
    how = CsvDecode.model_validate({"type": "csv", "schema": "a STRING, b INT"})
    values: list[bytes | None] = [900_000 * b",", b"x,1"]
    assert decoded(spark, how, values) == [(None, None, "not_decoded"), ("x", 1, None)]


def test_a_number_of_a_hundred_million_decimals_is_zero(spark: SparkSession) -> None:
    how = JsonDecode.model_validate({"type": "json", "schema": "p DECIMAL(18,4)"})
    values: list[bytes | None] = [b'{"p": 1e-100000000}', b'{"p": "1e-100000000"}']
    assert decoded(spark, how, values) == [(0, None), (None, "not_decoded")]


@pytest.mark.parametrize("number", VAST_TEXTS)
def test_a_text_of_such_a_number_is_rejected_at_once(spark: SparkSession, number: str) -> None:
    how = JsonDecode.model_validate(
        {"type": "json", "schema": "p DECIMAL(18,4), l ARRAY<DECIMAL(9,2)>"}
    )
    texts = ['{"p": "%s"}', '{"p": "%s", "p": 1}', '{"l": [1, "%s"]}']
    values = [(text % number).encode() for text in texts]
    assert [row[-1] for row in decoded(spark, how, list(values))] == ["not_decoded"] * len(texts)


def test_a_name_with_a_year_is_no_vast_number(spark: SparkSession) -> None:
    how = JsonDecode.model_validate({"type": "json", "schema": "value2024 DECIMAL(12,2)"})
    assert decoded(spark, how, [b'{"value2024": "9.91"}']) == [(decimal.Decimal("9.91"), None)]
    assert decoded(spark, how, [b'{"value2024": "1e100000000"}']) == [(None, "not_decoded")]


def test_the_mark_around_a_record_is_no_vast_number() -> None:
    # With an `e` and digits in it every record of a process with decimals would be rejected.
    assert re.fullmatch("_[a-df-z]{12}", MARK)


def test_decimals_are_what_spark_makes_of_them(spark: SparkSession) -> None:
    ddl = "`p p` DECIMAL(18,4) NOT NULL COMMENT 'x', q DECIMAL(38,2), s STRUCT<`a b`: DECIMAL(9,2)>"
    how = JsonDecode.model_validate({"type": "json", "schema": ddl})
    good = {
        b'{"p p": 12345678901234.56785}': "12345678901234.5679",
        b'{"p p": 1.5e3}': "1500.0000",
        b'{"p p": "1,234.5"}': "1234.5000",
        b'{"p p": -0.00005}': "-0.0001",
        b'{"p p": 1, "q": null, "s": {"a b": 1.005}, "id": "12e34567"}': "1.0000",
        b'{"p p": 98765432109876.54321, "id": "12e34567", "t": "x"}': "98765432109876.5432",
    }
    rows = decoded(spark, how, list(good))
    assert [(str(row[0]), row[-1]) for row in rows] == [(value, None) for value in good.values()]
    assert str(rows[-2][2][0]) == "1.01"
    wrong = [b'{"p p": 1e15}', b'{"p p": "dear"}', b'{"p p": {"a": 1}}', b'{"p p": true}']
    assert [row[-1] for row in decoded(spark, how, list(wrong))] == ["not_decoded"] * len(wrong)


@pytest.mark.parametrize(
    "kind",
    ["string", "bytes", {"type": "array", "items": "null"}, {"type": "map", "values": "null"}],
)
def test_an_avro_record_that_says_it_is_huge_is_rejected(
    spark: SparkSession, tmp_path: Path, kind: object
) -> None:
    file = tmp_path / "huge.avsc"
    fields = [{"name": "s", "type": kind}]
    file.write_text(json.dumps({"type": "record", "name": "Huge", "fields": fields}))
    how = AvroDecode.model_validate({"type": "avro", "schema_file": str(file)})
    left, length = (2**31 - 100) << 1, bytearray()
    while left > 127:
        length.append(left & 127 | 128)
        left >>= 7
    assert decoded(spark, how, [bytes([*length, left])]) == [(None, "not_decoded")]


def test_no_column_of_a_record_is_called_as_one_of_ours() -> None:
    ours = {f"raw_{name}" for name in COLUMNS} | {STAMPED_ON_ARRIVAL, REJECT_REASON}
    ours |= {_CORRUPT, _PRESENT, expressions.FILTERED, expressions._ATTEMPT}
    assert ours == RESERVED_COLUMNS
