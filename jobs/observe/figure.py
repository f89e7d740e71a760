"""The type of a figure: a row of the table in `figures`, and the values that it may have."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from unskew.jobs.observe.batches.batch import BatchDone

PREFIX = "unskew_"
Labels = tuple[str, ...]
Value = Callable[[BatchDone], Any]
PARTITION: Labels = ("partition",)
OTHERS = "(others)"
"""The label of what is summed since it has no series of its own."""


@dataclass(frozen=True)
class Figure:
    """One figure: what Prometheus knows of it, its value of a batch, and where it is shown.

    A display without a name here does not show the figure, and Prometheus none without a kind.
    """

    name: str
    """For Prometheus, without the prefix."""
    kind: Literal["gauge", "counter", "histogram", ""]
    help: str
    value: Value | None = None
    """A number, an array by partition, or a mapping by labels; None if the batch has no value.

    A figure without this function has its value from elsewhere than a batch.
    """
    labels: Labels = ()
    bounds: tuple[float, ...] = ()
    """The upper bounds of a histogram's buckets."""
    series_max: int = 0
    """How many values of its labels Prometheus sees in the life of a process; further ones are
    summed under `OTHERS`. 0: they are bounded by themselves."""
    empty_batches: bool = False
    """Does a batch without rows change the value in Prometheus?"""
    page: str = ""
    """The name in the live page's data; a dot leads into a group of them."""
    log: str = ""
    """The name in the log's event of a batch."""
    digits: int = 4
    """Decimal places in the log."""
    line: str = ""
    """The text in the terminal's line, as a format."""
    inspect: str = ""
    """The name in the batches of `inspect`, or in its partitions if the figure is by partition."""
    column: tuple[str, str] = ("", "")
    """Heading and format of the column in the tables of `inspect`."""

    @property
    def exported(self) -> str:
        """The name in Prometheus."""
        return f"{PREFIX}{self.name}_total" if self.kind == "counter" else f"{PREFIX}{self.name}"

    @property
    def all_labels(self) -> Labels:
        """The labels in Prometheus; the first says which query it is."""
        return ("query", *self.labels)


@dataclass(frozen=True)
class Buckets:
    """A histogram so far: counts by bucket (not cumulative), and the sum."""

    counts: tuple[int, ...]
    sum: float

    def add(self, more: "Buckets") -> "Buckets":
        """Add the counts and the sum of another one with the same buckets."""
        counts = tuple(sum(pair) for pair in zip(self.counts, more.counts, strict=True))
        return Buckets(counts, self.sum + more.sum)

    @classmethod
    def make(cls, bounds: tuple[float, ...], value: float) -> "Buckets":
        """A histogram of a single value."""
        counts = [0] * (len(bounds) + 1)
        counts[sum(bound < value for bound in bounds)] = 1
        return cls(tuple(counts), value)

    def accumulate(self, bounds: tuple[float, ...]) -> list[tuple[str, float]]:
        """The buckets as Prometheus takes them: how many values are at or below each bound."""
        total, buckets = 0, []
        for bound, count in zip([*map(str, bounds), "+Inf"], self.counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return buckets


def take_value(figure: Figure, done: BatchDone) -> Any:
    """Take a figure's value from a batch; None if the figure or the batch has none."""
    return None if figure.value is None else figure.value(done)


def split_by_labels(value: Any) -> Mapping[Labels, Any]:
    """A value as a mapping from labels: of an array by partition, a number, or a mapping."""
    if isinstance(value, Mapping):
        return {key if isinstance(key, tuple) else (key,): part for key, part in value.items()}
    if hasattr(value, "tolist") and value.ndim:
        return {(str(partition),): part for partition, part in enumerate(value.tolist())}
    return {(): value}
