"""Expressions of a job which one record could make endless, bounded where Spark has planned them.

They are found in what Spark made of the expressions, however they are written, and casts that
Spark adds of itself are among them. Each is put around by a look at the record's own value, which
raises, or gives null where the expression gives null for a text that is no number.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.types import DataType, StructType, VariantType

from unskew.jobs.query.bounds.decimals import (
    are_usable,
    find_decimals,
    without_vast_csv,
    without_vast_decimals,
    without_vast_texts,
    without_vast_xml,
)
from unskew.jobs.query.bounds.patterns import MATCHERS, may_overflow, without_overflow
from unskew.jobs.query.bounds.sizes import SIZED, bound_size

# What such an expression has in its text as Spark writes it.
_NAMED = re.compile(
    r" as (?:decimal|array|map|struct)|from_(?:json|csv|xml)|variant_?get|repeat|pad\(|space"
    r"|array_insert|sequence"
    # A pattern that repeats a group.
    r"|\)[*+{]",
    re.IGNORECASE,
)
_PARSERS: Mapping[str, Callable[..., Column]] = {
    "CsvToStructs": without_vast_csv,
    "JsonToStructs": lambda text, kind, _: without_vast_decimals(text, kind),
    "XmlToStructs": without_vast_xml,
}


def bound_expressions(rows: DataFrame) -> DataFrame:
    """`rows`, whose last columns no record keeps a task with for ever."""
    plan: Any = rows._jdf.queryExecution().analyzed()  # noqa: SLF001 - Python has no plans
    expressions = plan.expressions()
    # Of each node a line: the text of an expression is cut where it has many parts.
    texts = (expressions.apply(index).treeString() for index in range(expressions.size()))
    if not any(_NAMED.search(text) for text in texts):
        return rows
    session: Any = rows.sparkSession
    ensure_callback_server_started(session.sparkContext._gateway)  # type: ignore[no-untyped-call]  # noqa: SLF001
    bound = plan.transformExpressions(_Bounded(session))
    classic = session._jvm.org.apache.spark.sql.classic  # noqa: SLF001 - likewise
    return DataFrame(classic.Dataset.ofRows(session._jsparkSession, bound), session)  # noqa: SLF001


class _Bounded:
    """What is put in the place of an expression, as Spark's plans ask for it."""

    class Java:
        """What py4j reads: the Java interface that Spark calls."""

        implements = ("scala.PartialFunction",)

    def __init__(self, session: Any) -> None:
        self._session = session._jsparkSession  # noqa: SLF001 - Python has no plans
        self._jvm = session._jvm  # noqa: SLF001 - likewise

    def applyOrElse(self, node: Any, _default: Any) -> Any:  # noqa: N802 - Scala's own
        name = node.getClass().getSimpleName()
        known = name in ("Cast", "VariantGet") or name in _PARSERS or name in (*SIZED, *MATCHERS)
        if not known or not node.resolved():
            return node
        if name == "Cast":
            return self._bound_cast(node)
        if name == "VariantGet":
            return self._bound_variant(node, node.path(), fails=node.failOnError())
        if name in SIZED:
            return self._bound_size(node, name)
        if name in MATCHERS:
            return self._bound_match(node)
        text, options = self._to_column(node.child()), self._read_map(node.options())
        bounded = _PARSERS[name](text, _read_type(node.schema()), options)
        return node if bounded is text else self._replace(node, 0, bounded)

    def _bound_cast(self, node: Any) -> Any:
        kind, wanted = _read_type(node.child().dataType()), _read_type(node.dataType())
        if find_decimals(wanted) is None:
            return node
        if isinstance(kind, VariantType):
            root = self._to_expression(sf.lit("$"))
            return self._bound_variant(node, root, fails=node.evalMode().toString() != "TRY")
        if "string" not in kind.simpleString():
            return node
        value = self._to_column(node.child())
        bounded = without_vast_texts(value, kind, wanted)
        return node if bounded is value else self._replace(node, 0, bounded)

    def _bound_variant(self, node: Any, path: Any, *, fails: bool) -> Any:
        decimals = find_decimals(_read_type(node.dataType()))
        if decimals is None:
            return node
        variant = self._to_column(node.children().head())
        kind = self._session.parseDataType(decimals.json())
        get = self._jvm.org.apache.spark.sql.catalyst.expressions.variant.VariantGet
        texts = get(node.children().head(), path, kind, False, node.timeZoneId())
        usable = are_usable(sf.array(self._to_column(texts)))
        other = sf.raise_error(sf.lit("a number that is too long for a decimal"))
        bounded = sf.when(usable | variant.isNull(), variant)
        return self._replace(node, 0, bounded.otherwise(other) if fails else bounded)

    def _bound_size(self, node: Any, name: str) -> Any:
        children = [node.children().apply(n) for n in range(node.children().size())]
        if all(children[index].foldable() for index in SIZED[name].arguments):
            return node
        kind = _read_type(children[0].dataType()).simpleString()
        index, bounded = bound_size(name, [self._to_column(child) for child in children], kind)
        return self._replace(node, index, bounded)

    def _bound_match(self, node: Any) -> Any:
        text, pattern = (node.children().apply(n) for n in (0, 1))
        # Spark takes no such look within a function of its own lists.
        if not may_overflow(pattern.toString()) or "lambda " in node.toString():
            return node
        bounded = without_overflow(self._to_column(text), self._to_column(pattern))
        return self._replace(node, 0, bounded)

    def _replace(self, node: Any, index: int, child: Column) -> Any:
        """The node with another child."""
        children = [node.children().apply(n) for n in range(node.children().size())]
        children[index] = self._to_expression(child)
        return node.withNewChildren(self._jvm.PythonUtils.toSeq(children))

    def _to_column(self, expression: Any) -> Column:
        expressions = self._jvm.org.apache.spark.sql.classic.ExpressionUtils
        return Column(expressions.column(expression))

    def _to_expression(self, column: Column) -> Any:
        return self._session.expression(column._jc)  # noqa: SLF001 - Python has no expressions

    def _read_map(self, options: Any) -> dict[str, str]:
        converters = self._jvm.scala.jdk.javaapi.CollectionConverters
        return dict(converters.asJava(options))


def _read_type(kind: Any) -> DataType:
    """A type of Java's as one of Python's."""
    field = {"name": "v", "type": json.loads(kind.json()), "nullable": True, "metadata": {}}
    return StructType.fromJson({"type": "struct", "fields": [field]})["v"].dataType
