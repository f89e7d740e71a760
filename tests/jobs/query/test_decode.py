"""Decoding as Spark does it: good, broken, missing and foreign bytes, for every kind."""

import decimal
import io
import json
from pathlib import Path

import fastavro
import pytest
from pyspark.sql import DataFrame, SparkSession

from unskew.config.models.decode import AvroDecode, CsvDecode, Decode, JsonDecode, TextDecode
from unskew.jobs.query.decode import decode
from unskew.jobs.query.source import COLUMNS

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


def decoded(
    spark: SparkSession, how: Decode, values: list[bytes | None]
) -> list[tuple[object, ...]]:
    """The decoded columns and the reason, one row a value."""
    rows = [
        (None, bytearray(v) if v is not None else None, "t", 0, i) for i, v in enumerate(values)
    ]
    raw: DataFrame = spark.createDataFrame(
        rows, "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT"
    ).selectExpr("*", "timestamp '2026-01-01' AS timestamp")
    columns = [*how.columns, "reject_reason"]
    rows = decode(raw, how, COLUMNS).orderBy("raw_offset").select(*columns).collect()
    return [tuple(row) for row in rows]


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
