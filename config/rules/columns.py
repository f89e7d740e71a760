"""Expressions that name a column which nothing decodes.

Only an expression that is one bare name is judged: the rest is SQL, which Spark checks when the
job starts.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from unskew.config.models.decode import RAW_COLUMNS
from unskew.config.models.operator import OperatorOptions
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, rule
from unskew.grouping.options.suggestions import nearest, one_of

_BARE = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*))\s*")
_NOT_COLUMNS = frozenset(
    {"null", "true", "false", "current_timestamp", "current_date", "current_user", "user"}
)


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
    match = _BARE.fullmatch(expression)
    if match is None:
        return
    name = match.group(1) or match.group(2)
    own = dict.fromkeys((*selected, *decode.columns))
    known = [*own, *(raw for raw in RAW_COLUMNS if raw not in own)]
    if name.lower() in {column.lower() for column in known}:
        return
    # A field called `user` means a column of that name.
    if name.lower() in _NOT_COLUMNS - {path[-1]} and match.group(1) is None:
        return
    yield Contradiction(
        path,
        f'no column "{name}" comes from decode.type {decode.type}',
        _advice(name, list(own), known),
    )


def _advice(name: str, decoded: Sequence[str], known: Sequence[str]) -> str:
    near = nearest(name, decoded, cutoff=0.75)
    return f'did you mean "{near}"?' if near else one_of(known)
