"""What a storm did, counted by kind; and how one case of it ended."""

from collections import Counter
from dataclasses import dataclass, field


class StormError(AssertionError):
    """A promise that was not kept."""


@dataclass
class Counts:
    """What happened, by kind."""

    faults: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    """Kills by the point of a batch that the checkpoint was at afterwards."""
    outcomes: Counter[str] = field(default_factory=Counter)
    """Comparisons that were exact, and refusals that named a file."""
    notes: list[str] = field(default_factory=list)
    """What should be better but breaks no promise about totals, as lines to show."""

    def times(self, fault: str) -> int:
        """How often there was this fault."""
        return self.faults[fault]

    def add(self, other: "Counts") -> None:
        """Take these too."""
        self.faults.update(other.faults)
        self.points.update(other.points)
        self.outcomes.update(other.outcomes)
        self.notes += other.notes
