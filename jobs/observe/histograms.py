"""Histograms as the board keeps them: counts by bucket, added to batch by batch."""

from collections.abc import Mapping
from dataclasses import dataclass

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Buckets:
    """A histogram so far: counts by bucket (not cumulative), and the sum."""

    counts: tuple[int, ...]
    sum: float

    def plus(self, more: "Buckets") -> "Buckets":
        """This and more."""
        both = tuple(one + other for one, other in zip(self.counts, more.counts, strict=True))
        return Buckets(both, self.sum + more.sum)


def observation(bounds: tuple[float, ...], value: float) -> Buckets:
    """A single value."""
    counts = [0] * (len(bounds) + 1)
    counts[sum(bound < value for bound in bounds)] = 1
    return Buckets(tuple(counts), value)


def added(
    before: Mapping[Labels, Buckets], found: Mapping[Labels, Buckets]
) -> dict[Labels, Buckets]:
    """The histograms with what was found, by labels; those before stay as they are."""
    both = dict(before)
    for labels, buckets in found.items():
        both[labels] = both[labels].plus(buckets) if labels in both else buckets
    return both


def cumulative(bounds: tuple[float, ...], buckets: Buckets) -> list[tuple[str, float]]:
    """The buckets as Prometheus takes them: how many values are at or below each bound."""
    total, found = 0, []
    for text, count in zip([*map(str, bounds), "+Inf"], buckets.counts, strict=True):
        total += count
        found.append((text, float(total)))
    return found
