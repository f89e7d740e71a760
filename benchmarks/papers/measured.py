"""Runs of the simulator, and the file that keeps what they gave.

A run goes through the very options of `unskew simulate`, so that its command repeats it. What is
kept is one line of JSON a run, under its command, with the digest of the sources it follows from:
a line whose digest is another's is measured again, all others never.
"""

import argparse
import json
import math
import shlex
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.papers.definitions import Figures, Run
from benchmarks.papers.sources import sources_of
from benchmarks.tables import machine
from unskew.grouping.simulation.meters.streams import simulate_streams
from unskew.jobs.commands.simulation.options import Experiment, add_options, read_options

_TIMED = ("routing_seconds", "routing_records_per_second")
"""What the machine decides, not the seed."""
_NESTED = {"batches", "signals", "over_time"}


@dataclass(frozen=True)
class Kept:
    """What a run gave, on what machine and when."""

    sources: str
    figures: Figures
    seconds: float
    machine: str
    measured: str
    series: Mapping[str, list[float]] = field(default_factory=dict)
    """The lists that its run keeps."""

    @property
    def by_name(self) -> Figures:
        """All figures, those of lists with their numbers behind."""
        items = {
            f"{name}.{i}": value
            for name, values in self.series.items()
            for i, value in enumerate(values)
        }
        return {**self.figures, **items}


def read_run(run: Run) -> Experiment:
    """The run as `unskew simulate` reads its command."""
    parser = argparse.ArgumentParser()
    add_options(parser)
    return read_options(parser.parse_args(shlex.split(run.setting)), [run.grouping])


def measure(run: Run, sources: str | None = None) -> Kept:
    """Do the run; `sources` is the digest of those that this process has loaded."""
    sources = sources or sources_of(run.name, run.trace)
    experiment = read_run(run)
    began = time.perf_counter()
    report = simulate_streams(
        experiment.trace,
        experiment.trace_spec,
        experiment.groupings[0],
        experiment.scenario,
        time.perf_counter,
    )
    figures = report.to_dict()
    return Kept(
        sources,
        dict(_flatten(figures)),
        round(time.perf_counter() - began, 2),
        machine(),
        datetime.now(UTC).strftime("%Y-%m-%d %H:%M"),
        {name: _list_of(figures, name) for name in run.series},
    )


def _list_of(figures: Any, name: str) -> list[float]:
    for part in name.split("."):
        figures = figures[part]
    return [float(f"{value:.7g}") for value in figures]


def _flatten(figures: dict[str, Any], before: str = "") -> Iterator[tuple[str, float]]:
    for name, value in figures.items():
        if isinstance(value, dict) and name in _NESTED:
            yield from _flatten(value, f"{name}.")
            yield from _highest(value.get("records", []), value.get("signals", {}))
        elif isinstance(value, dict) and name == "streams":
            yield "streams", value["count"]
            yield from _flatten(value["least"], "least.")
            yield from _flatten(value["most"], "most.")
        elif isinstance(value, list) and before == "over_time." and name.startswith("window_"):
            yield f"{before}{name}.max", float(f"{max(value):.7g}")
            yield f"{before}{name}.mean", float(f"{sum(value) / len(value):.7g}")
        elif name == "head_loads":
            yield from ((f"{name}.{i}", value[i]) for i in range(len(value)))
            yield from (
                (f"tail_loads.{i}", figures["loads"][i] - value[i]) for i in range(len(value))
            )
        elif isinstance(value, int | float) and name not in _TIMED:
            yield before + name, float(f"{value:.7g}")


def _highest(records: list[int], signals: Any) -> Iterator[tuple[str, float]]:
    """The record at which each signal first has its largest value."""
    for name, values in signals.items():
        if isinstance(values, list):
            yield f"over_time.signals.{name}.highest_at", records[values.index(max(values))]


def moved(before: Kept, after: Kept) -> Iterator[str]:
    """The figures that another measurement of a run changed."""
    for name, value in before.by_name.items():
        now = after.by_name.get(name, value)
        if not math.isclose(now, value, rel_tol=1e-6):
            yield f"{name} {value:g} -> {now:g}"


class Store:
    """The kept runs of a file, by command."""

    def __init__(self, path: Path) -> None:
        self._path = path
        content = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        self._kept = {command: Kept(**fields) for command, fields in content.items()}

    def get(self, run: Run) -> Kept | None:
        """What is kept of a run, also where the sources have changed since."""
        return self._kept.get(run.command)

    def is_fresh(self, run: Run) -> bool:
        """Is it kept, of the sources as they are?"""
        kept = self.get(run)
        if kept is None or kept.sources != sources_of(run.name, run.trace):
            return False
        return set(run.series) <= set(kept.series)

    def keep(self, run: Run, kept: Kept) -> None:
        """Keep it, and write the file whole, so that what follows may be cut off at any time."""
        self._kept[run.command] = kept
        self._write()

    def _write(self) -> None:
        beside = self._path.with_suffix(".part")
        beside.write_text(self._text(), encoding="utf-8")
        beside.replace(self._path)

    def forget_others(self, runs: Iterable[Run]) -> None:
        """Drop what belongs to none of these runs."""
        wanted = {run.command for run in runs}
        kept = {command: kept for command, kept in self._kept.items() if command in wanted}
        if len(kept) < len(self._kept):
            self._kept = kept
            self._write()

    def _text(self) -> str:
        lines = [
            f"{json.dumps(command)}: {json.dumps(_fields(self._kept[command]))}"
            for command in sorted(self._kept)
        ]
        return "{\n" + ",\n".join(lines) + "\n}\n"


def _fields(kept: Kept) -> dict[str, object]:
    return {name: value for name, value in vars(kept).items() if value != {}}
