"""Avro records whose decimals Spark reads as other numbers, or would be busy with for minutes.

Of a decimal of at most 18 digits Spark takes the last eight bytes, whatever is before them: of
2^64 + 5 it makes five. So such decimals are read as ones of 38 digits, and cast to their own type,
which fails where they do not fit. Of those it counts the digits, which takes it half a minute for a
million bytes. So large records are read with bytes in the place of decimals first.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.avro.functions import from_avro
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructType

from unskew.jobs.query.bounds.attempt import cast_or_raise, try_evaluate

Schema = Mapping[str, Any]

_DIGITS_OF_A_LONG = 18
_BYTES_OF_A_LONG = 8
_DIGITS_MAX = 38
# Ten times what 38 digits need; and the size from which a record is looked at for more.
_DECIMAL_BYTES_MAX = 160
_LARGE_BYTES = 1 << 13


def parse_avro(raw: DataFrame, value: Column, written: Schema, wanted: Schema) -> Column:
    """Parse the record in `value`, written by one schema, as another has it.

    All its fields are null, or it is, where it cannot be read.
    """
    plain = _from_avro(value, written, wanted)
    kind = raw.select(plain.alias("record")).schema["record"].dataType
    if not _holds(kind, DecimalType):
        return plain
    large = sf.when(sf.length(value) > _LARGE_BYTES, value)
    in_bytes = _from_avro(large, written, _change(wanted, _take_bytes))
    # In an array of one, so that it is read once for all its decimals.
    too_long = sf.exists(
        sf.array(in_bytes), lambda record: _has_any(record, kind, DecimalType, _is_long)
    )
    usable = sf.when(sf.coalesce(~too_long, sf.lit(True)), value)
    widened = _from_avro(usable, written, _change(wanted, _widen))
    return try_evaluate(raw.sparkSession, cast_or_raise(raw.sparkSession, widened, kind))


def _from_avro(value: Column, written: Schema, wanted: Schema) -> Column:
    options = {"mode": "PERMISSIVE", "avroSchema": json.dumps(wanted)}
    return from_avro(value, json.dumps(written), options)


def _change(schema: Any, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Any:
    """The schema with each of its types that is an object changed, those inside of others too."""
    if isinstance(schema, list):
        return [_change(branch, change) for branch in schema]
    if not isinstance(schema, Mapping):
        return schema
    changed = change(dict(schema))
    for name in ("type", "items", "values"):
        if name in changed:
            changed[name] = _change(changed[name], change)
    if "fields" in changed:
        fields = changed["fields"]
        changed["fields"] = [{**each, "type": _change(each["type"], change)} for each in fields]
    return changed


def _take_bytes(kind: dict[str, Any]) -> dict[str, Any]:
    """A type as it is written, which nothing has to be made of."""
    return {name: value for name, value in kind.items() if name != "logicalType"}


def _widen(kind: dict[str, Any]) -> dict[str, Any]:
    """A decimal that Spark would read as a long as one of as many digits as its bytes can hold."""
    is_decimal = kind.get("logicalType") == "decimal" and kind["type"] in {"bytes", "fixed"}
    if not is_decimal or kind["precision"] > _DIGITS_OF_A_LONG:
        return kind
    if kind["type"] == "bytes":
        return {**kind, "precision": _DIGITS_MAX}
    if kind["size"] <= _BYTES_OF_A_LONG:
        return kind
    digits = len(str(1 << (8 * min(kind["size"], _DECIMAL_BYTES_MAX) - 1))) - 1
    return {**kind, "precision": min(digits, _DIGITS_MAX)}


def has_text_of_other_bytes(record: Column, kind: DataType) -> Column:
    """Is a text anywhere in the record no UTF-8? Avro does not look, and Python would raise."""
    is_wrong = _has_any(record, kind, StringType, lambda text: ~sf.is_valid_utf8(text))
    return sf.coalesce(is_wrong, sf.lit(False))


def _is_long(decimal: Column) -> Column:
    """Is what is bytes here longer than the digits of any decimal need?"""
    return sf.octet_length(decimal) > _DECIMAL_BYTES_MAX


def _has_any(
    value: Column, kind: DataType, leaf: type[DataType], is_wrong: Callable[[Column], Column]
) -> Column:
    """Is a value of the type `leaf` wrong anywhere in `value`, which is of the type `kind`?"""
    if isinstance(kind, leaf):
        return is_wrong(value)
    wrong = sf.lit(False)
    if isinstance(kind, StructType):
        for field in kind:
            if _holds(field.dataType, leaf):
                inside = value.getField(field.name)
                wrong = wrong | _has_any(inside, field.dataType, leaf, is_wrong)
    elif isinstance(kind, ArrayType) and _holds(kind, leaf):
        inner = kind.elementType
        wrong = sf.exists(value, lambda each: _has_any(each, inner, leaf, is_wrong))
    elif isinstance(kind, MapType):
        keys = ArrayType(kind.keyType)
        wrong = _has_any(sf.map_keys(value), keys, leaf, is_wrong)
        values = ArrayType(kind.valueType)
        wrong = wrong | _has_any(sf.map_values(value), values, leaf, is_wrong)
    return wrong


def _holds(kind: DataType, leaf: type[DataType]) -> bool:
    """Is a type another, or is it inside of it?"""
    if isinstance(kind, StructType):
        return any(_holds(field.dataType, leaf) for field in kind)
    if isinstance(kind, ArrayType):
        return _holds(kind.elementType, leaf)
    if isinstance(kind, MapType):
        return _holds(kind.keyType, leaf) or _holds(kind.valueType, leaf)
    return isinstance(kind, leaf)
