"""When the stages of a batch's Spark jobs ran."""

from dataclasses import dataclass


@dataclass(frozen=True)
class StageTime:
    """One stage, by the driver's clock."""

    started: float
    """The start of the stage, in Unix time."""
    ended: float
    run_seconds: float
    """The run times of all its tasks, summed."""
    reads_shuffle: bool
    writes: bool
    """Did its tasks write to a table or files?"""

    @property
    def seconds(self) -> float:
        """From its submission to its end."""
        return max(0.0, self.ended - self.started)


@dataclass(frozen=True)
class BatchStages:
    """The stages of a batch in the order in which they began, and how the job uses them."""

    stages: tuple[StageTime, ...]
    slots: int
    """Tasks that run at a time."""
    shuffled: bool
    """Does the work follow a shuffle? With grouping `local` it is done in the tasks that read."""
    merges: bool
    """Is there a merge behind the work? A job that writes rows has none."""
    native: bool = False
    """Does Spark compute the operator itself? Then the merge follows the reading at once."""

    @property
    def merge(self) -> int:
        """The index of the first stage behind the work."""
        before = self._find_shuffle_read() if self.native else self.work
        if before is None:
            return len(self.stages)
        return before if self.native else before + 1

    @property
    def work(self) -> int | None:
        """The index of the stage in which the partitions work; None if there is none."""
        if self.native:
            return None
        indexes = range(len(self.stages))
        if not self.merges:
            writing = [at for at in indexes if self.stages[at].writes]
            return max(writing, key=lambda at: self.stages[at].run_seconds, default=None)
        if not self.shuffled:
            return 0 if self.stages else None
        return self._find_shuffle_read()

    def _find_shuffle_read(self) -> int | None:
        indexes = range(len(self.stages))
        return next((at for at in indexes if self.stages[at].reads_shuffle), None)
