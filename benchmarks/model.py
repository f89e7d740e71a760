"""The cost model against what was measured: `python -m benchmarks.model`, `make bench-model`.

The measured batches are those of the tables `where` and `skew` of the engine's benchmark, their
loads those of the same records. The constants are fitted to the calibration cells alone: those of
`where` whose work is 1 us a record, two with large partials, two with a million keys, and z = 0.8
of `skew`, whose batches have more records. Or they are the ones that `--constants` names, from
`unskew calibrate`. Every other cell of the same machine is predicted, and every error counts;
constants of one machine say nothing of another.
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
from kafka.partitioner.default import murmur2

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
CALIBRATION_Z = 0.8
CLOSE = 1.05
_HEAD = """# The cost model, predicted and measured

Written by `make bench-model` from the tables `where` and `skew` of [engine.md](engine.md); `skew`
has every grouping. The model: `grouping/simulation/batch_cost.py`.
"""
_KAFKA_PARTITIONS = 4
_MANY_KEYS = 1_000_000
_BATCHES = 2
_TRIALS = 400


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
        if self.table == "skew":
            # Of batches of one size, what a batch costs and what a record costs are the same thing.
            return self.cell.exponent == CALIBRATION_Z
        cell = self.cell
        large = bool(cell.partial_bytes) or (cell.keys == _MANY_KEYS and not cell.key_ms)
        return cell.record_us == CALIBRATION_US or (large and cell.exponent == CALIBRATION_Z)


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
    ranks = np.split(zipf(records * _BATCHES, cell.exponent, cell.keys), _BATCHES)
    if cell.keyed:
        lies_in = np.array([find_kafka_partition(f"w{number}".encode()) for number in numbers])
        ranks = [batch[np.argsort(lies_in[batch], kind="stable")] for batch in ranks]
    return [KeyBatch.from_hashes(hashes[batch]) for batch in ranks]


def find_kafka_partition(key: bytes, partitions: int = _KAFKA_PARTITIONS) -> int:
    """The partition of a topic to which Kafka's own partitioner (murmur2) sends a key."""
    return int(murmur2(key) & 0x7FFFFFFF) % partitions


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


def fit_to(cases: Iterable[Case]) -> Constants:
    """The constants of the calibration cells among these."""
    return fit_constants(list(_measured(case for case in cases if case.calibrates)))


def find_errors(cases: Iterable[Case], constants: Constants) -> list[Error]:
    """Every way of every case, predicted."""
    return [
        Error(case, summarise(way, _spread(case, way), case.work, Machine(case.slots, constants)))
        for case in cases
        for way in case.seconds
    ]


def list_choices(errors: Iterable[Error]) -> list[tuple[Error, Error]]:
    """The way predicted to be the best in each cell, and the one that was."""
    by_case: dict[int, list[Error]] = defaultdict(list)
    for error in errors:
        by_case[id(error.case)].append(error)
    return [
        (
            min(each, key=lambda error: error.prediction.seconds),
            min(each, key=lambda error: error.measured),
        )
        for each in by_case.values()
    ]


def count_good_choices(errors: Sequence[Error]) -> tuple[int, int]:
    """Cells where the way predicted to be the best is within 5 % of the best; and all cells."""
    choices = list_choices(errors)
    good = sum(taken.measured <= CLOSE * best.measured for taken, best in choices)
    return good, len(choices)


@dataclass(frozen=True)
class Noise:
    """How much warm batches of one run differ, and what that does to choices."""

    deviation: float
    """Of a batch's seconds, as a share of them."""
    batches: int
    """So many batches are in a measured median."""
    source: str

    def share_of_perfect(self, errors: Sequence[Error]) -> tuple[float, float]:
        """The share of cells in which a model without any error takes a way within 5 %.

        The mean, and what it is above in 19 of 20 trials: the predictions are taken for the truth,
        and measured as often as the cells were.
        """
        by_case: dict[int, list[float]] = defaultdict(list)
        for error in errors:
            by_case[id(error.case)].append(error.prediction.seconds)
        rng, shares = np.random.default_rng(1), []
        for _ in range(_TRIALS):
            good = 0
            for seconds in by_case.values():
                chance = rng.standard_normal(len(seconds)) * self.deviation / self.batches**0.5
                measured = np.array(seconds) * np.exp(chance)
                good += bool(measured[int(np.argmin(seconds))] <= CLOSE * measured.min())
            shares.append(good / len(by_case))
        return float(np.mean(shares)), float(np.percentile(shares, 5))


def find_noise(tables: Mapping[str, Any]) -> Noise | None:
    """The noise of batches: of `where` where its rows have every batch, otherwise of `skew`."""
    measured = [row.get(f"{way} batches", ()) for row in rows_of(tables, "where") for way in WAYS]
    runs = [run for run in measured if len(run) > 1]
    source = "`where`"
    if not runs:
        # The median of two is their mean, and their p99 is nearly the longer.
        rows = [row for row in rows_of(tables, "skew") if row["batches"] == 2]
        apart = [(row["p99 s"] - row["p50 s"]) / 0.49 for row in rows]
        runs = [
            [row["p50 s"] - each / 2, row["p50 s"] + each / 2]
            for row, each in zip(rows, apart, strict=True)
        ]
        source = "`skew`, since rows of `where` do not have each batch yet"
    if not runs:
        return None
    variances = [np.var(run, ddof=1) / np.mean(run) ** 2 for run in runs]
    batches = int(np.median([len(run) for run in runs]))
    return Noise(float(np.mean(variances)) ** 0.5, batches, source)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write `model.md`, and print it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.model", description=__doc__)
    parser.add_argument("--constants", type=Path, help="a file of `unskew calibrate`")
    parser.add_argument("--out", type=Path, default=RESULTS, help="folder for model.md")
    chosen = parser.parse_args(arguments)
    tables = json.loads((RESULTS / "engine.json").read_text())["tables"]
    cases = read_cases(tables)
    calibration = [case for case in cases if case.calibrates]
    if chosen.constants:
        constants, source = read_constants(chosen.constants), "a file of `unskew calibrate`"
    elif calibration:
        constants, source = fit_to(cases), "the calibration cells"
    else:
        constants, source = Constants(), "the defaults: no calibration cell is measured yet"
    judged = list_judged(cases)
    others = [case for case in cases if not case.calibrates and case not in judged]
    errors = find_errors(judged, constants)
    text = describe(errors, constants, source, len(calibration), others, find_noise(tables))
    if constants != Constants():
        text += describe_defaults(find_errors(judged, Constants()))
    (chosen.out / "model.md").write_text(text)
    print(text)


def list_judged(cases: Sequence[Case]) -> list[Case]:
    """The cells that the constants were not fitted to, of the machine of those that they were."""
    machine = find_machine([case for case in cases if case.calibrates])
    judged = [case for case in cases if not case.calibrates]
    return [case for case in judged if machine is None or case.machine == machine]


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
    noise: Noise | None = None,
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
    lines += ["", *_describe_choices(errors, noise), "", *_list_errors(errors)]
    return "\n".join(lines) + "\n"


def describe_defaults(errors: Sequence[Error]) -> str:
    """What is off by the constants that a machine has before `unskew calibrate`."""
    of_where = [error for error in errors if error.case.table == "where"]
    off = np.abs([error.relative for error in of_where])
    good, cells = count_good_choices(of_where)
    return (
        "\nBy the constants that `compare` and `auto` have before `unskew calibrate`, cells of"
        f" `where` are off by {100 * np.median(off):.1f} % (median) and"
        f" {100 * np.percentile(off, 90):.1f} % (p90), and the best way is taken in {good} of"
        f" {cells}.\n"
    )


def _row(table: str, way: str, errors: Sequence[Error]) -> str:
    off = np.abs([error.relative for error in errors])
    bias = float(np.mean([error.relative for error in errors]))
    figures = (np.median(off), np.percentile(off, 90), off.max())
    shown = " | ".join(f"{100 * figure:.1f} %" for figure in figures)
    return f"| {table} | {way} | {len(errors)} | {shown} | {100 * bias:+.1f} % |"


def _describe_choices(errors: Sequence[Error], noise: Noise | None) -> Iterator[str]:
    for table in ("where", "skew"):
        of_table = [error for error in errors if error.case.table == table]
        if of_table:
            good, cells = count_good_choices(of_table)
            yield (
                f"`{table}`: in {good} of {cells} cells the way that is predicted to be the best is"
                " within 5 % of the best that was measured."
            )
            for taken, best in list_choices(of_table):
                if taken.measured > CLOSE * best.measured:
                    yield (
                        f"\n- `{taken.case.cell.name}`: {taken.prediction.way}, predicted"
                        f" {taken.prediction.seconds:.2f} s, took {taken.measured:.2f} s;"
                        f" {best.prediction.way}, predicted {best.prediction.seconds:.2f} s, took"
                        f" {best.measured:.2f} s."
                    )
            if noise is not None:
                yield ""
                mean, low = noise.share_of_perfect(of_table)
                yield (
                    f"A batch differs from others of its run by {100 * noise.deviation:.1f} %"
                    f" (standard deviation, of {noise.source}): by that alone a model without any"
                    f" error would be so in {mean * cells:.0f} of {cells}, and in {low * cells:.0f}"
                    " or fewer one time in twenty."
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
