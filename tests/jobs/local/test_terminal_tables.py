"""Tables that fit a terminal: columns move below, and no figure is cut."""

import io

from rich.console import Console

from unskew.jobs.local.terminal_tables import fit_columns, print_fitting

HEADINGS = ("grouping", "batch s", "records/s", "why")
ROWS = [
    ("level", "1.25", "1,234,567", "ok"),
    ("a name that is much longer than forty letters are", "10.50", "9", "long " * 20),
]


def printed(width: int, **given: object) -> list[str]:
    out = io.StringIO()
    print_fitting(Console(file=out, width=width), HEADINGS, ROWS, **given)  # type: ignore[arg-type]
    return out.getvalue().splitlines()


def test_all_columns_are_side_by_side_where_there_is_room() -> None:
    assert fit_columns(HEADINGS, ROWS, 250) == [[0, 1, 2, 3]]
    (heading,) = [line for line in printed(250) if "grouping" in line]
    assert heading.split() == ["grouping", "batch", "s", "records/s", "why"]


def test_columns_move_below_and_figures_stay_whole() -> None:
    lines = printed(56, texts=("why",))
    assert max(map(len, lines)) <= 56
    assert [line.split()[1:] for line in lines if "grouping" in line] == [
        ["batch", "s"],
        ["records/s"],
        ["why"],
    ]
    for figure in ("1.25", "10.50", "1,234,567"):
        assert any(f" {figure} " in f"{line} " for line in lines)
    # 20 in the text, and one in the name beside each of three columns.
    assert "".join("".join(lines).split()).count("long") == 23


def test_what_looks_like_markup_is_shown_as_it_is() -> None:
    out = io.StringIO()
    print_fitting(Console(file=out, width=80), ("key", "n"), [("[red]x[/red]", "1")])
    assert "[red]x[/red]" in out.getvalue()
