"""Settings of a simulation besides the trace and the grouping, with their bounds."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from unskew.grouping.base import SEED_MAX, GroupingParams

PARTITIONS_MAX = 1000
SOURCES_MAX = 64
BATCHES_MAX = 100_000
STREAMS_MAX = 1000
POINTS_MAX = 10_000

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
    utilisation: float | None = Field(None, gt=0, le=100)
    """Instead of `arrival_per_second`: the part of the time that all partitions together are busy,
    at the speeds they begin with."""
    batch_records: int | None = Field(None, ge=1)
    """Records of a micro-batch; without it the whole trace is one batch."""
    batch_seconds: float | None = Field(None, gt=0, le=1e6)
    """Seconds of stream time of a micro-batch."""
    feedback_seconds: float | None = Field(None, gt=0, le=1e6)
    """Without micro-batches: stream time between two reports of the partitions; 1 by default."""
    feedback_records: int | None = Field(None, ge=1)
    """Without micro-batches: records between two reports of the partitions."""
    reports: Literal["routed", "completed"] = "routed"
    """What reports tell of: the records routed since the last, or those completed, one by one."""
    speeds: tuple[Annotated[tuple[Speed, ...], Field(min_length=1)], ...] = ((1.0,),)
    """Speeds of the partitions, repeated in turn; one tuple for each entry of `speeds_from`."""
    speeds_from: tuple[Annotated[int, Field(ge=0)], ...] = (0,)
    """From which record on each entry of `speeds` holds."""
    pending: int | None = Field(None, ge=1, le=1_000_000)
    """A closed loop: a source sends a record only while fewer than these of its own are under
    way; the records are there from the start."""
    source_per_second: float | None = Field(None, ge=0.01, le=1e9)
    """With `pending`: the most that a source sends in a second."""
    active: tuple[Annotated[int, Field(ge=1, le=PARTITIONS_MAX)], ...] = ()
    """How many partitions are active, from the first on; one number for each of `active_from`."""
    active_from: tuple[Annotated[int, Field(ge=0)], ...] = ()
    """From which record on each entry of `active` holds; before the first, all are active."""
    hot_share: float | None = Field(None, gt=0, le=1)
    """A key with at least this share of the records between two points over time is really hot:
    how many of the keys that the first source treats as hot are, and how many of those it knows."""
    predictor: str | None = Field(None, min_length=1)
    """With `hot_share`: a sketch whose hot keys are judged in the place of the grouping's, such as
    `count_min:rows=4,columns=1024,share=0.01` or `ada_count_min:decay=0.5`."""
    head_theta: float | None = Field(None, gt=0, le=1)
    """A key with at least this share of all records is of the head: how many of each partition's
    records are of such keys; also the keys of the partition with the most, over the mean. Needs 8
    bytes of memory for each key and partition."""
    keys_moved: bool = False
    """With `active`: how many keys of the records before its last change went to a partition that
    was new to them after it. Needs as much memory."""
    full_knowledge: bool = False
    """Also serve every record by the partition that is done with it first, known exactly: what no
    grouping is expected to beat."""
    memory_pairs: int | None = Field(None, ge=1, le=10**12)
    """Pairs of key and partition that all partitions together hold in memory; give `miss_us`."""
    miss_us: float | None = Field(None, gt=0, le=1e9)
    """With `memory_pairs`: what a record costs more times the part of all pairs that is not in
    memory, as if every pair were met equally often."""
    streams: int = Field(1, ge=1, le=STREAMS_MAX)
    """How many streams, each with the next seed of trace and groupings; figures are means then."""
    points: int = Field(50, ge=1, le=POINTS_MAX)
    """How many points the figures over time have."""
    point_seconds: float | None = Field(None, gt=0, le=1e6)
    """Instead of `points`: seconds of stream time between two points over time."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.batch_records is not None and self.batch_seconds is not None:
            raise ValueError("batch_records and batch_seconds: give one of them")
        if self.batched and self.feedback_seconds is not None:
            raise ValueError(
                "feedback_seconds: only without micro-batches, which report at their ends"
            )
        if self.batched and self.feedback_records is not None:
            raise ValueError(
                "feedback_records: only without micro-batches, which report at their ends"
            )
        if self.feedback_records is not None and self.feedback_seconds is not None:
            raise ValueError("feedback_records and feedback_seconds: give one of them")
        if self.utilisation is not None and self.arrival_per_second is not None:
            raise ValueError("utilisation and arrival_per_second: give one of them")
        if self.reports == "completed" and not self._completes_apart:
            raise ValueError(
                "reports: completed needs arrival_per_second or utilisation, and no micro-batches"
            )
        return self

    @model_validator(mode="after")
    def _closed_apart(self) -> Self:
        if self.source_per_second is not None and self.pending is None:
            raise ValueError("source_per_second: only with pending, the closed loop")
        opened = ("arrival_per_second", "utilisation", "batch_records", "batch_seconds")
        given = [name for name in opened if getattr(self, name) is not None]
        if self.pending is not None and given:
            raise ValueError(f"pending and {given[0]}: give one of them")
        if self.pending is not None and len(self.speeds) > 1:
            raise ValueError("pending and speeds: speeds that change are not for the closed loop")
        return self

    @model_validator(mode="after")
    def _measured_apart(self) -> Self:
        if (self.memory_pairs is None) != (self.miss_us is None):
            raise ValueError("memory_pairs and miss_us: give both, or none of them")
        if self.predictor is not None and self.hot_share is None:
            raise ValueError("predictor: only with hot_share, by which it is judged")
        if self.keys_moved and not self.active:
            raise ValueError("keys_moved: only with active, which changes the partitions")
        apart = {"batches": self.batched, "pending": self.pending, "active": self.active}
        given = [name for name, value in apart.items() if value]
        if self.full_knowledge and given:
            raise ValueError(
                f"full_knowledge: not with {given[0]}; it knows all partitions and no batches"
            )
        return self

    @model_validator(mode="after")
    def _stages_in_order(self) -> Self:
        if len(self.speeds) != len(self.speeds_from) or self.speeds_from[:1] != (0,):
            raise ValueError("speeds: the first must hold from record 0 on")
        if list(self.speeds_from) != sorted(set(self.speeds_from)):
            raise ValueError("speeds: the records they hold from must increase")
        if len(self.active) != len(self.active_from):
            raise ValueError("active: as many numbers as records they hold from")
        if list(self.active_from) != sorted(set(self.active_from)):
            raise ValueError("active: the records they hold from must increase")
        if any(number > self.partitions for number in self.active):
            raise ValueError(f"active: at most all {self.partitions} partitions")
        return self

    @property
    def _completes_apart(self) -> bool:
        arriving = self.arrival_per_second is not None or self.utilisation is not None
        return arriving and not self.batched

    @property
    def batched(self) -> bool:
        """Is the trace cut into micro-batches?"""
        return self.batch_records is not None or self.batch_seconds is not None
