"""What the engine costs and what it brings: real Kafka, real Spark, every row published.

    python -m benchmarks.engine [overhead|tiny|aggregate|skew|source|end|instead|time|where|
                                 auto|cluster|placement ...] [--quick]

All tables by default, in two hours on two quiet cores, most of it for `where`. Each run
replaces its tables in `benchmarks/results/engine.json`, from which `engine.md`, `engine.png` and
`docs/when.md` with its picture follow. Tables of cells can be measured in pieces:
`--resume` keeps the rows that are there, `--cells` measures those it names and keeps all others,
with `--again` also those that are there already, `--minutes` ends it after the cell under way;
`--pages` writes the pages again and measures nothing.
"""

import argparse
import fnmatch
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.engine import (
    aggregates,
    auto,
    cluster,
    instead,
    overhead,
    placement,
    skew,
    source,
    where,
)
from benchmarks.engine.measure import Bench, bench
from benchmarks.engine.report import ORDER, Results, description
from benchmarks.engine.when import write_readme, write_when
from benchmarks.tables import Row, Table, is_named, show

RESULTS = Path(__file__).resolve().parent.parent / "results"


@dataclass(frozen=True)
class Part:
    """A table, and how much of it is measured."""

    table: Callable[[Bench, Any], Table]
    full: Any
    quick: Any
    left: Callable[[Any, list[Row], list[str]], Any] | None = None
    """What is left to measure of a size: of the cells named, without the rows that are there."""


_OVERHEAD = (overhead.Size(), overhead.QUICK)
_INSTEAD = (instead.Size(), instead.QUICK)
PARTS = {
    "overhead": Part(overhead.overhead, *_OVERHEAD),
    "tiny": Part(overhead.tiny, *_OVERHEAD),
    "aggregate": Part(
        aggregates.aggregates, aggregates.Size(), aggregates.QUICK, aggregates.left_of
    ),
    "skew": Part(skew.skew, skew.Size(), skew.QUICK),
    "source": Part(source.source, source.Size(), source.QUICK),
    "end": Part(source.end, source.END_SIZE, source.END_QUICK),
    "instead": Part(instead.instead, *_INSTEAD),
    "time": Part(instead.times, *_INSTEAD),
    "where": Part(where.where, where.Size(), where.QUICK, where.left_of),
    "auto": Part(auto.auto, auto.Size(), auto.QUICK, auto.left_of),
    "cluster": Part(cluster.cluster, cluster.Size(), cluster.QUICK, where.left_of),
    "placement": Part(placement.placement, placement.Size(), placement.QUICK),
}
CELLS = [
    *(cell.name for cell in where.make_grid()),
    *(cell.name for cell in aggregates.CELLS),
]
DOCS = Path(__file__).resolve().parent.parent.parent / "docs"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tables that were named, print and keep them."""
    parser = make_parser()
    chosen = parser.parse_args(arguments)
    wrong = sorted(set(chosen.tables) - set(ORDER))
    if wrong:
        parser.error(f"tables: of {', '.join(ORDER)} (got {', '.join(wrong)})")
    if chosen.quick and chosen.out is None:
        parser.error("--quick: name a folder with --out, since it measures nothing worth keeping")
    for pattern in chosen.cells:
        if not fnmatch.filter(CELLS, pattern):
            parser.error(f"--cells: no cell matches {pattern}; such as {', '.join(CELLS[:3])}")
    if chosen.again and not chosen.cells:
        parser.error("--again: name the cells with --cells")
    results = Results(chosen.out or RESULTS)
    if not chosen.pages:
        print(f"{description()}\n", flush=True)
        for name in chosen.tables or ORDER:
            _measure(name, results, chosen)
    results.write()
    write_when(results.rows("where"), chosen.out or DOCS)
    if chosen.out is None:
        write_readme(results.rows("where"), DOCS.parent / "README.md")


def make_parser() -> argparse.ArgumentParser:
    """What may be asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(ORDER)}")
    parser.add_argument("--quick", action="store_true", help="tiny: shows that it runs, no more")
    parser.add_argument("--resume", action="store_true", help="keep the rows there are")
    parser.add_argument("--cells", nargs="+", default=[], metavar="NAME", help="names, or 'z1.4-*'")
    parser.add_argument("--again", action="store_true", help="measure --cells that are there, too")
    parser.add_argument("--minutes", type=float, help="begin no cell later than this")
    parser.add_argument("--out", type=Path, default=None, help="folder for results")
    parser.add_argument("--pages", action="store_true", help="write the pages again, no more")
    return parser


def _measure(name: str, results: Results, chosen: argparse.Namespace) -> None:
    part = PARTS[name]
    size = part.quick if chosen.quick else part.full
    rows = results.rows(name)
    kept = rows_kept(rows, chosen) if part.left else []
    if part.left:
        size = part.left(size, kept, chosen.cells)
    with bench() as workspace:
        table = results.measured(part.table(workspace, size), kept)
        if part.left and chosen.minutes:
            table = replace(table, rows=_until(table.rows, chosen.minutes * 60))
        show(table)
    results.write()


def rows_kept(rows: Sequence[Row], chosen: argparse.Namespace) -> list[Row]:
    """The rows of a table that stay as they are."""
    if chosen.again:
        return [row for row in rows if not is_named(str(row["cell"]), chosen.cells)]
    return list(rows) if chosen.resume or chosen.cells else []


def _until(rows: Iterable[Row], seconds: float) -> Iterator[Row]:
    """Measure the rows; none is begun after `minutes`."""
    deadline = time.monotonic() + seconds
    for row in rows:
        yield row
        if time.monotonic() > deadline:
            return


if __name__ == "__main__":
    main()
