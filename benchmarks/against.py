"""Two checkouts against each other: batch times of `overhead` and `tiny`, in interleaved pairs.

    python -m benchmarks.against OTHER_CHECKOUT [--pairs 7] [--groupings level,partial_key]

Each pair runs both checkouts one after the other, the first of them in turn, so that what slows the
machine meets both. What counts is the ratio within a pair; the table shows the median of the ratios
and their spread. Both checkouts run with this environment's packages.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from benchmarks.tables import Row, Table, show

ROOT = Path(__file__).resolve().parent.parent
RATIO_MAX = 1.03
Figures = dict[str, float]
Pair = tuple[Figures, Figures]
# Uses only what both checkouts have: one broker and one session for each table. Older ones have
# the engine's benchmark in modules beside this one.
_MEASURE = """
import json, sys
from statistics import median
try:
    from benchmarks.engine.measure import bench, zipf
    from benchmarks.engine.overhead import EXPONENT, _runs
except ImportError:
    from benchmarks.engine_measure import bench, zipf
    from benchmarks.engine_overhead import EXPONENT, _runs

batches, tiny_batches, records = 3, 12, 500_000
taken = {}
with bench() as made:
    made.fill("overhead", zipf(records * batches, EXPONENT))
    made.fill("tiny", zipf(16 * tiny_batches, EXPONENT), partitions=1)
    for table, size in (("overhead", records), ("tiny", 16)):
        for name, runs in _runs(made, table, size, 1, tuple(sys.argv[1:])).items():
            taken[f"{table} {name}"] = median(second for run in runs for second in run.seconds)
print("measured: " + json.dumps(taken))
"""


def measure_in(checkout: Path, program: str, arguments: Sequence[str]) -> dict[str, float]:
    """What a program measures in one checkout, in a process of its own; it prints `measured: `."""
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    for line in done.stdout.splitlines():
        if line.startswith("measured: "):
            figures: dict[str, float] = json.loads(line.removeprefix("measured: "))
            return figures
    raise SystemExit(f"{checkout}: measured nothing (exit code {done.returncode}):\n{done.stderr}")


def measure(checkout: Path, groupings: Sequence[str]) -> dict[str, float]:
    """Median seconds of a batch, by table and grouping, of one checkout."""
    return measure_in(checkout, _MEASURE, groupings)


def run_pairs(other: Path, count: int, measure: Callable[[Path], Figures]) -> list[Pair]:
    """Measure pairs (other, this), each side first in turn."""
    pairs: list[Pair] = []
    for number in range(count):
        order = (other, ROOT) if number % 2 == 0 else (ROOT, other)
        seconds = {checkout: measure(checkout) for checkout in order}
        pairs.append((seconds[other], seconds[ROOT]))
        print(f"pair {number + 1} of {count}: {ratios_of(pairs[-1:])}", file=sys.stderr, flush=True)
    return pairs


def ratios_of(pairs: Sequence[Pair]) -> dict[str, list[float]]:
    """The ratios this / other, by what was measured on both sides."""
    names = [name for name in pairs[0][0] if name in pairs[0][1]]
    return {name: [round(new[name] / old[name], 3) for old, new in pairs] for name in names}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the pairs and print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("other", type=Path, help="the checkout to compare this one with")
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--groupings", default="level", help="by default level")
    chosen = parser.parse_args(arguments)
    measured = partial(measure, groupings=chosen.groupings.split(","))
    pairs = run_pairs(chosen.other.resolve(), chosen.pairs, measured)
    rows: list[Row] = [
        {
            "batch of": name,
            "other s": median(old[name] for old, _ in pairs),
            "this s": median(new[name] for _, new in pairs),
            "median": median(ratios),
            "least": min(ratios),
            "most": max(ratios),
            "meets": "yes" if median(ratios) <= RATIO_MAX else "no: time",
        }
        for name, ratios in ratios_of(pairs).items()
    ]
    formats = {
        "batch of": "<22",
        "other s": "8.3f",
        "this s": "8.3f",
        "median": "7.3f",
        "least": "7.3f",
        "most": "7.3f",
    }
    line = (
        f"Seconds of a warm batch in {chosen.pairs} interleaved pairs, and the ratio this / other"
        f" within each pair; its median must be at most {RATIO_MAX}."
    )
    show(Table("against", line, formats, rows))


if __name__ == "__main__":
    main()
