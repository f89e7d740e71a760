"""Decimals of Avro: only those that fit count, and none holds a task up."""

import io
import json
import time
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.jobs.query.test_decode import decoded, decoded_rows
from tests.support.dead_letters import dead_letters_in
from tests.support.running.in_process import Ran
from unskew.config.models.decode import AvroDecode
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.query.bounds.avro import _DECIMAL_BYTES_MAX, _LARGE_BYTES

pytestmark = pytest.mark.spark

# Of its last eight bytes the number is five.
TOO_LARGE = b"\x01" + 7 * b"\0" + b"\x05"
FIVE = Decimal("0.05")


def of_bytes(precision: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def avro_of(folder: Path, kind: object) -> AvroDecode:
    """How records of one field `s` of this type are decoded; the file begins with a mark."""
    file = folder / "one.avsc"
    schema = {"type": "record", "name": "One", "fields": [{"name": "s", "type": kind}]}
    file.write_text(json.dumps(schema), "utf-8-sig")
    return AvroDecode.model_validate({"type": "avro", "schema_file": str(file)})


def as_long(number: int) -> bytes:
    """A number as Avro has it."""
    left, written = number << 1, bytearray()
    while left > 127:
        written.append(left & 127 | 128)
        left >>= 7
    return bytes([*written, left])


def as_bytes(content: bytes) -> bytes:
    return as_long(len(content)) + content


@pytest.mark.parametrize("precision", [9, 18, 19, 38])
def test_a_decimal_that_does_not_fit_is_rejected(
    spark: SparkSession, tmp_path: Path, precision: int
) -> None:
    how = avro_of(tmp_path, of_bytes(precision))
    too_large = as_bytes(8 * TOO_LARGE if precision > 18 else TOO_LARGE)
    values: list[bytes | None] = [as_bytes(b"\x05"), as_bytes(15 * b"\xff" + b"\xfb"), too_large]
    assert decoded(spark, how, values) == [
        (FIVE, None),
        (-FIVE, None),
        (None, "not_decoded"),
    ]


def test_a_fixed_decimal_that_does_not_fit_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    kind = {"type": "fixed", "name": "F", "size": 9, "logicalType": "decimal"}
    how = avro_of(tmp_path, {**kind, "precision": 5, "scale": 2})
    values: list[bytes | None] = [8 * b"\0" + b"\x05", 8 * b"\xff" + b"\xfb", TOO_LARGE]
    assert decoded(spark, how, values) == [(FIVE, None), (-FIVE, None), (None, "not_decoded")]


def test_decimals_inside_of_others_are_judged_too(spark: SparkSession, tmp_path: Path) -> None:
    maps = {"type": "map", "values": ["null", of_bytes(9)]}
    how = avro_of(tmp_path, ["null", {"type": "array", "items": maps}])
    head, end = b"\x02\x02\x02\x02a\x02", b"\0\0"
    values: list[bytes | None] = [
        b"\0",
        head + as_bytes(b"\x05") + end,
        head + as_bytes(TOO_LARGE) + end,
        head + as_bytes((1 << 20) * b"\x05") + end,
    ]
    assert decoded(spark, how, values) == [
        (None, None),
        ([{"a": FIVE}], None),
        (None, "not_decoded"),
        (None, "not_decoded"),
    ]


def test_a_decimal_of_ten_million_bytes_is_rejected_at_once(
    spark: SparkSession, tmp_path: Path
) -> None:
    how = avro_of(tmp_path, of_bytes(38))
    began = time.monotonic()
    assert decoded(spark, how, [as_bytes(10_000_000 * b"\x05")]) == [(None, "not_decoded")]
    assert time.monotonic() - began < 60


def test_a_large_record_keeps_its_decimals(spark: SparkSession, tmp_path: Path) -> None:
    fields = [{"name": "t", "type": "string"}, {"name": "d", "type": of_bytes(9)}]
    how = avro_of(tmp_path, {"type": "record", "name": "Inner", "fields": fields})
    text = as_bytes(2 * _LARGE_BYTES * b"x")
    padded = _DECIMAL_BYTES_MAX * b"\0"
    values: list[bytes | None] = [
        text + as_bytes(padded[1:] + b"\x05"),
        text + as_bytes(padded + b"\x05"),
    ]
    (first, second) = decoded(spark, how, values)
    assert (first[0].d, first[1]) == (FIVE, None)
    assert second[1] == "not_decoded"


def test_a_text_that_is_no_utf8_is_rejected(spark: SparkSession, tmp_path: Path) -> None:
    maps = {"type": "map", "values": ["null", "string", "long"]}
    how = avro_of(tmp_path, {"type": "array", "items": maps})
    one_map = b"\x02\x02"
    values: list[bytes | None] = [
        one_map + as_bytes("é".encode()) + b"\x02" + as_bytes(b"b") + b"\0\0",
        one_map + as_bytes(b"\xc0") + b"\0" + b"\0\0",
        one_map + as_bytes(b"a") + b"\x02" + as_bytes(b"b\xff") + b"\0\0",
        one_map + as_bytes(b"a") + b"\x04\x06" + b"\0\0",
        b"\0",
    ]
    reasons = [row.reject_reason for row in decoded_rows(spark, how, values).collect()]
    assert reasons == [None, "not_utf8", "not_utf8", None, None]


@pytest.mark.parametrize("grouping", ["none", "level"])
def test_a_job_counts_all_but_the_record_that_is_rejected(
    spark: SparkSession, tmp_path: Path, broker: Broker, grouping: str
) -> None:
    topic = f"dear-{grouping}"
    broker.create_topics([topic])
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for number in (b"\x05", TOO_LARGE, b"\x07"):
        producer.produce(topic, as_bytes(number), partition=0)
    assert producer.flush(30) == 0
    source = {"type": "kafka", "bootstrap_servers": broker.address, "subscribe": [topic]}
    how = avro_of(tmp_path, of_bytes(9))
    ran = Ran(
        spark,
        tmp_path,
        grouping,
        source={**source, "start": "earliest"},
        decode={"type": "avro", "schema_file": how.schema_file},
        event_time="timestamp",
        window={"type": "none"},
        lateness=None,
        grouping={"type": grouping},
        operator={"type": "aggregate", "key": "'all'", "columns": {"dear": "sum(s)"}},
    )
    assert [row["dear"] for row in ran.rows] == [Decimal("0.12")]
    (rejected,) = dead_letters_in(tmp_path / "bad")
    assert (rejected["reason"], int(rejected["offset"])) == ("not_decoded", 1)


RICH: Any = {
    "type": "record",
    "name": "Rich",
    "fields": [
        {"name": "dear", "type": of_bytes(18)},
        {"name": "name", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "many", "type": {"type": "array", "items": ["null", "long", of_bytes(9)]}},
        {"name": "by_name", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "cheap", "type": of_bytes(18)},
    ],
}


def mutate(record: bytes, random: np.random.Generator) -> bytes:
    """The record with some bytes of it others, gone, or numbers that are sizes elsewhere."""
    sizes = [as_long(size) for size in (1, 2**31, 2**40, 2**62, 10**6)]
    pieces = [b"", b"\xff", b"\xff\xff\x7f", 11 * b"\xff", b"\x01", b"\x00", *sizes]
    written = bytearray(record)
    for _ in range(random.integers(1, 4)):
        at = int(random.integers(len(written)))
        written[at : at + int(random.integers(3))] = pieces[random.integers(len(pieces))]
    return bytes(written[: random.integers(1, 2 * len(written))])


def test_whatever_the_bytes_are_a_record_is_read_or_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    random, file = np.random.default_rng(11), tmp_path / "rich.avsc"
    file.write_text(json.dumps(RICH))
    how = AvroDecode.model_validate({"type": "avro", "schema_file": str(file)})
    buffer, parsed = io.BytesIO(), fastavro.parse_schema(RICH)
    record = {"dear": Decimal("1.25"), "name": "x", "at": 10**12, "many": [None, 5, FIVE]}
    others = {"by_name": {"a": [1, 2], "b": []}, "kind": "B", "cheap": Decimal("12345.67")}
    fastavro.schemaless_writer(buffer, parsed, {**record, **others})
    values = [mutate(buffer.getvalue(), random) for _ in range(3000)]

    # As JSON, since Python has no years beyond 9999.
    whole = f"to_json(struct({', '.join(how.columns)})) AS whole"
    columns = decoded_rows(spark, how, list(values)).selectExpr(
        "dear", "cheap", whole, "reject_reason"
    )
    rows = columns.collect()

    reasons = [row.reject_reason for row in rows]
    assert {*reasons} == {None, "not_decoded", "not_utf8"}
    assert 100 < reasons.count(None) < 2900
    compared = 0
    for value, row in zip(values, rows, strict=True):
        # Java takes an index of 2^31 for 0, and has years beyond 9999.
        with suppress(IndexError, OverflowError):
            if row.reject_reason is None:
                read: Any = fastavro.schemaless_reader(io.BytesIO(value), parsed, None)
                assert (row.dear, row.cheap) == (read["dear"], read["cheap"])
                compared += 1
    assert compared > 100
