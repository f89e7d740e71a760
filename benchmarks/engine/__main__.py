"""What the engine costs and what it brings: real Kafka, real Spark, every row published.

    python -m benchmarks.engine [overhead|tiny|skew|source|instead|time|where ...] [--quick]

All tables by default, in an hour and a half on two quiet cores, most of it for `where`. Each run
replaces its tables in `benchmarks/results/engine.json`, from which `engine.md` and `engine.png`
follow; `where` with `--resume` keeps the rows it has and measures what is missing.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.engine import instead, overhead, skew, source, where
from benchmarks.engine.measure import Bench, bench
from benchmarks.engine.report import ORDER, Results, description
from benchmarks.tables import Row, Table, show

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
    "skew": Part(skew.skew, skew.Size(), skew.QUICK),
    "source": Part(source.source, source.Size(), source.QUICK),
    "instead": Part(instead.instead, *_INSTEAD),
    "time": Part(instead.times, *_INSTEAD),
    "where": Part(where.where, where.Size(), where.QUICK, where.left_of),
}
CELLS = [cell.name for cell in where.make_grid()]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the tables that were named, print and keep them."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine", description=__doc__)
    parser.add_argument("tables", nargs="*", metavar="TABLE", help=f"of {', '.join(ORDER)}")
    parser.add_argument("--quick", action="store_true", help="tiny: shows that it runs, no more")
    parser.add_argument("--resume", action="store_true", help="keep the rows that are there")
    parser.add_argument(
        "--cell", action="append", default=[], choices=CELLS, metavar="CELL", help="of `where`"
    )
    parser.add_argument("--out", type=Path, default=None, help="folder for results")
    chosen = parser.parse_args(arguments)
    wrong = sorted(set(chosen.tables) - set(ORDER))
    if wrong:
        parser.error(f"tables: of {', '.join(ORDER)} (got {', '.join(wrong)})")
    if chosen.quick and chosen.out is None:
        parser.error("--quick: name a folder with --out, since it measures nothing worth keeping")
    results = Results(chosen.out or RESULTS)
    print(f"{description()}\n", flush=True)
    for name in chosen.tables or ORDER:
        part = PARTS[name]
        size = part.quick if chosen.quick else part.full
        kept = results.rows(name) if chosen.resume and part.left else []
        if part.left:
            size = part.left(size, kept, chosen.cell)
        with bench() as workspace:
            show(results.measured(part.table(workspace, size), kept))
        results.write()


if __name__ == "__main__":
    main()
