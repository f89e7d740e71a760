"""Tables on a terminal of any width: a figure that is cut in two cannot be read."""

import sys
from collections.abc import Collection, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 250
_FIRST_WIDTH, _TEXT_WIDTH = 40, 40
_PADDING = 2


def make_console() -> Console:
    """Make standard output as wide as its terminal, or wide where there is none."""
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def print_fitting(
    console: Console,
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    texts: Collection[str] = (),
    bold: Collection[int] = (),
) -> None:
    """Print a table; columns for which there is no room follow below, beside the first one again.

    The first column and those that are `texts` are folded where they are long; `bold` are rows.
    """
    for columns in fit_columns(headings, rows, console.width, texts):
        table = Table(box=box.SIMPLE_HEAD)
        for column in columns:
            heading = headings[column]
            if column and heading not in texts:
                table.add_column(heading, justify="right", no_wrap=True)
            else:
                widest = _TEXT_WIDTH if column else _FIRST_WIDTH
                table.add_column(heading, overflow="fold", max_width=widest)
        for number, row in enumerate(rows):
            style = "bold" if number in bold else None
            table.add_row(*(Text(row[column]) for column in columns), style=style)
        console.print(table)


def fit_columns(
    headings: Sequence[str], rows: Sequence[Sequence[str]], width: int, texts: Collection[str] = ()
) -> list[list[int]]:
    """The columns of one table below the other, each with the first column and within `width`."""
    widths = [max(len(row[at]) for row in [headings, *rows]) for at in range(len(headings))]
    first = min(widths[0], _FIRST_WIDTH) + _PADDING
    tables, used = [[0]], first
    for column in range(1, len(headings)):
        whole = widths[column]
        wanted = (min(whole, _TEXT_WIDTH) if headings[column] in texts else whole) + _PADDING
        # A space stands beside each column.
        if used + wanted + len(tables[-1]) + 1 > width and len(tables[-1]) > 1:
            tables.append([0])
            used = first
        tables[-1].append(column)
        used += wanted
    return tables
