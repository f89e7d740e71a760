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
from typing import TYPE_CHECKING, NamedTuple

from unskew.config.errors import UsageError
from unskew.config.problems.problem import Path, format_path
from unskew.jobs.operators.aggregates.calls import Call, Part, parse_calls
from unskew.jobs.operators.aggregates.function import INTEGERS, Function, read_decimal_type
from unskew.jobs.operators.aggregates.functions import make_function
from unskew.jobs.operators.aggregates.options import AggregateOptions, Sketch
from unskew.jobs.operators.base import KEY, NUMBER, Operator, aggregate

if TYPE_CHECKING:
    import pyarrow as pa

TEXTS = "array<string>"
KEY_TYPES = (*INTEGERS, "string", "boolean", "date", "timestamp", "timestamp_ntz")


class Section(NamedTuple):
    """Where an aggregate stands in a job, and what its columns begin with beside others."""

    path: Path = ("operator",)
    prefix: str = ""


_WHOLE = Section()


class Aggregate(Operator):
    """The user's own aggregates of each key."""

    Options = AggregateOptions
    options: AggregateOptions

    def __init__(
        self,
        options: AggregateOptions,
        texts: Mapping[str, str] | None = None,
        types: Mapping[str, str] | None = None,
        section: Section = _WHOLE,
    ) -> None:
        """`texts`: columns in the place of the expressions; `types`: the expressions' types."""
        super().__init__(options)
        texts, types = texts or {}, types or {}
        self.section = section
        names = (
            f"{section.prefix}{KEY}_{index}" if index else f"{section.prefix}{KEY}"
            for index in range(len(options.keys))
        )
        keys = dict(zip(names, options.keys.values(), strict=True))
        self._keys = {name: texts.get(name, text) for name, text in keys.items()}
        self._key_types = {name: types.get(name, "") for name in self._keys}
        self.explodes = list(self._key_types.values()) == [TEXTS]
        self._columns, functions = _make_functions(options, section.prefix)
        self._functions = [
            replace(
                function,
                argument=texts.get(function.name, function.argument),
                kind=types.get(function.name, ""),
            )
            for function in functions
        ]
        self.has_partials = all(function.has_partials for function in functions)

    @property
    def key(self) -> str:
        return next(iter(self._keys.values()))

    @property
    def keys(self) -> Mapping[str, str]:
        return self._keys

    @property
    def key_names(self) -> Mapping[str, str]:
        return dict(zip(self.options.keys, self._keys, strict=True))

    @property
    def key_types(self) -> Mapping[str, str]:
        return dict.fromkeys(self._keys, "string") if self.explodes else self._key_types

    @property
    def where(self) -> str | None:
        return self.options.where

    @property
    def texts(self) -> Mapping[str, str]:
        inputs = {
            function.name: function.argument for function in self._functions if function.inputs
        }
        return {**self._keys, **inputs}

    def with_columns(self, columns: Mapping[str, str]) -> "Aggregate":
        return Aggregate(self.options, columns, section=self.section)

    def with_types(self, types: Mapping[str, str]) -> "Aggregate":
        """Copy it with the types of keys and arguments; UsageError has all that are wrong."""
        problems = [
            *self._find_key_problems({name: types[name] for name in self._keys}),
            *self._find_type_problems(types),
        ]
        if problems:
            raise UsageError(*problems)
        return Aggregate(self.options, self.texts, types, self.section)

    def _find_key_problems(self, types: Mapping[str, str]) -> Iterator[str]:
        several = isinstance(self.options.key, dict)
        explodes = not self.section.prefix and len(types) == 1
        for (name, text), kind in zip(self.options.keys.items(), types.values(), strict=True):
            if kind in KEY_TYPES or read_decimal_type(kind) or (explodes and kind == TEXTS):
                continue
            path = format_path((*self.section.path, "key", *([name] if several else [])))
            way = f"write cast({text} as string)"
            if kind == TEXTS and not several:
                way = "write a job of its own for it"
            yield f"{path}: {text}: no key is of type {kind.upper()}; {way}"

    def _find_type_problems(self, types: Mapping[str, str]) -> Iterator[str]:
        _, originals = _make_functions(self.options, self.section.prefix)
        for original, function in zip(originals, self._functions, strict=True):
            if not function.inputs:
                continue
            wrong = replace(original, kind=types[function.name]).describe_type_problem()
            if wrong:
                where = format_path((*self.section.path, "columns", self._find_column(function)))
                yield f"{where}: {original.argument}: {wrong.rule}; {wrong.suggestion}"

    def _find_column(self, function: Function) -> str:
        """Find the first column that uses it."""
        return next(name for name, parts in self._columns.items() if function.name in parts)

    @property
    def inputs(self) -> Mapping[str, str]:
        return _unite(self._functions, lambda function: function.inputs)

    @property
    def reject_rules(self) -> Mapping[str, str]:
        return {
            f"{self._find_column(function)}_{word}": condition
            for function in self._functions
            for word, condition in function.reject_rules.items()
        }

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return _unite(self._functions, lambda function: function.partial_columns)

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """Arrow aggregates what it can; the other functions work on all groups at once."""
        for function in self._functions:
            rows = function.arrange(rows)
        aggregations = [each for function in self._functions for each in function.aggregations]
        if not any(function.grouped for function in self._functions):
            return self._cast_totals(aggregate(rows, aggregations, tuple(self._keys)))
        from unskew.jobs.operators.arrow import number_groups

        rows = number_groups(rows, tuple(self._keys))
        aggregations.append((NUMBER, "min", NUMBER))
        partials = aggregate(rows, aggregations, tuple(self._keys)).sort_by(NUMBER)
        for function in self._functions:
            partials = function.add(rows, partials)
        return self._cast_totals(partials)

    def _cast_totals(self, partials: "pa.Table") -> "pa.Table":
        """Cast sums and counts to the partial's own types; one that does not fit is an error."""
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
                decimal = read_decimal_type(kind)
                types[name] = pa.decimal128(*decimal) if decimal else pa.int64()
        return types

    @property
    def merge(self) -> Mapping[str, str]:
        return _unite(self._functions, lambda function: function.merge)

    @property
    def direct(self) -> Mapping[str, str]:
        return _unite(self._functions, lambda function: function.direct)

    @property
    def final(self) -> Mapping[str, str]:
        by_name = {function.name: function.final for function in self._functions}
        return {
            name: "".join(f"({by_name[part]})" if part in by_name else part for part in parts)
            for name, parts in self._columns.items()
        }


def _make_functions(
    options: AggregateOptions, prefix: str
) -> tuple[dict[str, list[str]], list[Function]]:
    """Make the columns as texts and names of functions, and the functions, each call once."""
    columns: dict[str, list[str]] = {}
    names: dict[Part | str, str] = {}
    functions: list[Function] = []
    for column, value in options.columns.items():
        parts: list[Part] = parse_calls(value) if isinstance(value, str) else []
        if isinstance(value, Sketch):
            functions.append(value.make_function(f"{prefix}_a{len(functions)}"))
            columns[column] = [functions[-1].name]
            continue
        for part in parts:
            if isinstance(part, Call) and part not in names:
                names[part] = f"{prefix}_a{len(functions)}"
                functions.append(make_function(names[part], part.function, part.argument))
        columns[column] = [names[part] if isinstance(part, Call) else part for part in parts]
    return columns, functions


def _unite(
    functions: Sequence[Function], of: Callable[[Function], Mapping[str, str]]
) -> dict[str, str]:
    return {name: text for function in functions for name, text in of(function).items()}
