"""Rows on which an operator raises: found by halves, named in one line, or set apart."""

import re
import sys
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from unskew.jobs.operators.base import EVENT_TIME, KEY_HASH, Operator

if TYPE_CHECKING:
    import pyarrow as pa

_TEXT_LENGTH = 80
ROW_MARK = re.compile(r"\[row (-?\d+) (-?\d+)\] ")
"""In an OperatorError's message: the row's hash and event time, by which its record is found."""


class OperatorError(Exception):
    """An operator raised; the message has file, line and row."""


@dataclass(frozen=True)
class Part:
    """Some of the rows, with their partials; or one row, on which the operator raised."""

    rows: "pa.Table"
    partials: "pa.Table | None"
    error: Exception | None = None


def make_partials(operator: Operator, rows: "pa.Table") -> Iterator[Part]:
    """The rows in as few parts as the operator works on; those on which it raises by themselves.

    Partials may be made of any split of the rows, so halves give the same totals as the whole.
    """
    part = _attempt(operator, rows)
    if part.error is None or rows.num_rows <= 1:
        yield part
        return
    half = rows.num_rows // 2
    yield from make_partials(operator, rows.slice(0, half))
    yield from make_partials(operator, rows.slice(half))


def _attempt(operator: Operator, rows: "pa.Table") -> Part:
    try:
        return Part(rows, operator.partial(rows))
    except MemoryError:
        raise  # not the fault of a row
    except Exception as error:  # noqa: BLE001 - whatever a user's code raises
        return Part(rows, None, error)


def describe_failure(operator: Operator, part: Part) -> str:
    """Describe what was raised, in which file and line, and on which row."""
    error = part.error
    assert error is not None
    # The innermost frame of the user's own code, where there is one: that is what he can mend.
    frames = traceback.extract_tb(error.__traceback__)
    file = sys.modules[type(operator).__module__].__file__
    own = [frame for frame in frames if frame.filename == file]
    frame = (own or frames)[-1]
    text = " ".join(str(error).split())
    what = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return (
        f"operator {type(operator).__name__}: {what} ({frame.filename}:{frame.lineno})"
        f" {_show_row(part.rows, operator)}"
    )


def mark_row(part: Part) -> str:
    """The row's mark, as ROW_MARK finds it."""
    if not part.rows.num_rows:
        return ""
    row = part.rows.slice(0, 1)
    return f"[row {row[KEY_HASH][0].as_py()} {row[EVENT_TIME][0].value}] "


def _show_row(rows: "pa.Table", operator: Operator) -> str:
    if not rows.num_rows:
        return "without any rows"
    key, at = read_key(rows, tuple(operator.keys)), rows[EVENT_TIME][0].as_py()
    inputs = "".join(
        f", {name} {_shorten(str(rows[name][0].as_py()))}"
        for name in operator.inputs
        if name in rows.column_names
    )
    return f'on a row with key "{_shorten(key)}" at {at.isoformat()}{inputs}'


def _shorten(text: str) -> str:
    return text if len(text) <= _TEXT_LENGTH else f"{text[:_TEXT_LENGTH]}..."


def read_key(rows: "pa.Table", keys: tuple[str, ...]) -> str:
    """The key of a table's only row, of all its columns, as a text."""
    (row,) = rows.select(list(keys)).to_pylist()
    return ", ".join(str(row[name]) for name in keys)
