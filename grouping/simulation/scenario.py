"""Settings of a simulation besides the trace and the grouping, with their bounds."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from unskew.grouping.base import SEED_MAX, GroupingParams

PARTITIONS_MAX = 1000
SOURCES_MAX = 64
BATCHES_MAX = 100_000

Speed = Annotated[float, Field(gt=0, le=1e6)]


class Scenario(GroupingParams):
    """Partitions, sources, costs and times."""

    partitions: int = Field(ge=1, le=PARTITIONS_MAX)
    """How many partitions there are."""
    sources: int = Field(1, ge=1, le=SOURCES_MAX)
    """How many sources; records go to them round robin."""
    seed: int = Field(0, ge=0, le=SEED_MAX)
    """The groupings' seed."""
    cost_us: float | None = Field(None, gt=0, le=1e9)
    """Microseconds of work per record (of cost one, where a trace has costs of its own)."""
    arrival_per_second: float | None = Field(None, ge=0.01, le=1e9)
    """Records that arrive in a second; without it all of them are there from the start."""
    batch_records: int | None = Field(None, ge=1)
    """Micro-batches of so many records; without it the whole trace is one batch."""
    batch_seconds: float | None = Field(None, gt=0, le=1e6)
    """Micro-batches of so many seconds of stream time."""
    feedback_seconds: float | None = Field(None, gt=0, le=1e6)
    """Without micro-batches: stream time between two reports of the partitions; 1 by default."""
    speeds: tuple[Annotated[tuple[Speed, ...], Field(min_length=1)], ...] = ((1.0,),)
    """Speeds of the partitions, repeated in turn; one tuple for each entry of `speeds_from`."""
    speeds_from: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
    """From which record on each entry of `speeds` holds."""
    points: int = Field(50, ge=1, le=1000)
    """How many points the figures over time have."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.batch_records is not None and self.batch_seconds is not None:
            raise ValueError("batch_records and batch_seconds: give one of them")
        if self.batched and self.feedback_seconds is not None:
            raise ValueError(
                "feedback_seconds: only without micro-batches, which report at their ends"
            )
        if len(self.speeds) != len(self.speeds_from) or self.speeds_from[:1] != (0,):
            raise ValueError("speeds: the first must hold from record 0 on")
        if list(self.speeds_from) != sorted(set(self.speeds_from)):
            raise ValueError("speeds: the records they hold from must increase")
        return self

    @property
    def batched(self) -> bool:
        """Is the trace cut into micro-batches?"""
        return self.batch_records is not None or self.batch_seconds is not None
