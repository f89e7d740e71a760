"""Tables as they are printed: Markdown, row by row, each row with whether it meets its line.

A row that misses stays where it is; what it misses is named in the column `meets`, and the misses
are counted under the table.
"""

import os
import platform
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from importlib.metadata import version
from pathlib import Path
from typing import Protocol, TypeVar

Row = dict[str, object]
"""A column's value by its name; None where there is none."""

MEETS = "meets"
YES = "yes"
UNJUDGED = "-"


@dataclass(frozen=True)
class Table:
    """A table that is still to be measured."""

    title: str
    line: str
    """What the rows must show."""
    formats: Mapping[str, str]
    """By the name of a column: the format of its values, with a width."""
    rows: Iterable[Row]
    """Each measured when it is asked for."""


class Named(Protocol):
    """What a row of a table measures: a cell, by its name."""

    @property
    def name(self) -> str:
        """The row's `cell`."""


CellT = TypeVar("CellT", bound=Named)


def cells_left(
    cells: Iterable[CellT], rows: Sequence[Row], patterns: Collection[str]
) -> tuple[CellT, ...]:
    """The cells that no row has yet; with patterns, those of them that match one."""
    measured = {row["cell"] for row in rows}
    return tuple(
        cell
        for cell in cells
        if cell.name not in measured and (not patterns or is_named(cell.name, patterns))
    )


def is_named(cell: str, patterns: Collection[str]) -> bool:
    """Does one of the patterns match a cell?"""
    return any(fnmatchcase(cell, pattern) for pattern in patterns)


def verdict(checks: Mapping[str, bool | None]) -> str:
    """`yes`, or `no` with the names of what is missed, or `-` where there is nothing to meet.

    >>> verdict({"pairs": True, "time": False}), verdict({"pairs": True, "time": None})
    ('no: time', 'yes')
    """
    missed = [name for name, met in checks.items() if met is False]
    if missed:
        return f"no: {', '.join(missed)}"
    return YES if True in checks.values() else UNJUDGED


def show(table: Table) -> list[Row]:
    """Print a table while it is measured; its rows."""
    formats = {**table.formats, MEETS: "<8"}
    print(f"## {table.title}\n\n{table.line}\n")
    print(_joined(f"{name:{_side(form)}}" for name, form in formats.items()))
    print(_joined("-" * (_width(form) - 1) + _rule_end(form) for form in formats.values()))
    rows = []
    for row in table.rows:
        rows.append(row)
        print(_joined(_cell(row.get(name), form) for name, form in formats.items()), flush=True)
    judged = [str(row[MEETS]) for row in rows if row[MEETS] != UNJUDGED]
    missed = sum(verdict != YES for verdict in judged)
    print(f"\n{len(judged)} of {len(rows)} rows have a line to meet; {missed} miss it.\n")
    return rows


def machine() -> str:
    """What the figures were measured on."""
    versions = ", ".join(f"{name} {version(name)}" for name in ("numba", "numpy"))
    return f"{processor()}, Python {platform.python_version()}, {versions}"


def processor() -> str:
    """The machine without its programs: figures of two of them do not compare."""
    return f"{os.cpu_count() or 1} cores, {_processor()}"


def _processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.machine()
    match = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return match[1] if match else platform.machine()


def _cell(value: object, form: str) -> str:
    return f"{'-':{_side(form)}}" if value is None else f"{value:{form}}"


def _side(form: str) -> str:
    return f"{'<' if form.startswith('<') else '>'}{_width(form)}"


def _width(form: str) -> int:
    return int(re.findall(r"\d+", form)[0])


def _rule_end(form: str) -> str:
    return "-" if form.startswith("<") else ":"


def _joined(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
