"""The tables of `benchmarks.balance`, all of them, as the page benchmarks/results/balance.md.

`python -m benchmarks.balance_page` measures the runs that are not kept in results/balance.jsonl, or
whose code has changed since, and writes the page: some minutes after a change of one grouping, an
hour or two from nothing.
"""

import argparse
import contextlib
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.balance import TABLES
from benchmarks.kept_figures import KeptFigures
from benchmarks.simulated import Options
from benchmarks.tables import MEETS, UNJUDGED, YES, Row, Table, machine, show

RESULTS = Path(__file__).parent / "results"
KEPT, PAGE, NOTES = "balance.jsonl", "balance.md", "balance-notes.md"
SEEDS = 3
SEEDS_MOST = {"level-later": 2, "curve": 2}


def tables(options: Options) -> Iterator[tuple[str, Options]]:
    """Each table of the page by its name, and what is measured for it."""
    for name in TABLES:
        seeds = min(options.seeds, SEEDS_MOST.get(name, options.seeds))
        # With 10^7 records `heads` takes hours: results/balance-large.md.
        sizes = (1_000_000,) if name == "heads" and options.records is None else options.records
        yield name, replace(options, seeds=seeds, records=sizes)


def measured(name: str, options: Options) -> tuple[str, list[Row], str]:
    """A table: its title, its rows, and as text."""
    table = TABLES[name](options)
    seeds = "one seed" if options.seeds == 1 else f"{options.seeds} seeds"
    title = f"{table.title}, {seeds}"
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        rows = show(Table(title, table.line, table.formats, table.rows))
    return title, rows, text.getvalue()


def summary(title: str, rows: Sequence[Row]) -> str:
    """How many rows of a table have a line to meet, how many miss it, and which."""
    judged = [row for row in rows if row[MEETS] != UNJUDGED]
    missed = Counter(_name_miss(row) for row in judged if row[MEETS] != YES)
    which = "; ".join(f"{miss} ({count})" for miss, count in missed.items()) or "-"
    return f"| {title} | {len(judged)} | {sum(missed.values())} | {which} |"


def _name_miss(row: Row) -> str:
    named = row.get("grouping") or f"{row['sources']} sources"
    return f"{named}: {str(row[MEETS]).removeprefix('no: ')}"


def page(options: Options, notes: str) -> str:
    """Measure what is missing and write the text of the page."""
    made = [measured(name, each) for name, each in tables(options)]
    lines = "\n".join(summary(title, rows) for title, rows, _ in made)
    texts = "\n".join(text for _, _, text in made)
    return (
        "# Balance and state\n\n"
        f"Written by `python -m benchmarks.balance_page` on {machine()}; the same seeds give the"
        " same figures anywhere.\n\n"
        "| table | rows with a line | miss it | which |\n|---|---|---|---|\n"
        f"{lines}\n\n{notes.strip()}\n\n{texts.strip()}\n"
    )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what is missing and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.balance_page")
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--records", type=int, nargs="+", help="in place of the tables' own sizes")
    parser.add_argument("--again", action="store_true", help="measure all of it again")
    parser.add_argument("--out", type=Path, default=RESULTS, metavar="FOLDER")
    chosen = parser.parse_args(arguments)
    kept = KeptFigures(chosen.out / KEPT, again=chosen.again)
    sizes = None if chosen.records is None else tuple(chosen.records)
    notes = (RESULTS / NOTES).read_text(encoding="utf-8")
    text = page(Options(chosen.seeds, sizes, kept=kept), notes)
    kept.tidy()
    (chosen.out / PAGE).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
