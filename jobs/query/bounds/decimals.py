"""Decimals of a record that would keep a task for ever.

Spark writes a decimal out to its last digit before it looks whether it fits: `1e100000000`, eleven
bytes of a record, is a number of a hundred million digits, which a task does not finish. A text
of a million digits takes it many seconds. So the few JSON texts that might have such a number are
read in another way first, one which takes it for a float; and the decimals of CSV are read as
texts, of which one with such an exponent or as many digits is no number. Where an expression of the
job makes decimals of texts (`plan.py` finds these), the same texts are no numbers.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import cast

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    MapType,
    StringType,
    StructType,
)

# An exponent of four digits or more, whatever script they are of, perhaps grouped by commas; no
# decimal has more than 38 digits in all.
_EXPONENT = r"[eE][,+-]*(?:,*\p{Nd}){4}"
# The same where any character may be written as an escape.
_EXPONENT_OR_ESCAPES = r"[eE](?:[,+-]|\p{Nd}|\\u\p{XDigit}{4}){4}|\\u00[46]5"

# Longer than any realistic number; and the size of a record that may hold such a number.
_DIGITS_MAX = 1_000
_LARGE_BYTES = 1 << 16
_NO_NUMBER = "a text that is too long for a decimal"
_NAME = r'"[^"]*":'
_UNUSABLE = rf'{_EXPONENT}|"[^"]{{{_DIGITS_MAX}}}'


@lru_cache
def parse_schema(ddl: str) -> StructType:
    """Parse a schema as Spark's DDL has it."""
    return cast("StructType", StructType.fromDDL(ddl))


def without_vast_decimals(text: Column, kind: DataType) -> Column:
    """A JSON text that Spark can read as this type at once; null in place of any other.

    A variant's numbers are floats where they have exponents, its texts have no escapes that they
    do not need, and an object with a duplicate name, of which Spark would read both, makes none.
    """
    decimals = find_decimals(kind)
    if decimals is None:
        return text
    variant = sf.to_json(sf.try_parse_json(text))
    texts = sf.from_json(variant, cast("StructType", decimals))
    suspicious = _is_suspicious(text, _EXPONENT_OR_ESCAPES)
    return sf.when(suspicious, sf.when(are_usable(texts), variant)).otherwise(text)


def without_vast_xml(text: Column, kind: DataType, options: Mapping[str, str]) -> Column:
    """The same of XML, whose characters may be written as entities."""
    decimals = find_decimals(kind)
    if decimals is None:
        return text
    texts = sf.from_xml(text, cast("StructType", decimals), dict(options))
    suspicious = _is_suspicious(text, f"{_EXPONENT}|&")
    return sf.when(suspicious, sf.when(are_usable(texts), text)).otherwise(text)


def without_vast_csv(text: Column, kind: StructType, options: Mapping[str, str]) -> Column:
    """The same of a line of CSV."""
    names = [field.name for field in kind if isinstance(field.dataType, DecimalType)]
    if not names:
        return text
    texts = sf.from_csv(text, _format_with_texts(kind), dict(options))
    numbers = sf.array(*[sf.replace(texts[name], sf.lit(","), sf.lit("")) for name in names])
    usable = sf.forall(numbers, lambda number: number.isNull() | _is_usable(number))
    suspicious = _is_suspicious(text, _EXPONENT)
    return sf.when(suspicious, sf.when(usable, text)).otherwise(text)


def without_vast_texts(value: Column, kind: DataType, wanted: DataType) -> Column:
    """`value` of a type that is cast to another, with no text in it that is a vast number.

    In its place is a text that is no number, so the cast raises, or gives null if it is one that
    tries.
    """
    if isinstance(kind, StringType) and isinstance(wanted, DecimalType):
        return sf.when(_is_usable(value) | value.isNull(), value).otherwise(sf.lit(_NO_NUMBER))
    if isinstance(kind, ArrayType) and isinstance(wanted, ArrayType):
        inner, wants = kind.elementType, wanted.elementType
        return sf.transform(value, lambda each: without_vast_texts(each, inner, wants))
    if isinstance(kind, MapType) and isinstance(wanted, MapType):
        keys, values, goal = kind.keyType, kind.valueType, wanted
        changed = sf.transform_keys(
            value, lambda key, _: without_vast_texts(key, keys, goal.keyType)
        )
        return sf.transform_values(
            changed, lambda _, each: without_vast_texts(each, values, goal.valueType)
        )
    if isinstance(kind, StructType) and isinstance(wanted, StructType):
        fields = [
            without_vast_texts(value[field.name], field.dataType, goal.dataType).alias(field.name)
            for field, goal in zip(kind, wanted, strict=True)
        ]
        return sf.when(value.isNotNull(), sf.struct(*fields))
    return value


def _is_suspicious(text: Column, pattern: str) -> Column:
    """May a text hold such a number? Of most it is seen that they do not, at little cost."""
    return (sf.octet_length(text) > _LARGE_BYTES) | text.rlike(pattern)


def are_usable(texts: Column) -> Column:
    """Is none of these decimals, all of them read as texts, a vast number?"""
    # A column may be called `value2024`, which is no number with an exponent.
    written = sf.regexp_replace(sf.to_json(texts), _NAME, "")
    return ~written.rlike(_UNUSABLE)


def find_decimals(kind: DataType) -> DataType | None:
    """Find the parts of a type that hold decimals, each as a text; None if there are none."""
    if isinstance(kind, StructType):
        kept = StructType()
        for field in kind:
            inner = find_decimals(field.dataType)
            if inner is not None:
                kept.add(field.name, inner)
        return kept if kept.fields else None
    if isinstance(kind, ArrayType):
        inner = find_decimals(kind.elementType)
        return None if inner is None else ArrayType(inner)
    if isinstance(kind, MapType):
        inner = find_decimals(kind.valueType)
        return None if inner is None else MapType(StringType(), inner)
    return StringType() if isinstance(kind, DecimalType) else None


def read_decimals(ddl: str) -> dict[str, DecimalType]:
    """The columns that are decimals, by name."""
    kinds = {field.name: field.dataType for field in parse_schema(ddl)}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, DecimalType)}


def format_with_texts(ddl: str) -> str:
    """The schema of CSV as Spark DDL, with a text for each decimal."""
    return _format_with_texts(parse_schema(ddl))


def _format_with_texts(schema: StructType) -> str:
    columns = []
    for field in schema:
        name = field.name.replace("`", "``")
        kind = StringType() if isinstance(field.dataType, DecimalType) else field.dataType
        columns.append(f"`{name}` {kind.simpleString()}")
    return ", ".join(columns)


def to_decimal(text: Column, kind: DecimalType) -> Column:
    """The number in a text, as Spark reads it of CSV: commas group digits; null if it is none."""
    plain = sf.replace(text, sf.lit(","), sf.lit(""))
    return sf.when(_is_usable(plain), plain.try_cast(kind))


def _is_usable(text: Column) -> Column:
    """Whether a text is short enough for Spark to write out the number in it."""
    return (sf.octet_length(text) <= _DIGITS_MAX) & ~text.rlike(_EXPONENT)
