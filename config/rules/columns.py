"""Expressions that name a column which nothing decodes.

Only an expression that is one bare name is judged: the rest is SQL, which Spark checks when the
job starts.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from unskew.config.models.base import is_expression
from unskew.config.models.decode import RAW_COLUMNS
from unskew.config.models.operator import OperatorOptions
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, rule
from unskew.grouping.options.suggestions import nearest, one_of

_BARE = re.compile(r"\s*(?:`([^`]+)`|([A-Za-z_][A-Za-z0-9_]*))\s*")
_NOT_COLUMNS = frozenset(
    {"null", "true", "false", "current_timestamp", "current_date", "current_user", "user"}
)


@rule("operator", "decode")
def operator_columns_exist(operator: OperatorOptions, decode: Any) -> Iterator[Contradiction]:
    """The operator's expressions name decoded columns only."""
    for name, field in type(operator).model_fields.items():
        value = getattr(operator, name)
        if value is not None and is_expression(field):
            yield from _check(value, ("operator", name), decode)


@rule("event_time", "decode")
def event_time_column_exists(event_time: str, decode: Any) -> Iterator[Contradiction]:
    """`event_time` names decoded columns only."""
    yield from _check(event_time, ("event_time",), decode)


def _check(expression: str, path: Path, decode: Any) -> Iterator[Contradiction]:
    match = _BARE.fullmatch(expression)
    if match is None:
        return
    name = match.group(1) or match.group(2)
    known = [*decode.columns, *(raw for raw in RAW_COLUMNS if raw not in decode.columns)]
    if name.lower() in {column.lower() for column in known}:
        return
    # A field called `user` means a column of that name.
    if name.lower() in _NOT_COLUMNS - {path[-1]} and match.group(1) is None:
        return
    yield Contradiction(
        path,
        f'no column "{name}" comes from decode.type {decode.type}',
        _advice(name, decode.columns, known),
    )


def _advice(name: str, decoded: Sequence[str], known: Sequence[str]) -> str:
    near = nearest(name, decoded, cutoff=0.75)
    return f'did you mean "{near}"?' if near else one_of(known)
