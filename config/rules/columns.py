"""Expressions that name a column which nothing decodes, or that are no SQL."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unskew.config.models.base import find_bare_column
from unskew.config.models.decode import RAW_COLUMNS
from unskew.config.models.operator import OperatorOptions
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, rule
from unskew.config.types.sql import WITHOUT_BRACKETS, read_expression
from unskew.grouping.options.suggestions import find_nearest, one_of

# By itself `user` means a column: who asks Spark for its own user can write `current_user`.
_NOT_COLUMNS = WITHOUT_BRACKETS - {"user"} | {"null", "true", "false"}


@rule("operator", "decode", "select")
def operator_columns_exist(
    operator: OperatorOptions, decode: Any, select: Mapping[str, str] | None
) -> Iterator[Contradiction]:
    """The operator's expressions name decoded and selected columns only."""
    for path, text in operator.expressions():
        yield from _check(text, ("operator", *path), decode, select or {})


@rule("event_time", "decode", "select")
def event_time_column_exists(
    event_time: str, decode: Any, select: Mapping[str, str] | None
) -> Iterator[Contradiction]:
    """`event_time` names decoded and selected columns only."""
    yield from _check(event_time, ("event_time",), decode, select or {})


@rule("decode", "where", "select")
def selected_columns_exist(
    decode: Any, where: str | None, select: Mapping[str, str] | None
) -> Iterator[Contradiction]:
    """The job's own expressions name decoded columns only."""
    if where is not None:
        yield from _check(where, ("where",), decode, {})
    for name, text in (select or {}).items():
        yield from _check(text, ("select", name), decode, {})


def _check(
    expression: str, path: Path, decode: Any, selected: Mapping[str, str]
) -> Iterator[Contradiction]:
    own = dict.fromkeys((*selected, *decode.columns))
    known = [*own, *(raw for raw in RAW_COLUMNS if raw not in own)]
    lowered = {column.lower() for column in known}
    names, error = _read(expression, path)
    if error:
        yield Contradiction(path, f"{expression}: {error}", "complete it")
    for name in names:
        if name.lower() not in lowered:
            yield Contradiction(
                path,
                f'no column "{name}" comes from decode.type {decode.type}',
                _advice(name, list(own), known),
            )


def _read(expression: str, path: Path) -> tuple[Sequence[str], str]:
    """The columns that an expression names, and why it is no SQL."""
    name = find_bare_column(expression)
    if name is None:
        reading = read_expression(expression)
        return reading.columns, reading.error
    # A field called `user` means a column of that name.
    is_plain = "`" not in expression and name.lower() in _NOT_COLUMNS - {path[-1]}
    return () if is_plain else (name,), ""


def _advice(name: str, decoded: Sequence[str], known: Sequence[str]) -> str:
    near = find_nearest(name, decoded, cutoff=0.75)
    return f'did you mean "{near}"?' if near else one_of(known)
