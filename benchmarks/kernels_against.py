"""Two checkouts against each other: routing rates of every grouping, in interleaved pairs.

    python -m benchmarks.kernels_against OTHER_CHECKOUT [--pairs 7] [--grouping NAME ...]

As `benchmarks.kernels` with 100 partitions, one process a checkout and pair, the first of them in
turn. The table shows the median of the ratios within a pair. Both checkouts run with this
environment's packages; a grouping that the other one lacks is left out.
"""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.against import measure_in, ratios_of, run_pairs
from benchmarks.tables import MEETS, Row, Table, machine, show, verdict
from unskew.grouping.registry import GROUPINGS

RATIO_MIN = 0.97
# Uses only what both checkouts have under the same name.
_MEASURE = """
import json, sys
from benchmarks.kernels import GROUPINGS, WARM_BATCHES, Bench, create

bench, rates = Bench(1_000_000), {}
for name in filter(GROUPINGS.__contains__, sys.argv[1:]):
    router = create(name, partitions=100)
    feedback = bench.feedback(router)
    for _ in range(WARM_BATCHES):
        bench.rate(router, feedback)
    rates[name] = max(bench.rate(router, feedback) for _ in range(10))
print("measured: " + json.dumps(rates))
"""


def measure(names: Sequence[str], checkout: Path) -> dict[str, float]:
    """Records a second, by grouping, of one checkout."""
    return measure_in(checkout, _MEASURE, names)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the pairs and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kernels_against")
    parser.add_argument("other", type=Path, help="the checkout to compare this one with")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--grouping", action="append", choices=list(GROUPINGS))
    chosen = parser.parse_args(arguments)
    names = chosen.grouping or list(GROUPINGS)
    pairs = run_pairs(chosen.other.resolve(), chosen.pairs, partial(measure, names))
    rows: list[Row] = [
        {
            "grouping": name,
            "other M/s": median(old[name] for old, _ in pairs) / 1e6,
            "this M/s": median(new[name] for _, new in pairs) / 1e6,
            "median": median(ratios),
            "least": min(ratios),
            "most": max(ratios),
            MEETS: verdict({"rate": median(ratios) >= RATIO_MIN}),
        }
        for name, ratios in ratios_of(pairs).items()
    ]
    formats = {"grouping": "<18", "other M/s": "9.1f", "this M/s": "8.1f"}
    formats |= dict.fromkeys(("median", "least", "most"), "6.3f")
    line = (
        f"Million records a second, 100 partitions, {chosen.pairs} interleaved pairs, {machine()};"
        f" the ratio this / other within each pair, whose median must be at least {RATIO_MIN}."
    )
    show(Table("kernels against another checkout", line, formats, rows))


if __name__ == "__main__":
    main()
