"""What came of a demo: the groupings side by side, as a table and as a picture."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from unskew.config.errors import ExternalError
from unskew.jobs.observe.batch import BatchDone
from unskew.jobs.observe.batch_stats import BatchStats

_COLOURS = ("#b5443c", "#2f6f8f")
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
        """Of each batch."""
        return [done.stats for done in self.batches if done.stats is not None]

    @property
    def warm(self) -> tuple[BatchDone, ...]:
        """All batches but the first, in which Python starts and kernels load."""
        return self.batches[1:] or self.batches

    @property
    def words_per_second(self) -> float:
        """Of the warm batches."""
        return sum(done.records for done in self.warm) / sum(done.seconds for done in self.warm)

    @property
    def worst(self) -> BatchStats:
        """The batch with the fullest partition."""
        return max(self.stats, key=lambda stats: int(stats.records.max()))


def summary(outcomes: Sequence[Outcome]) -> Table:
    """The groupings side by side: medians and worst batches."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading == "grouping" else "right")
    for one in outcomes:
        seconds = [done.seconds for done in one.warm]
        ratios = [stats.max_over_mean for stats in one.stats]
        table.add_row(
            one.grouping,
            f"{median(seconds):.2f}",
            f"{max(seconds):.2f}",
            f"{median(ratios):.2f}",
            f"{max(ratios):.2f}",
            f"{one.words_per_second:,.0f}",
            f"{median(stats.replication for stats in one.stats):.2f}",
            str(one.dead),
            "exact" if one.exact else "WRONG",
        )
    return table


def draw(path: Path, outcomes: Sequence[Outcome], flaring: range) -> None:
    """Loads of the worst batch and the time of every batch, into a PNG file."""
    from matplotlib.figure import Figure  # noqa: PLC0415 - an extra

    figure = Figure(figsize=(10, 3.6), layout="constrained")
    widths = [1.0] * len(outcomes) + [1.5]
    *places, over_time = figure.subplots(1, len(widths), width_ratios=widths)
    most = max(int(one.worst.records.max()) for one in outcomes)
    for place, one, colour in zip(places, outcomes, _COLOURS, strict=False):
        _loads(place, one, colour, most)
    places[0].set_ylabel("words of a partition, fullest batch")
    _times(over_time, outcomes, flaring)
    try:
        figure.savefig(path, dpi=150, format="png")
    except OSError as error:
        raise ExternalError(f"demo: --png: {path}: {error.strerror}") from error


def _times(place: Any, outcomes: Sequence[Outcome], flaring: range) -> None:
    for one, colour, mark in zip(outcomes, _COLOURS, "os", strict=False):
        numbers = [done.batch + 1 for done in one.warm]
        seconds = [done.seconds for done in one.warm]
        place.plot(numbers, seconds, color=colour, marker=mark, label=one.grouping)
    place.axvspan(flaring.start + 0.5, flaring.stop + 0.5, color="0.9", zorder=0)
    place.set(title="one word flares up in the grey batches", ylim=(0, None))
    place.set(xlabel="batch (in the first, Python starts)", ylabel="seconds of a batch")
    place.legend()


def _loads(place: Any, one: Outcome, colour: str, most: int) -> None:
    loads = one.worst.records
    place.bar(range(loads.size), loads, color=colour)
    place.axhline(loads.mean(), color="black", linewidth=1, linestyle="--", label="mean")
    place.set(title=f"{one.grouping}: {one.worst.max_over_mean:.2f} x the mean", xlabel="partition")
    place.set(ylim=(0, most * 1.05), xticks=range(loads.size))
    place.yaxis.set_major_formatter("{x:,.0f}")
    place.legend(loc="upper left")
