"""The demo's results: the groupings side by side, as a table and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from unskew.config.errors import ExternalError
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_stats import BatchStats
from unskew.jobs.observe.page.palette import LIGHT

_COLOURS = (LIGHT["key"], LIGHT["routed"])
_HEADINGS = (
    *("grouping", "batch s", "slowest", "max/mean", "worst"),
    *("words/s", "pairs/key", "dead", "totals"),
)


@dataclass(frozen=True)
class Outcome:
    """One run of the job: whether its totals and dead letters are the oracle's, and its batches."""

    grouping: str
    exact: bool
    dead: int
    batches: tuple[BatchDone, ...]

    @property
    def stats(self) -> list[BatchStats]:
        """The stats of each batch with rows."""
        return [done.stats for done in self.batches if done.stats is not None]

    @property
    def warm(self) -> tuple[BatchDone, ...]:
        """All batches but the first, in which Python starts and kernels load."""
        return self.batches[1:] or self.batches

    @property
    def left_out(self) -> str:
        """The first batch's time, which the medians leave out; empty if it is the only one."""
        if len(self.warm) == len(self.batches):
            return ""
        return f"{self.grouping} {self.batches[0].seconds:.1f} s"

    @property
    def words_per_second(self) -> float:
        """Words per second over the warm batches."""
        return sum(done.records for done in self.warm) / sum(done.seconds for done in self.warm)

    @property
    def worst(self) -> BatchStats:
        """The batch with the fullest partition."""
        return max(self.stats, key=lambda stats: int(stats.records.max()))


def make_summary(outcomes: Sequence[Outcome]) -> Table:
    """Make the table of groupings side by side: medians and worst batches."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "grouping" else "right")
    for outcome in outcomes:
        seconds = [done.seconds for done in outcome.warm]
        ratios = [stats.max_over_mean for stats in outcome.stats]
        table.add_row(
            outcome.grouping,
            f"{median(seconds):.2f}",
            f"{max(seconds):.2f}",
            f"{median(ratios):.2f}",
            f"{max(ratios):.2f}",
            f"{outcome.words_per_second:,.0f}",
            f"{median(stats.replication for stats in outcome.stats):.2f}",
            str(outcome.dead),
            "exact" if outcome.exact else "WRONG",
        )
    return table


def describe_left_out(outcomes: Sequence[Outcome]) -> str:
    """Describe what `batch s`, `slowest` and `words/s` leave out."""
    first = ", ".join(filter(None, (outcome.left_out for outcome in outcomes)))
    return (
        "batch s and the ratios are medians, slowest and worst the greatest of"
        f" {len(outcomes[0].warm)} batches. Left out of the times is the first batch of each"
        f" ({first}), in which Spark opens its state and compiles its plan."
        if first
        else "One batch each: its time includes the start of Spark's query."
    )


def draw(path: Path, outcomes: Sequence[Outcome], flaring: range) -> None:
    """Loads of the worst batch and the time of every batch, into a PNG file."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    widths = [1.0] * len(outcomes) + [1.5]
    *axes, over_time = figure.subplots(1, len(widths), width_ratios=widths)
    most = max(int(outcome.worst.records.max()) for outcome in outcomes)
    for axis, outcome, colour in zip(axes, outcomes, _COLOURS, strict=False):
        _draw_loads(axis, outcome, colour, most)
    axes[0].set_ylabel("words of a partition, fullest batch")
    _draw_times(over_time, outcomes, flaring)
    try:
        figure.savefig(path, dpi=150, format="png")
    except OSError as error:
        raise ExternalError(f"demo: --png: {path}: {error.strerror}") from error


def _draw_times(axis: Any, outcomes: Sequence[Outcome], flaring: range) -> None:
    for outcome, colour, mark in zip(outcomes, _COLOURS, "os", strict=False):
        numbers = [done.batch + 1 for done in outcome.warm]
        seconds = [done.seconds for done in outcome.warm]
        axis.plot(numbers, seconds, color=colour, marker=mark, label=outcome.grouping)
    axis.axvspan(flaring.start + 0.5, flaring.stop + 0.5, color="0.9", zorder=0)
    axis.set(title="one word flares up in the grey batches", ylim=(0, None))
    axis.set(xlabel="batch (without the first)", ylabel="seconds of a batch")
    axis.legend()


def _draw_loads(axis: Any, outcome: Outcome, colour: str, most: int) -> None:
    loads = outcome.worst.records
    axis.bar(range(loads.size), loads, color=colour)
    axis.axhline(loads.mean(), color="black", linewidth=1, linestyle="--", label="mean")
    axis.set(
        title=f"{outcome.grouping}: {outcome.worst.max_over_mean:.2f} x the mean",
        xlabel="partition",
    )
    axis.set(ylim=(0, most * 1.05), xticks=range(loads.size))
    axis.yaxis.set_major_formatter("{x:,.0f}")
    axis.legend(loc="upper left")
