"""Decimals of a record that would keep a task for ever.

Spark writes a decimal out to its last digit before it looks whether it fits: `1e100000000`, eleven
bytes of a record, is a number of a hundred million digits, which a task does not finish. A text
of a million digits takes it many seconds. So the few JSON texts that might have such a number are
read in another way first, one which takes it for a float; and the decimals of CSV are read as
texts, of which one with such an exponent or as many digits is no number. Where an expression of the
job casts a text to a decimal, the same texts are no numbers.
"""

from functools import lru_cache
from typing import Any, cast

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, DataType, DecimalType, MapType, StringType, StructType

# An exponent of four digits or more, whatever script they are of, perhaps grouped by commas; no
# decimal has more than 38 digits in all.
_EXPONENT = r"[eE][,+-]*(?:,*\p{Nd}){4}"
# The same where any character may be written as an escape.
_EXPONENT_OR_ESCAPES = r"[eE](?:[,+-]|\p{Nd}|\\u\p{XDigit}{4}){4}|\\u00[46]5"

# Longer than any realistic number; and the size of a record that may hold such a number.
_DIGITS_MAX = 1_000
_LARGE_BYTES = 1 << 16
_CASTS = frozenset({"cast", "try_cast"})
_NO_NUMBER = "a text that is too long for a decimal"
_NAME = r'"[^"]*":'
_UNUSABLE = rf'{_EXPONENT}|"[^"]{{{_DIGITS_MAX}}}'


@lru_cache
def _parse(ddl: str) -> StructType:
    return cast("StructType", StructType.fromDDL(ddl))


def without_vast_decimals(text: Column, ddl: str) -> Column:
    """A JSON text that Spark can read by this schema at once; null in place of any other.

    A variant's numbers are floats where they have exponents, its texts have no escapes that they
    do not need, and an object with a duplicate name, of which Spark would read both, makes none.
    """
    decimals = _find_decimals(_parse(ddl))
    if decimals is None:
        return text
    variant = sf.to_json(sf.try_parse_json(text))
    texts = sf.to_json(sf.from_json(variant, cast("StructType", decimals)))
    # A column may be called `value2024`, which is no number with an exponent.
    texts = sf.regexp_replace(texts, _NAME, "")
    suspicious = (sf.octet_length(text) > _LARGE_BYTES) | text.rlike(_EXPONENT_OR_ESCAPES)
    return sf.when(suspicious, sf.when(~texts.rlike(_UNUSABLE), variant)).otherwise(text)


def _find_decimals(kind: DataType) -> DataType | None:
    """Find the parts of a type that hold decimals, each as a text; None if there are none."""
    if isinstance(kind, StructType):
        kept = StructType()
        for field in kind:
            inner = _find_decimals(field.dataType)
            if inner is not None:
                kept.add(field.name, inner)
        return kept if kept.fields else None
    if isinstance(kind, ArrayType):
        inner = _find_decimals(kind.elementType)
        return None if inner is None else ArrayType(inner)
    if isinstance(kind, MapType):
        inner = _find_decimals(kind.valueType)
        return None if inner is None else MapType(StringType(), inner)
    return StringType() if isinstance(kind, DecimalType) else None


def read_decimals(ddl: str) -> dict[str, DecimalType]:
    """The columns that are decimals, by name."""
    kinds = {field.name: field.dataType for field in _parse(ddl)}
    return {name: kind for name, kind in kinds.items() if isinstance(kind, DecimalType)}


def format_with_texts(ddl: str) -> str:
    """The schema of CSV as Spark DDL, with a text for each decimal."""
    columns = []
    for field in _parse(ddl):
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


def bound_casts(rows: DataFrame) -> DataFrame:
    """`rows`, of whose last columns no text of so many digits is cast to a decimal.

    Such a text is no number there, so the cast raises, or gives null if it is one that tries. Casts
    are found in what Spark made of the expressions, however they are written.
    """
    plan: Any = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - Python has no plans
    if " as decimal(" not in str(plan.expressions()):
        return rows
    session: Any = rows.sparkSession
    gateway = session.sparkContext._gateway  # noqa: SLF001 - likewise
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    classic = session._jvm.org.apache.spark.sql.classic  # noqa: SLF001
    java_session = session._jsparkSession  # noqa: SLF001 - likewise
    bound = _BoundCast(java_session, classic.ExpressionUtils)
    bounded = classic.Dataset.ofRows(java_session, plan.transformExpressions(bound))
    return DataFrame(bounded, session)


class _BoundCast:
    """What is put in the place of an expression, as Spark's plans ask for it."""

    class Java:
        """What py4j reads: the Java interface that Spark calls."""

        implements = ("scala.PartialFunction",)

    def __init__(self, session: Any, expressions: Any) -> None:
        self._session = session
        self._expressions = expressions

    def applyOrElse(self, node: Any, _default: Any) -> Any:  # noqa: N802 - Scala's own
        if node.prettyName() not in _CASTS or node.dataType().typeName()[:8] != "decimal(":
            return node
        child = node.child()
        if child.dataType().typeName() != "string":
            return node
        text = Column(self._expressions.column(child))
        bounded = sf.when(_is_usable(text) | text.isNull(), text).otherwise(sf.lit(_NO_NUMBER))
        given = self._session.expression(bounded._jc)  # noqa: SLF001 - as above
        return node.copy(given, node.dataType(), node.timeZoneId(), node.evalMode())
