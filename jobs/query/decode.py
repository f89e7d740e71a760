"""Records become typed columns; `reject_reason` says why one cannot be decoded."""

import secrets
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from unskew.config.models.decode import AvroDecode, CsvDecode, Decode, JsonDecode, TextDecode
from unskew.config.types.avro import load_avro_schema
from unskew.jobs.query.bounds.attempt import try_evaluate
from unskew.jobs.query.bounds.avro import has_text_of_other_bytes, parse_avro
from unskew.jobs.query.bounds.decimals import (
    format_with_texts,
    parse_schema,
    read_decimals,
    to_decimal,
    without_vast_decimals,
)

REJECT_REASON = "reject_reason"
NO_VALUE = "no_value"
NOT_UTF8 = "not_utf8"
NOT_DECODED = "not_decoded"
_CORRUPT = "_corrupt"
_PRESENT = "_present"
_WIRE_BYTES = 5
_DECODED = "_decoded"
_FLAT = "_flat"
# What stands around a JSON text. A record that could name it could end it too early. Without an
# `e` and digits, as it must not be taken for a number with an exponent.
MARK = "_" + "".join(secrets.choice("abcdfghjkmnpqrst") for _ in range(12))


def decode(raw: DataFrame, how: Decode, raw_columns: Sequence[str]) -> DataFrame:
    """`raw` with the decoded columns and `reject_reason`: null, or why the record cannot be used.

    A decoded column hides Kafka's own of the same name; the record's raw columns stay under
    `raw_NAME`. Further columns of `raw` stay as they are.
    """
    text = sf.col("value").cast("string")
    reason = sf.when(sf.col("value").isNull(), NO_VALUE)
    if isinstance(how, TextDecode | JsonDecode | CsvDecode):
        reason = reason.when(~sf.expr("is_valid_utf8(cast(value as string))"), NOT_UTF8)
    kept = [sf.col(name).alias(f"raw_{name}") for name in raw_columns]
    kept += [sf.col(name) for name in raw.columns if name not in raw_columns]
    if isinstance(how, TextDecode):
        others = [sf.col(name) for name in raw_columns if name != "value"]
        return raw.select(*kept, *others, text.alias("value"), reason.alias(REJECT_REASON))
    parsed = raw.select("*", *_parse(how, text, raw))
    decimals = read_decimals(how.ddl) if isinstance(how, CsvDecode) else {}
    fields = {name: _take_field(how, name) for name in how.columns}
    values = {**fields, **{name: to_decimal(fields[name], decimals[name]) for name in decimals}}
    undecoded = _is_undecoded(how)
    for name in decimals:
        undecoded = undecoded | (fields[name].isNotNull() & values[name].isNull())
    reason = reason.when(undecoded, NOT_DECODED)
    if isinstance(how, AvroDecode):
        kind = parsed.schema[_DECODED].dataType
        reason = reason.when(has_text_of_other_bytes(sf.col(_DECODED), kind), NOT_UTF8)
    others = [sf.col(name) for name in raw_columns if name not in how.columns]
    decoded = [value.alias(name) for name, value in values.items()]
    return parsed.select(*kept, *others, *decoded, reason.alias(REJECT_REASON))


def _parse(how: Decode, text: Column, raw: DataFrame) -> list[Column]:
    spark = raw.sparkSession
    if isinstance(how, JsonDecode):
        flat = _is_flat(sf.col("value"))
        wrapped = _parse_wrapped(how, sf.when(~flat, text))
        return [_parse_flat(how, sf.when(flat, text), spark).alias(_FLAT), wrapped.alias(_DECODED)]
    if isinstance(how, CsvDecode):
        schema = f"{format_with_texts(how.ddl)}, {_CORRUPT} STRING"
        # Whatever the mode, Spark's parser raises on a line of more than 20,480 columns.
        parsed = try_evaluate(spark, sf.from_csv(text, schema, _make_csv_options(how)))
        return [parsed.alias(_DECODED)]
    assert isinstance(how, AvroDecode)
    return [_parse_avro(how, raw).alias(_DECODED)]


def _is_flat(value: Column) -> Column:
    """Does the value begin as an object, and is its last byte the only `}` of all?

    Nothing can follow such an object where Spark's parser has come to its end.
    """
    end = sf.lit(b"}")
    before = sf.substring(value, sf.lit(1), sf.length(value) - 1)
    return sf.startswith(value, sf.lit(b"{")) & sf.endswith(value, end) & ~sf.contains(before, end)


def _parse_flat(how: JsonDecode, text: Column, spark: SparkSession) -> Column:
    """The record in the text of a flat object; null if it has none.

    Most records are such objects, and the text of any other costs nearly half as much again.
    """
    options = {"mode": "FAILFAST", "columnNameOfCorruptRecord": MARK}
    record = sf.from_json(
        without_vast_decimals(text, parse_schema(how.ddl)), f"STRUCT<{how.ddl}>", options
    )
    return try_evaluate(spark, record)


def _parse_wrapped(how: JsonDecode, text: Column) -> Column:
    """The text as the first of two elements of an array; the second is a mark.

    Of a text alone Spark reads the first object, and never sees that more follows. A text that
    closes the array itself leaves the mark outside.
    """
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    schema = f"{MARK} ARRAY<STRUCT<{how.ddl}, {MARK}: BOOLEAN>>, {_CORRUPT} STRING"
    whole = sf.concat(sf.lit(f'{{"{MARK}":['), text, sf.lit(f',{{"{MARK}":true}}]}}'))
    return sf.from_json(without_vast_decimals(whole, parse_schema(schema)), schema, options)


def _take_field(how: Decode, name: str) -> Column:
    """Take a decoded column from what was parsed."""
    if isinstance(how, JsonDecode):
        wrapped = sf.get(sf.col(f"{_DECODED}.{MARK}"), sf.lit(0))
        return sf.coalesce(sf.col(_FLAT).getField(name), wrapped.getField(name))
    return sf.col(_DECODED).getField(name)


def _is_undecoded(how: Decode) -> Column:
    decoded = sf.col(_DECODED)
    if isinstance(how, JsonDecode):
        elements = decoded.getField(MARK)
        marked = (sf.size(elements) == 2) & sf.get(elements, sf.lit(1)).getField(MARK)
        whole = marked & decoded.getField(_CORRUPT).isNull()
        record = sf.get(elements, sf.lit(0)).isNotNull()
        return sf.col(_FLAT).isNull() & ~sf.coalesce(whole & record, sf.lit(False))
    if isinstance(how, AvroDecode):
        return decoded.isNull() | sf.col(f"{_DECODED}.{_PRESENT}").isNull()
    return decoded.isNull() | sf.col(f"{_DECODED}.{_CORRUPT}").isNotNull()


def _parse_avro(how: AvroDecode, raw: DataFrame) -> Column:
    """The Avro record, with one field more: true where the record could be read.

    Where Spark cannot decode a record, all its fields are null, as those of a valid one may be.
    """
    written = load_avro_schema(Path(how.schema_file))
    present = {"name": _PRESENT, "type": "boolean", "default": True}
    read = {**written, "fields": [*written["fields"], present]}
    value = sf.col("value")
    if how.wire == "confluent":
        # A zero byte and the schema's number in the registry come first.
        headed = sf.expr("startswith(value, X'00')") & (sf.length(value) >= _WIRE_BYTES)
        value = sf.when(headed, sf.expr(f"substring(value, {_WIRE_BYTES + 1})"))
    return parse_avro(raw, value, written, read)


def _make_csv_options(how: CsvDecode) -> dict[str, str]:
    return {
        "mode": "PERMISSIVE",
        "columnNameOfCorruptRecord": _CORRUPT,
        "sep": how.separator,
        "quote": how.quote,
        "escape": how.escape,
        "nullValue": how.null_text,
    }
