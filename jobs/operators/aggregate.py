"""`aggregate`: the user's own aggregates of each key, in YAML alone.

A column of the result is an SQL expression over aggregates that merge exactly, such as
`sum(amount) / count(*)`, or a sketch. Under `grouping: none` it is plain Spark SQL; under another
grouping Arrow makes the partials, without a Python object a row, and Spark merges them.

    operator:
      type: aggregate
      key: user_id
      where: amount > 0
      columns:
        events: count(*)
        revenue: sum(amount)
        latency: {quantiles: latency_ms, at: [0.5, 0.99]}

A record is *filtered* if `where` is not true of it, and *rejected* if its key is null: SQL would
make a group of the records without a key.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from unskew.config.errors import UsageError
from unskew.config.models.base import IDENTIFIER, Expression, Model, bare_column
from unskew.config.models.operator import OperatorOptions
from unskew.config.problems.problem import Path, dotted
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.grouping.options.broken_rules import rule_error
from unskew.jobs.operators.aggregates.calls import Call, CallError, Part, parse_calls
from unskew.jobs.operators.aggregates.function import INTEGERS, Function, decimal_of
from unskew.jobs.operators.aggregates.functions import function_of
from unskew.jobs.operators.aggregates.sketches import Distinct, Quantiles, Top
from unskew.jobs.operators.base import KEY, NUMBER, WINDOW_BOUNDS, Operator, aggregate

if TYPE_CHECKING:
    import pyarrow as pa

KEYS_MAX = 16
COLUMNS_MAX = 200
_SKETCHES = ("quantiles", "distinct", "top")
_TEXTS = "array<string>"
KEY_TYPES = (*INTEGERS, "string", "boolean", "date", "timestamp", "timestamp_ntz")
_TAKEN = frozenset({*WINDOW_BOUNDS, "batch_id"})


def _column_name(text: str) -> str:
    if not IDENTIFIER.fullmatch(text):
        raise rule_error("a column's name", "letters, digits, underscores")
    if text.lower() in _TAKEN:
        raise rule_error("a name that results have already", "choose another name")
    return text


def _aggregates(text: str) -> str:
    try:
        parse_calls(text)
    except CallError as error:
        raise rule_error(error.rule, error.suggestion) from None
    return text


ColumnName = Annotated[str, Field(max_length=63), AfterValidator(_column_name)]
AggregateText = Annotated[Expression, AfterValidator(_aggregates)]
Share = Annotated[float, Field(ge=0, le=1)]


class Sketch(Model):
    """What does not merge exactly, estimated: quantiles, distinct values or frequent ones."""

    quantiles: Expression | None = Field(default=None, examples=["latency_ms"])
    """Numbers whose quantiles are estimated, as an SQL expression; `at` says which."""
    at: Share | Annotated[list[Share], Field(min_length=1, max_length=100)] | None = Field(
        default=None, examples=[[0.5, 0.99]]
    )
    """With `quantiles`: shares from 0 to 1. Of one the column is a DOUBLE, of a list an array."""
    distinct: Expression | None = Field(default=None, examples=["user_id"])
    """Values whose number is estimated, as an SQL expression: standard error 1.6 %."""
    top: Expression | None = Field(default=None, examples=["page"])
    """Values of which the most frequent are listed, as an SQL expression; `grouping: none` only."""
    k: Annotated[int, Field(ge=1, le=10_000)] | None = Field(default=None, examples=[10])
    """With `top`: how many values, by default 10. With `quantiles`: how exact, from 8 on; by
    default 200, an error of 1.33 % of the ranks, and about 1.7 KB of state a key and window."""

    @model_validator(mode="after")
    def _is_one_sketch(self) -> Self:
        names = [name for name in _SKETCHES if getattr(self, name)]
        if len(names) != 1:
            raise rule_error(
                "one of quantiles, distinct and top",
                "write {quantiles: x, at: 0.99}, {distinct: x} or {top: x, k: 10}",
            )
        if (self.at is None) == (names == ["quantiles"]):
            raise rule_error("quantiles and at together", "write {quantiles: x, at: [0.5, 0.99]}")
        if self.k is not None and names == ["distinct"]:
            raise rule_error("distinct without k", "remove k")
        if self.k is not None and names == ["quantiles"] and self.k < 8:
            raise rule_error("quantiles with k from 8 on", "remove k")
        return self

    @property
    def kind(self) -> str:
        """Which sketch it is."""
        return next(name for name in _SKETCHES if getattr(self, name))

    @property
    def argument(self) -> str:
        """What is sketched, as an SQL expression."""
        return str(getattr(self, self.kind))

    def function(self, name: str) -> Function:
        """The function, whose columns begin with `name`."""
        if self.distinct:
            return Distinct(name, self.distinct)
        if self.top:
            return Top(name, self.top, k=self.k or 10)
        at = tuple(self.at) if isinstance(self.at, list) else self.at
        assert at is not None, "checked by the model"
        return Quantiles(name, self.quantiles or "", at=at, k=self.k or 200)


def _tagged(text: str, other: str) -> Discriminator:
    """Chooses by whether a text is written: then only its mistakes are reported."""
    return Discriminator(lambda value: text if isinstance(value, str) else other)


Column = Annotated[
    Annotated[AggregateText, Tag("as a text")] | Annotated[Sketch, Tag("as a sketch")],
    _tagged("as a text", "as a sketch"),
]
Keys = Annotated[dict[ColumnName, Expression], Field(min_length=1, max_length=KEYS_MAX)]


class AggregateOptions(OperatorOptions):
    """Aggregates of the user's own."""

    key: Annotated[
        Annotated[Expression, Tag("as a text")] | Annotated[Keys, Tag("as columns")],
        _tagged("as a text", "as columns"),
    ] = Field(examples=["user_id", {"user": "user_id", "day": "date(ts)"}])
    """The key: a column or an SQL expression; or several, each with its name in the result. A
    record with a null in its key is rejected (`null_key`); `coalesce(x, '')` keeps it. Of an
    ARRAY<STRING> each element is a key, as a word of a line is."""
    where: Expression | None = Field(default=None, examples=["amount > 0"])
    """Only records of which this SQL condition is true are aggregated; the others are counted as
    filtered. The job's own `where` comes before `select`, this one after it."""
    columns: Annotated[dict[ColumnName, Column], Field(min_length=1, max_length=COLUMNS_MAX)] = (
        Field(examples=[{"events": "count(*)", "users": {"distinct": "user_id"}}])
    )
    """The columns of a result, in this order: SQL over aggregates that merge exactly, or a
    sketch."""

    @property
    def keys(self) -> dict[str, str]:
        """The key's columns by their names in a result."""
        if isinstance(self.key, dict):
            return self.key
        name = bare_column(self.key) or KEY
        return {name if IDENTIFIER.fullmatch(name) else KEY: self.key}

    def expressions(self) -> list[tuple[Path, str]]:
        if isinstance(self.key, dict):
            texts: list[tuple[Path, str]] = [(("key", n), text) for n, text in self.key.items()]
        else:
            texts = [(("key",), self.key)]
        if self.where is not None:
            texts.append((("where",), self.where))
        for name, column in self.columns.items():
            if isinstance(column, Sketch):
                texts.append((("columns", name, column.kind), column.argument))
                continue
            calls = (part for part in parse_calls(column) if isinstance(part, Call))
            texts += [(("columns", name), c.argument) for c in calls if c.argument != "*"]
        return texts

    def state(self) -> dict[str, object]:
        return {
            "operator.key": self.keys,
            "operator.columns": {
                name: column if isinstance(column, str) else column.model_dump(exclude_none=True)
                for name, column in self.columns.items()
            },
        }

    @agrees_with()
    def names_differ(self) -> Iterator[Contradiction]:
        """Columns of a result are told apart without their case."""
        seen = {name.lower() for name in self.keys}
        for name in self.columns:
            if name.lower() in seen:
                yield Contradiction(
                    ("columns", name), f'the column "{name}" is there twice', "rename one"
                )
            seen.add(name.lower())

    @agrees_with("grouping")
    def top_needs_plain_spark(self, grouping: Any) -> Iterator[Contradiction]:
        """Spark's merge of frequent items takes a struct that only Spark makes."""
        for name, column in self.columns.items():
            if isinstance(column, Sketch) and column.top and grouping.type != "none":
                yield Contradiction(
                    ("columns", name, "top"),
                    f"top contradicts grouping.type {grouping.type}: only plain Spark merges it",
                    "write grouping.type: none, or count by a key of that column",
                )


class Aggregate(Operator):
    """The user's own aggregates of each key."""

    Options = AggregateOptions
    options: AggregateOptions

    def __init__(
        self,
        options: AggregateOptions,
        texts: Mapping[str, str] | None = None,
        types: Mapping[str, str] | None = None,
    ) -> None:
        """`texts`: columns in the place of the expressions; `types`: the expressions' types."""
        super().__init__(options)
        texts, types = texts or {}, types or {}
        names = (f"{KEY}_{index}" if index else KEY for index in range(len(options.keys)))
        keys = dict(zip(names, options.keys.values(), strict=True))
        self._keys = {name: texts.get(name, text) for name, text in keys.items()}
        self._key_types = {name: types.get(name, "") for name in self._keys}
        self.explodes = list(self._key_types.values()) == [_TEXTS]
        self._columns, functions = _functions(options)
        self._functions = [
            replace(
                function,
                argument=texts.get(function.name, function.argument),
                kind=types.get(function.name, ""),
            )
            for function in functions
        ]

    @property
    def key(self) -> str:
        return self._keys[KEY]

    @property
    def keys(self) -> Mapping[str, str]:
        return self._keys

    @property
    def key_names(self) -> Mapping[str, str]:
        return dict(zip(self.options.keys, self._keys, strict=True))

    @property
    def key_types(self) -> Mapping[str, str]:
        return {KEY: "string"} if self.explodes else self._key_types

    @property
    def where(self) -> str | None:
        return self.options.where

    @property
    def texts(self) -> Mapping[str, str]:
        inputs = {
            function.name: function.argument for function in self._functions if function.inputs
        }
        return {**self._keys, **inputs}

    def over(self, columns: Mapping[str, str]) -> "Aggregate":
        return Aggregate(self.options, columns)

    def bound(self, types: Mapping[str, str]) -> "Aggregate":
        """The same with the types of its keys and arguments; UsageError has all that are wrong."""
        problems = [
            *_key_problems(self.options, {name: types[name] for name in self._keys}),
            *self._type_problems(types),
        ]
        if problems:
            raise UsageError(*problems)
        return Aggregate(self.options, self.texts, types)

    def _type_problems(self, types: Mapping[str, str]) -> Iterator[str]:
        for original, function in zip(_functions(self.options)[1], self._functions, strict=True):
            if not function.inputs:
                continue
            wrong = replace(original, kind=types[function.name]).type_problem()
            if wrong:
                where = f"operator.columns.{self._column_of(function)}"
                yield f"{where}: {original.argument}: {wrong.rule}; {wrong.suggestion}"

    def _column_of(self, function: Function) -> str:
        """The first column that uses it."""
        return next(name for name, parts in self._columns.items() if function.name in parts)

    @property
    def inputs(self) -> Mapping[str, str]:
        return _united(self._functions, lambda function: function.inputs)

    @property
    def reject_rules(self) -> Mapping[str, str]:
        return {
            f"{self._column_of(function)}_{word}": condition
            for function in self._functions
            for word, condition in function.reject_rules.items()
        }

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return _united(self._functions, lambda function: function.partial_columns)

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """Arrow aggregates what it can; the other functions work on all groups at once."""
        for function in self._functions:
            rows = function.arranged(rows)
        aggregations = [each for function in self._functions for each in function.aggregations]
        if not any(function.grouped for function in self._functions):
            return self._typed(aggregate(rows, aggregations, tuple(self._keys)))
        from unskew.jobs.operators.arrow import numbered

        rows = numbered(rows, tuple(self._keys))
        aggregations.append((NUMBER, "min", NUMBER))
        partials = aggregate(rows, aggregations, tuple(self._keys)).sort_by(NUMBER)
        for function in self._functions:
            partials = function.add(rows, partials)
        return self._typed(partials)

    def _typed(self, partials: "pa.Table") -> "pa.Table":
        """Sums and counts in the partial's own types; one that does not fit is an error."""
        for name, kind in self._summed.items():
            column = partials.column_names.index(name)
            partials = partials.set_column(column, name, partials[name].cast(kind))
        return partials

    @cached_property
    def _summed(self) -> "dict[str, pa.DataType]":
        import pyarrow as pa

        types = {}
        for function in self._functions:
            summed = function.aggregations and any(f == "sum" for _, f, _ in function.aggregations)
            for name, kind in function.partial_columns.items() if summed else ():
                decimal = decimal_of(kind)
                types[name] = pa.decimal128(*decimal) if decimal else pa.int64()
        return types

    @property
    def merge(self) -> Mapping[str, str]:
        return _united(self._functions, lambda function: function.merge)

    @property
    def direct(self) -> Mapping[str, str]:
        return _united(self._functions, lambda function: function.direct)

    @property
    def final(self) -> Mapping[str, str]:
        by_name = {function.name: function.final for function in self._functions}
        return {
            name: "".join(f"({by_name[part]})" if part in by_name else part for part in parts)
            for name, parts in self._columns.items()
        }


def _functions(options: AggregateOptions) -> tuple[dict[str, list[str]], list[Function]]:
    """The columns as texts and names of functions, and the functions, each call once."""
    columns: dict[str, list[str]] = {}
    names: dict[Part | str, str] = {}
    functions: list[Function] = []
    for column, value in options.columns.items():
        parts: list[Part] = parse_calls(value) if isinstance(value, str) else []
        if isinstance(value, Sketch):
            functions.append(value.function(f"_a{len(functions)}"))
            columns[column] = [functions[-1].name]
            continue
        for part in parts:
            if isinstance(part, Call) and part not in names:
                names[part] = f"_a{len(functions)}"
                functions.append(function_of(names[part], part.function, part.argument))
        columns[column] = [names[part] if isinstance(part, Call) else part for part in parts]
    return columns, functions


def _united(
    functions: Sequence[Function], of: Callable[[Function], Mapping[str, str]]
) -> dict[str, str]:
    return {name: text for function in functions for name, text in of(function).items()}


def _key_problems(options: AggregateOptions, types: Mapping[str, str]) -> Iterator[str]:
    several = isinstance(options.key, dict)
    for (name, text), kind in zip(options.keys.items(), types.values(), strict=True):
        each = kind == _TEXTS and len(types) == 1
        if kind not in KEY_TYPES and not decimal_of(kind) and not each:
            path = dotted(("operator", "key", name) if several else ("operator", "key"))
            yield (
                f"{path}: {text}: no key is of type {kind.upper()}; write cast({text} as string)"
            )
