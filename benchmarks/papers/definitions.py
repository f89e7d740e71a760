"""What the tables of `make papers` are made of: runs of the simulator, and rows that judge them.

A `Run` is one `unskew simulate` command with one grouping; its `Figures` are the command's own
JSON. A `Row` sets one figure that a paper prints beside ours, which is an expression over runs: a
`Value`, a `Ratio`, a `Saving`, or the `Extreme` of some. A `Plot` shows expressions as lines.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal, Protocol

Figures = Mapping[str, float]
"""By name, as `unskew simulate --json` has them; `batches.` and `signals.` before their own, and
with the number of an item behind the name of a list, from 0 on."""


QUICK_STREAMS = 5


@dataclass(frozen=True)
class Run:
    """One grouping on one trace."""

    grouping: str
    trace: str
    partitions: int
    sources: int = 5
    more: str = ""
    """Further words of the command."""
    quick: int | None = None
    """Records in `make papers-quick`; all of them where there is none. What changes at a record
    changes earlier then, and there are few streams."""
    series: tuple[str, ...] = ()
    """Lists of its figures that are kept as well."""

    @property
    def setting(self) -> str:
        """The words of the command behind the grouping."""
        words = f"--trace {self.trace} --partitions {self.partitions} --sources {self.sources}"
        return f"{words} {self.more}".strip()

    @property
    def command(self) -> str:
        """What repeats the run."""
        return f"unskew simulate --grouping {self.grouping} {self.setting}"

    @property
    def name(self) -> str:
        """The grouping's name without its options."""
        return self.grouping.partition(":")[0]

    def shortened(self) -> "Run":
        """The run as `make papers-quick` has it."""
        if self.quick is None:
            return self
        trace = re.sub(r"records=\d+", f"records={self.quick}", self.trace)
        share = self.quick / int(re.findall(r"records=(\d+)", self.trace)[0])
        more = re.sub(
            r"(--active |--speeds )(\d+):",
            lambda at: f"{at[1]}{int(at[2]) * share:.0f}:",
            self.more,
        )
        more = re.sub(r"--streams \d+", f"--streams {QUICK_STREAMS}", more)
        return replace(self, trace=trace, more=more, quick=None)


Results = Mapping[Run, Figures]


class Measure(Protocol):
    """A number that follows from some runs."""

    @property
    def runs(self) -> tuple[Run, ...]:
        """Runs that the number needs."""
        ...

    def of(self, results: Results) -> float:
        """Compute the number from the runs' results."""
        ...

    def shown(self, results: Results) -> tuple[Run, ...]:
        """Runs whose commands the page prints, to repeat the number."""
        ...


@dataclass(frozen=True)
class Value:
    """One figure of one run."""

    run: Run
    name: str
    factor: float = 1.0

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run that has the figure."""
        return (self.run,)

    def of(self, results: Results) -> float:
        """Read the figure, and convert it to the paper's unit."""
        return results[self.run][self.name] * self.factor

    def shown(self, results: Results) -> tuple[Run, ...]:
        """The run that has the figure."""
        return self.runs


@dataclass(frozen=True)
class Ratio:
    """The first over the second."""

    top: Measure
    bottom: Measure

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Runs that either number needs."""
        return self.top.runs + self.bottom.runs

    def of(self, results: Results) -> float:
        """Compute the quotient; of two zeros 1."""
        top, bottom = self.top.of(results), self.bottom.of(results)
        return top / bottom if bottom else (1.0 if top == 0 else float("inf"))

    def shown(self, results: Results) -> tuple[Run, ...]:
        """Runs that the page prints for either number."""
        return self.top.shown(results) + self.bottom.shown(results)


@dataclass(frozen=True)
class Saving(Ratio):
    """By how many percent the first is below the second."""

    def of(self, results: Results) -> float:
        """Compute the saving in percent: 100 if the first is 0."""
        return 100 * (1 - super().of(results))


@dataclass(frozen=True)
class Extreme:
    """The largest, least or mean of some."""

    parts: tuple[Measure, ...]
    kind: Literal["max", "min", "mean"] = "max"

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """Runs that any of the numbers needs."""
        return tuple(run for part in self.parts for run in part.runs)

    def of(self, results: Results) -> float:
        """Compute the largest, least or mean."""
        values = [part.of(results) for part in self.parts]
        if self.kind == "mean":
            return sum(values) / len(values)
        return max(values) if self.kind == "max" else min(values)

    def shown(self, results: Results) -> tuple[Run, ...]:
        """Runs of the number that is the extreme; of a mean those of all."""
        if self.kind == "mean":
            return tuple(run for part in self.parts for run in part.shown(results))
        choose = max if self.kind == "max" else min
        return choose(self.parts, key=lambda part: part.of(results)).shown(results)


@dataclass(frozen=True)
class Exact:
    """A number that is computed without a stream."""

    compute: Callable[[], float]
    runs: tuple[Run, ...] = ()

    def of(self, results: Results) -> float:
        """Compute the number."""
        return self.compute()

    def shown(self, results: Results) -> tuple[Run, ...]:
        """No runs: nothing was routed."""
        return ()


@dataclass(frozen=True)
class Derived:
    """A number that is computed from the figures of one run."""

    run: Run
    compute: Callable[[Figures], float]

    @property
    def runs(self) -> tuple[Run, ...]:
        """The run that the number is computed from."""
        return (self.run,)

    def of(self, results: Results) -> float:
        """Compute the number from the run's figures."""
        return self.compute(results[self.run])

    def shown(self, results: Results) -> tuple[Run, ...]:
        """The run that the number is computed from."""
        return self.runs


Points = tuple[tuple[float, Measure], ...]


def points_of(run: Run, name: str, first: float, step: float, count: int) -> Points:
    """A kept list as points of a plot, the first at `first`."""
    assert name in run.series
    return tuple((first + i * step, Value(run, f"{name}.{i}")) for i in range(count))


@dataclass(frozen=True)
class Printed:
    """A figure as a paper prints it."""

    text: str
    source: str
    """Where in the paper."""
    value: float | None = None
    rule: Literal["equal", "at most", "at least"] = "equal"


@dataclass(frozen=True)
class Row:
    """A paper's figure and ours."""

    figure: str
    what: str
    printed: Printed
    ours: Measure
    why: str = ""
    """What explains a difference."""
    band: tuple[float, float] | None = None
    """Where ours must lie in the shorter streams of `make papers-quick`, if it is in it."""


@dataclass(frozen=True)
class Plot:
    """Lines over one axis."""

    name: str
    """The file's name, without its ending."""
    title: str
    x: str
    y: str
    lines: Mapping[str, Points]
    log: bool = True

    @property
    def runs(self) -> tuple[Run, ...]:
        """What must be measured."""
        return tuple(
            run for points in self.lines.values() for _, each in points for run in each.runs
        )


@dataclass(frozen=True)
class RealStream:
    """A stream that cannot be had here."""

    name: str
    stand_in: str
    """The trace that is measured in its place."""
    what: str
    """What it is, and how its usual dump becomes what `spec` reads."""
    spec: str
    """How `unskew simulate` reads it."""
    also: tuple[str, ...] = ()
    """Further traces that are measured in its place."""


@dataclass(frozen=True)
class Paper:
    """One paper's tables and figures."""

    key: str
    title: str
    conditions: str
    """What holds for all of its rows."""
    rows: tuple[Row, ...]
    plots: tuple[Plot, ...] = ()
    findings: str = ""
    """What the comparison shows, in sentences."""
    real: tuple[RealStream, ...] = ()
    """Its streams for which others stand in."""
    large: bool = False
    """Is it left out unless it is asked for?"""

    @property
    def runs(self) -> tuple[Run, ...]:
        """All that must be measured, each once."""
        of_rows = [run for row in self.rows for run in row.ours.runs]
        return tuple(dict.fromkeys([*of_rows, *(run for plot in self.plots for run in plot.runs)]))


_KINDS = ("abstract", "section", "theorem", "table", "fig.")


def by_figure(paper: Paper) -> Paper:
    """The paper with its rows in the order of its figures, each figure's as they were."""
    return replace(paper, rows=tuple(sorted(paper.rows, key=lambda row: _rank_figure(row.figure))))


def _rank_figure(figure: str) -> tuple[int, int]:
    kind = figure.partition(" ")[0]
    number = re.search(r"\d+", figure) if kind in {"table", "fig."} else None
    return _KINDS.index(kind) if kind in _KINDS else len(_KINDS), int(number[0]) if number else 0
