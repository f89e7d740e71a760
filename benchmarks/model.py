"""The cost model against what was measured: `python -m benchmarks.model`, `make bench-model`.

The measured batches are those of the tables `where` and `skew` of the engine's benchmark, their
loads those of the same records. The constants are fitted to the calibration cells alone, which are
those of `where` whose work is 1 us a record and one with large partials; or they are the ones that
`--constants` names, from `unskew calibrate`. Every other cell of the same machine is predicted, and
every error counts; constants of one machine say nothing of another.
"""

import argparse
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.engine.measure import zipf
from benchmarks.engine.report import MACHINE, rows_of
from benchmarks.engine.skew import COST_US, SLOTS
from benchmarks.engine.where import Cell, make_grid
from unskew.grouping.registry import GROUPINGS
from unskew.grouping.simulation.batch_cost import Constants, Machine, Prediction, summarise
from unskew.grouping.simulation.fit_constants import Measured, fit_constants
from unskew.grouping.simulation.loads import KeyBatch, Loads, Work, spread
from unskew.grouping.simulation.streams.key_files import hash_lines
from unskew.jobs.local.machine_constants import read_constants

RESULTS = Path(__file__).resolve().parent / "results"
WAYS = ("local", "level", "none")
CORES = 2
"""Cores of the machine that the tables are from; the predictions have as many slots."""
CALIBRATION_US = 1.0
CLOSE = 1.05
_HEAD = """# The cost model, predicted and measured

Written by `make bench-model` from the tables `where` and `skew` of [engine.md](engine.md); `skew`
has every grouping. The model: `grouping/simulation/batch_cost.py`.
"""
_KAFKA_PARTITIONS = 4
_BATCHES = 2


@dataclass(frozen=True)
class Case:
    """A measured cell: its operator, its records, and seconds a batch of each way."""

    table: str
    cell: Cell
    records: int
    seconds: Mapping[str, float]
    machine: str = ""

    @property
    def work(self) -> Work:
        """The operator's costs."""
        cell = self.cell
        return Work(cell.record_us * 1e-6, cell.key_ms * 1e-3, cell.partial_bytes)

    @property
    def slots(self) -> int:
        """How many partitions are worked on at once."""
        return CORES if self.cell.spend == "burn" else SLOTS

    @property
    def calibrates(self) -> bool:
        """Is it one that the constants are fitted to?"""
        large = bool(self.cell.partial_bytes) and self.cell.exponent == 0.8
        return self.table == "where" and (self.cell.record_us == CALIBRATION_US or large)


@dataclass(frozen=True)
class Error:
    """A prediction beside what was measured."""

    case: Case
    prediction: Prediction

    @property
    def measured(self) -> float:
        """Seconds a batch."""
        return self.case.seconds[self.prediction.way]

    @property
    def relative(self) -> float:
        """How far the prediction is off, as a share of what was measured."""
        return self.prediction.seconds / self.measured - 1


def read_cases(tables: Mapping[str, Any]) -> list[Case]:
    """The cells of the two tables."""
    grid = {cell.name: cell for cell in make_grid()}
    cases = [
        Case("where", grid[row["cell"]], row["records"], _read_seconds(row), row[MACHINE])
        for row in rows_of(tables, "where")
    ]
    by_skew: dict[tuple[float, str], dict[str, float]] = defaultdict(dict)
    for row in rows_of(tables, "skew"):
        if row["grouping"] in ("none", *GROUPINGS):
            by_skew[row["z"], row[MACHINE]][row["grouping"]] = row["p50 s"]
    skewed = [
        Case("skew", Cell(z, COST_US), 512_000, ways, machine)
        for (z, machine), ways in by_skew.items()
    ]
    return cases + skewed


def _read_seconds(row: Mapping[str, Any]) -> dict[str, float]:
    return {way: row[f"{way} s"] for way in WAYS}


@lru_cache(maxsize=8)
def make_batches(cell: Cell, records: int) -> list[KeyBatch]:
    """The keys of some of its batches, as they are read."""
    numbers = range(cell.keys)
    hashes = hash_lines("".join(f"w{number}\n" for number in numbers).encode())
    keys = hashes[zipf(records * _BATCHES, cell.exponent, cell.keys)]
    batches = []
    for batch in np.split(keys, _BATCHES):
        order = np.argsort(batch % _KAFKA_PARTITIONS, kind="stable") if cell.keyed else slice(None)
        batches.append(KeyBatch.from_hashes(np.ascontiguousarray(batch[order])))
    return batches


def _spread(case: Case, way: str) -> list[Loads]:
    # Of cells that differ in costs alone the batches are the same.
    key = Cell(case.cell.exponent, 0, keys=case.cell.keys, keyed=case.cell.keyed)
    batches = make_batches(key, case.records)
    # The first batch only taught the groupings that learn.
    return list(spread(way, batches, SLOTS, SLOTS, case.work))[1:]


def _measured(cases: Iterable[Case]) -> Iterator[Measured]:
    for case in cases:
        for way, seconds in case.seconds.items():
            for loads in _spread(case, way):
                yield Measured(way, loads, case.work, case.slots, seconds)


def find_errors(cases: Iterable[Case], constants: Constants) -> list[Error]:
    """Every way of every case, predicted."""
    return [
        Error(case, summarise(way, _spread(case, way), case.work, Machine(case.slots, constants)))
        for case in cases
        for way in case.seconds
    ]


def count_good_choices(errors: Sequence[Error]) -> tuple[int, int]:
    """Cells where the way predicted to be the best is within 5 % of the best; and all cells."""
    by_case: dict[int, list[Error]] = defaultdict(list)
    for error in errors:
        by_case[id(error.case)].append(error)
    good = 0
    for each in by_case.values():
        chosen = min(each, key=lambda error: error.prediction.seconds)
        good += chosen.measured <= CLOSE * min(error.measured for error in each)
    return good, len(by_case)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write `model.md`, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("--constants", type=Path, help="a file of `unskew calibrate`")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for model.md")
    chosen = parser.parse_args(arguments)
    cases = read_cases(json.loads((RESULTS / "engine.json").read_text())["tables"])
    calibration = [case for case in cases if case.calibrates]
    machine = find_machine(calibration)
    if chosen.constants:
        constants, source = read_constants(chosen.constants), "a file of `unskew calibrate`"
    elif calibration:
        constants, source = fit_constants(list(_measured(calibration))), "the calibration cells"
    else:
        constants, source = Constants(), "the defaults: no calibration cell is measured yet"
    others = [case for case in cases if machine and case.machine != machine]
    judged = [case for case in cases if not case.calibrates and case not in others]
    errors = find_errors(judged, constants)
    text = describe(errors, constants, source, len(calibration), others)
    (chosen.out / "model.md").write_text(text)
    print(text)


def find_machine(calibration: Sequence[Case]) -> str | None:
    """The one machine of these cells; constants of two at once would be of neither."""
    machines = sorted({case.machine for case in calibration})
    if len(machines) > 1:
        raise SystemExit(
            f"the calibration cells are of several machines ({'; '.join(machines)}): measure those"
            " of one again with python -m benchmarks.engine where --cells NAME... --again"
        )
    return machines[0] if machines else None


def _list_others(cases: Sequence[Case]) -> str:
    """How many cells of which other machine are not judged."""
    counted = Counter((case.machine, case.table) for case in cases)
    listed = [f"{count} of `{table}` on {machine}" for (machine, table), count in counted.items()]
    return f"; those of another machine, {', '.join(listed)}" if listed else ""


def describe(
    errors: Sequence[Error],
    constants: Constants,
    source: str,
    calibrating: int,
    others: Sequence[Case] = (),
) -> str:
    """Write the page's text."""
    values = ", ".join(f"{name} {value:.3g}" for name, value in asdict(constants).items())
    lines = [
        _HEAD,
        f"Not judged: {calibrating} cells for calibration{_list_others(others)}.",
        "",
        f"Constants, from {source}: {values}.",
        "",
        "| table | way | cells | median error | p90 | greatest | mean |",
        "|---|---|---:|---:|---:|---:|---:|",
    ]
    for table in ("where", "skew"):
        of_table = [error for error in errors if error.case.table == table]
        if not of_table:
            continue
        ways = dict.fromkeys(error.prediction.way for error in of_table)
        groups = {"all": of_table}
        groups |= {w: [e for e in of_table if e.prediction.way == w] for w in ways}
        lines += [_row(table, way, group) for way, group in groups.items()]
    lines += ["", *_describe_choices(errors), "", *_list_errors(errors)]
    return "\n".join(lines) + "\n"


def _row(table: str, way: str, errors: Sequence[Error]) -> str:
    off = np.abs([error.relative for error in errors])
    bias = float(np.mean([error.relative for error in errors]))
    figures = (np.median(off), np.percentile(off, 90), off.max())
    shown = " | ".join(f"{100 * figure:.1f} %" for figure in figures)
    return f"| {table} | {way} | {len(errors)} | {shown} | {100 * bias:+.1f} % |"


def _describe_choices(errors: Sequence[Error]) -> Iterator[str]:
    for table in ("where", "skew"):
        of_table = [error for error in errors if error.case.table == table]
        if of_table:
            good, cells = count_good_choices(of_table)
            yield (
                f"`{table}`: in {good} of {cells} cells the way that is predicted to be the best is"
                " within 5 % of the best that was measured."
            )


def _list_errors(errors: Sequence[Error]) -> Iterator[str]:
    yield "| cell | way | measured s | predicted s | error |"
    yield "|---|---|---:|---:|---:|"
    for error in errors:
        yield (
            f"| {error.case.table} {error.case.cell.name} | {error.prediction.way} |"
            f" {error.measured:.2f} | {error.prediction.seconds:.2f} |"
            f" {100 * error.relative:+.0f} % |"
        )


if __name__ == "__main__":
    main()
