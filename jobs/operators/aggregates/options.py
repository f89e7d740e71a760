"""The options of `aggregate`: a key, a condition, and the columns of a result."""

from collections.abc import Iterator
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from unskew.config.models.base import IDENTIFIER, Expression, Model, find_bare_column
from unskew.config.models.operator import OperatorOptions
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.config.types.sql import read_expression
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.jobs.operators.aggregates.calls import Call, CallError, parse_calls
from unskew.jobs.operators.aggregates.distinct_values import DistinctValues
from unskew.jobs.operators.aggregates.function import Function
from unskew.jobs.operators.aggregates.sketches import Distinct, Quantiles, Top
from unskew.jobs.operators.base import KEY, WINDOW_BOUNDS

KEYS_MAX = 16
COLUMNS_MAX = 200
_SKETCHES = ("quantiles", "distinct", "distinct_values", "top")
# What Spark has beside the aggregates' values where it makes a column of them.
_SEEN_BY_RESULTS = (KEY, "window")
_TAKEN = frozenset({*WINDOW_BOUNDS, "batch_id"})


def _check_column_name(text: str) -> str:
    if not IDENTIFIER.fullmatch(text):
        raise make_rule_error("a column's name", "letters, digits, underscores")
    if text.lower() in _TAKEN:
        raise make_rule_error("a name that results have already", "choose another name")
    return text


def _check_aggregates(text: str) -> str:
    try:
        parse_calls(text)
    except CallError as error:
        raise make_rule_error(error.rule, error.suggestion) from None
    return text


def _name_each(value: object) -> object:
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        named = [
            f"{each if IDENTIFIER.fullmatch(each) else f'name{number}'}: {each}"
            for number, each in enumerate(value, 1)
        ]
        raise make_rule_error("several keys have names", f"write {{{', '.join(named)}}}")
    return value


ColumnName = Annotated[str, Field(max_length=63), AfterValidator(_check_column_name)]
AggregateText = Annotated[Expression, AfterValidator(_check_aggregates)]
Share = Annotated[float, Field(ge=0, le=1)]


class Sketch(Model):
    """What no number of SQL's is: quantiles, distinct values or frequent ones."""

    quantiles: Expression | None = Field(default=None, examples=["latency_ms"])
    """Numbers whose quantiles are estimated, as an SQL expression; `at` says which."""
    at: Share | Annotated[list[Share], Field(min_length=1, max_length=100)] | None = Field(
        default=None, examples=[[0.5, 0.99]]
    )
    """With `quantiles`: shares from 0 to 1. Of one the column is a DOUBLE, of a list an array."""
    distinct: Expression | None = Field(default=None, examples=["user_id"])
    """Values whose number is estimated, as an SQL expression: standard error 1.6 %."""
    distinct_values: Expression | None = Field(default=None, examples=["country"])
    """Values of which the smallest different ones are listed, as an SQL expression; needs a window.
    The column is a struct of `values`, in their order, and `more`: are there more than k?"""
    top: Expression | None = Field(default=None, examples=["page"])
    """Values of which the most frequent are listed, as an SQL expression; `grouping: none` only."""
    k: Annotated[int, Field(ge=1, le=10_000)] | None = Field(default=None, examples=[10])
    """With `top`: how many values, by default 10; with `distinct_values`, by default 100. With
    `quantiles`: how exact, from 8 on; by default 200, an error of 1.33 % of the ranks, and about
    1.7 KB of state a key and window."""

    @model_validator(mode="after")
    def _is_one_sketch(self) -> Self:
        names = [name for name in _SKETCHES if getattr(self, name)]
        if len(names) != 1:
            raise make_rule_error(
                "one of quantiles, distinct, distinct_values and top",
                "write {quantiles: x, at: 0.99}, {distinct: x} or {top: x, k: 10}",
            )
        if (self.at is None) == (names == ["quantiles"]):
            raise make_rule_error(
                "quantiles and at together", "write {quantiles: x, at: [0.5, 0.99]}"
            )
        if self.k is not None and names == ["distinct"]:
            raise make_rule_error("distinct without k", "remove k")
        if self.k is not None and names == ["quantiles"] and self.k < 8:
            raise make_rule_error("quantiles with k from 8 on", "remove k")
        return self

    @property
    def kind(self) -> str:
        """Which sketch it is."""
        return next(name for name in _SKETCHES if getattr(self, name))

    @property
    def argument(self) -> str:
        """What is sketched, as an SQL expression."""
        return str(getattr(self, self.kind))

    @property
    def is_nested(self) -> bool:
        """Is its column a list or a struct?"""
        return self.kind in {"top", "distinct_values"} or isinstance(self.at, list)

    def make_function(self, name: str) -> Function:
        """Make the function, whose columns begin with `name`."""
        if self.distinct:
            return Distinct(name, self.distinct)
        if self.distinct_values:
            return DistinctValues(name, self.distinct_values, k=self.k or 100)
        if self.top:
            return Top(name, self.top, k=self.k or 10)
        at = tuple(self.at) if isinstance(self.at, list) else self.at
        assert at is not None, "checked by the model"
        return Quantiles(name, self.quantiles or "", at=at, k=self.k or 200)


def _choose_by_text(text: str, other: str) -> Discriminator:
    """Choose by whether a text is written: then only its mistakes are reported."""
    return Discriminator(lambda value: text if isinstance(value, str) else other)


Column = Annotated[
    Annotated[AggregateText, Tag("as a text")] | Annotated[Sketch, Tag("as a sketch")],
    _choose_by_text("as a text", "as a sketch"),
]
Keys = Annotated[
    dict[ColumnName, Expression],
    Field(min_length=1, max_length=KEYS_MAX),
    BeforeValidator(_name_each),
]


class AggregateOptions(OperatorOptions):
    """Aggregates of the user's own."""

    key: Annotated[
        Annotated[Expression, Tag("as a text")] | Annotated[Keys, Tag("as columns")],
        _choose_by_text("as a text", "as columns"),
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
        name = find_bare_column(self.key) or KEY
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

    def nested_columns(self, result: str | None) -> list[str]:
        columns = self.columns.items()
        return [name for name, each in columns if isinstance(each, Sketch) and each.is_nested]

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
                    ("columns", name), f'the column "{name}" is a duplicate', "rename one"
                )
            seen.add(name.lower())

    @agrees_with()
    def columns_are_inside_of_aggregates(self) -> Iterator[Contradiction]:
        """Around its aggregates a column sees their values and nothing of a record."""
        for name, column in self.columns.items():
            parts = [] if isinstance(column, Sketch) else parse_calls(column)
            if len(parts) < 2:
                continue
            texts = ("(0)" if isinstance(part, Call) else part for part in parts)
            around = read_expression("".join(texts))
            if around.error:
                yield Contradiction(("columns", name), f"{column}: {around.error}", "complete it")
            for outside in around.columns:
                if not outside.lower().startswith(_SEEN_BY_RESULTS):
                    yield Contradiction(
                        ("columns", name),
                        f"{outside} outside of an aggregate",
                        f"write first({outside}), or make it a column of the key",
                    )

    @agrees_with("window")
    def distinct_values_need_a_window(self, window: Any) -> Iterator[Contradiction]:
        """Without its end the merge's state would grow with every batch."""
        for name, column in self.columns.items():
            if isinstance(column, Sketch) and column.distinct_values and window.type == "none":
                yield Contradiction(
                    ("columns", name, "distinct_values"),
                    "distinct_values contradicts window.type none: its state ends with a window",
                    "add a window, or write {distinct: ...} for their number",
                )

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
