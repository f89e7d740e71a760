"""`paced`: counts, and takes a declared time for each record. For benchmarks.

The time is slept, so that sixteen slots on two cores are sixteen, or burnt as processor time. It is
spent where a costly operator would spend it, after the shuffle, and so also with `grouping: none`,
where Spark's own hash of the key decides the partition.
"""

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from pydantic import Field

from unskew.config.models.base import Expression
from unskew.config.models.operator import OperatorOptions
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.config.types.units import Duration
from unskew.grouping.base import Float64s
from unskew.jobs.operators.base import KEY_HASH, RECORDS, SECONDS, Operator, aggregate
from unskew.jobs.operators.word_count import split_words

if TYPE_CHECKING:
    import pyarrow as pa


_BALLAST = "ballast"


class PacedOptions(OperatorOptions):
    """A declared cost a record, for benchmarks."""

    key: Expression = "key"
    """The key, as an SQL expression."""
    text: Expression | None = Field(default=None, examples=["value"])
    """A text, each word of which is a record of its own, as in word_count; `key` is not used
    then."""
    cost: Duration = Duration.parse("100 us")
    """The time a record takes, before factors."""
    key_cost: Duration = Duration.parse("0 s")
    """The time a task takes for each key that it meets, before factors: a model to load, say."""
    partial_bytes: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Bytes that each partial result carries beside its count, as a sketch does."""
    spend: Literal["sleep", "burn"] = "sleep"
    """Sleep the time, or compute for as long."""
    class_factors: Annotated[
        list[Annotated[float, Field(ge=0, le=1_000)]], Field(min_length=1, max_length=1_000)
    ] = Field(default_factory=lambda: [1.0], examples=[[1.0, 5.0]])
    """Cost factors by class of key; a key's class is its hash modulo their number."""
    partition_factors: dict[
        Annotated[int, Field(ge=0, le=9_999)], Annotated[float, Field(ge=0, le=1_000)]
    ] = Field(default_factory=dict)
    """Cost factors by partition, for slow ones; the others have 1."""

    @agrees_with("partitions")
    def slow_partitions_exist(self, partitions: int) -> Iterator[Contradiction]:
        """`partition_factors` names existing partitions only."""
        for partition in self.partition_factors:
            if partition >= partitions:
                yield Contradiction(
                    ("partition_factors", str(partition)),
                    f"there is no partition {partition} with partitions {partitions}",
                    f"from 0 to {partitions - 1}",
                )

    @agrees_with("grouping")
    def slow_partitions_are_routed_to(self, grouping: Any) -> Iterator[Contradiction]:
        """`partition_factors` needs a grouping that routes."""
        if self.partition_factors and grouping.type == "none":
            yield Contradiction(
                ("partition_factors",),
                "partition_factors contradicts grouping.type none: nothing is routed",
                "remove partition_factors, or choose another grouping",
            )


class Paced(Operator):
    """Counts records of each key and takes a declared time for each."""

    Options = PacedOptions
    options: PacedOptions
    native = False

    def __init__(self, options: PacedOptions) -> None:
        super().__init__(options)
        self.explodes = options.text is not None

    @property
    def key(self) -> str:
        if self.options.text is not None:
            return split_words(self.options.text)
        return f"cast({self.options.key} as string)"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {_BALLAST: "binary"} if self.options.partial_bytes else {}

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """Counts by key; then the time of all of them, shared out as it was declared."""
        import pyarrow as pa

        from unskew.grouping.spark.router import read_task_position

        partials = aggregate(rows, ())
        declared = self.sum_declared_seconds(partials, read_task_position()[1])
        due = float(declared.sum())
        taken = _sleep(due) if self.options.spend == "sleep" else _burn(due)
        share = taken / due if due else 0.0
        if self.options.partial_bytes:
            ballast = pa.scalar(b"\0" * self.options.partial_bytes, pa.binary())
            partials = partials.append_column(_BALLAST, pa.repeat(ballast, partials.num_rows))
        return partials.append_column(SECONDS, pa.array(declared * share))

    def sum_declared_seconds(self, partials: "pa.Table", partition: int) -> Float64s:
        """Sum the cost, in a partition, of the records of each row of `partials`."""
        factors = np.array(self.options.class_factors)
        hashes = partials[KEY_HASH].to_numpy().astype(np.int64).view(np.uint64)
        classes = (hashes % np.uint64(factors.size)).astype(np.int64)
        here = self.options.partition_factors.get(partition, 1.0)
        records = partials[RECORDS].to_numpy() * self.options.cost.seconds
        seconds: Float64s = (records + self.options.key_cost.seconds) * factors[classes] * here
        return seconds

    @property
    def merge(self) -> Mapping[str, str]:
        ballast = {_BALLAST: f"max({_BALLAST})"} if self.options.partial_bytes else {}
        return {"count": f"sum({RECORDS})", **ballast}

    @property
    def final(self) -> Mapping[str, str]:
        # What no result is made of, Spark would leave out of the merge and of the partials too.
        ballast = {f"{_BALLAST}_bytes": f"octet_length({_BALLAST})"}
        return {"count": "count", **(ballast if self.options.partial_bytes else {})}

    @property
    def direct(self) -> Mapping[str, str]:
        return {"count": "count(1)"}


def _sleep(seconds: float) -> float:
    started = time.perf_counter()
    time.sleep(seconds)
    return time.perf_counter() - started


def _burn(seconds: float) -> float:
    """Work for this much processor time; returns how long that took."""
    started = time.perf_counter()
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass
    return time.perf_counter() - started
