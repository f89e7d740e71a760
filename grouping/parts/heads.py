"""The head of a stream: which keys are hot, for the three groupings that treat hot keys apart.

SpaceSaving counts the source's keys. After N records a key is of the head when its *guaranteed*
count (count - error, never above the truth) is at least

    theta N + caution sqrt(theta N) + caution.

The first term is the paper's. The other two keep out keys that are above theta by luck: a key just
below it has about theta N records, give or take their square root, and at a stream's start, when
theta N is below one, every key seen once would test as hot. A false head is not free: it is spread
over many partitions, and those pairs of key and partition stay: without them, W-Choices at n = 100,
z = 0.5, 10^6 records makes 1.15 times the pairs of the exact head with 5 sources, and 2.3 times
with 48; with them never more than 1.0 times. The margin shrinks relative to the stream (15 % of
theta after 400/theta records, 1.5 % after 40,000/theta), and keys of share 2/n or more, which two
choices cannot carry, are seen after a few records. `caution: 0` is the paper's.

The paper counts over the source's whole life. A key that turns hot late must then make up theta of
all records there ever were: with 30 % of the records of batches of 50,000, at n = 20, it stayed on
two partitions for 14 batches after 2 x 10^7 records. So with `memory: batch` the counts, their
errors and N are multiplied by `decay` when a batch begins, though not below N = 10/theta: a source
remembers 1.25 batches, or where they are small as many as it takes to know its keys. So a new key
of share 2/n or more is hot within its first batch of 50,000, however old the job. Where batches
are so small that N stays at 10/theta, 50 n by default, it is hot after some 25 of its records at a
source, about 13 n records at 2/n: so it takes more than two batches where a source's share of one
has fewer than 8 n, by default. For keys whose share stays as it is the head is the same, but for
those within the margin.
"""

from typing import Annotated

import numpy as np
from pydantic import Field

from unskew.grouping.base import Feedback, Float64s, Int32s, Int64s, Setting, UInt64s
from unskew.grouping.kernels import borrowing_kernel
from unskew.grouping.parts.sketches import space_saving
from unskew.grouping.parts.sketches.space_saving import Counters
from unskew.grouping.parts.two_choices import LoadGrouping, LoadParams

CAPACITY_LEAST = 256
CAPACITY_PER_THRESHOLD = 4.0
DECAY = 0.2
REMEMBERED_PER_THRESHOLD = 10.0


class HeadParams(LoadParams):
    """The options of a grouping that tracks the head of its stream."""

    theta: Annotated[float, Field(ge=1e-5, le=1.0)] | None = Field(None, examples=[0.001])
    """Share of this source's records from which on a key is hot. Default: 1/(5n) for n active
    partitions; useful from there (two choices carry what is colder) to 2/n."""
    capacity: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(None, examples=[1000])
    """Counters of SpaceSaving. Default: 4/theta, at least 256."""
    caution: float = Field(default=3.0, ge=0.0, le=10.0)
    """How many standard deviations above theta the count of a hot key must be; 0 is the paper's."""
    decay: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(None, examples=[1.0])
    """What the counts of keys and their sum N are multiplied by when a batch begins, though N stays
    at 10/theta at least. So however old the job, a new key that two choices cannot carry (a share
    of 2/n) is hot within two batches if a source's share of each has 8 n records; with fewer, after
    some 25 of its records at a source. 1 is the paper's, which never forgets. Default: 0.2 with
    `memory: batch`, 1 with `memory: stream`."""


class HeadGrouping(LoadGrouping):
    """A grouping with a load vector, two choices for the tail, and a head."""

    params: HeadParams
    checks = (space_saving.check,)

    def __init__(self, setting: Setting, params: HeadParams, candidates: int = 2) -> None:
        super().__init__(setting, params, candidates)
        theta = params.theta or _theta_default(setting.partitions)
        capacity = params.capacity or max(CAPACITY_LEAST, round(CAPACITY_PER_THRESHOLD / theta))
        self.state |= space_saving.arrays(capacity)
        self.state["seen"] = np.zeros(1, np.int64)

    def _begin_batch(self, feedback: Feedback | None) -> None:
        super()._begin_batch(feedback)
        decay = self.params.decay
        if decay is None:
            decay = DECAY if self.params.memory == "batch" else 1.0
        seen = int(self.state["seen"][0])
        kept = min(seen, max(round(decay * seen), round(REMEMBERED_PER_THRESHOLD / self.rule[0])))
        if kept < seen:
            space_saving.scale(self.counters, kept / seen)
            self.state["seen"][0] = kept

    @property
    def counters(self) -> Counters:
        """The state's SpaceSaving."""
        return space_saving.view(self.state)

    def _mark_head(self, keys: UInt64s) -> Int32s:
        hot = np.empty(keys.size, np.int32)
        mark_head(keys, self.counters, self.state["seen"], self.rule, hot)
        return hot

    @property
    def rule(self) -> tuple[float, float]:
        """What the test for the head needs: theta and caution."""
        return self.params.theta or _theta_default(self.active.size), self.params.caution

    def hot_keys(self) -> UInt64s:
        """The keys of the head, hottest first."""
        return self._head()[0]

    def signals(self) -> dict[str, float]:
        """The head's number of keys and share of the records, and the choices of a hot key."""
        keys, shares = self._head()
        return {
            "head_keys": float(keys.size),
            "head_share": float(shares.sum()),
            "head_choices": float(self.choices),
        }

    @property
    def choices(self) -> int:
        """How many candidates a key of the head has."""
        return self.active.size

    def _head(self) -> tuple[UInt64s, Float64s]:
        counters, seen = self.counters, int(self.state["seen"][0])
        used = int(counters.used[0])
        counts = counters.counts[:used] - counters.errors[:used]
        hot = np.flatnonzero(counts >= compute_hot_threshold(seen, *self.rule))
        order = hot[np.argsort(-counts[hot], kind="stable")]
        return counters.keys[order], counts[order] / max(seen, 1)


def _theta_default(partitions: int) -> float:
    return 1.0 / (5 * partitions)


@borrowing_kernel
def compute_hot_threshold(seen: int, theta: float, caution: float) -> float:
    """The guaranteed count from which on a key is of the head, after `seen` records."""
    expected = theta * seen
    return float(expected + caution * np.sqrt(expected) + caution)


@borrowing_kernel
def mark_head(
    keys: UInt64s,
    counters: Counters,
    seen: Int64s,
    rule: tuple[float, float],
    hot: Int32s,
) -> None:
    """Count one record of each of `keys`; in `hot` its counter if it is of the head by then, or -1.

    What is hot does not depend on where records went, so this is a loop of its own: the routing
    loops after it need neither the counters nor the test.
    """
    theta, caution = rule
    for i in range(keys.size):
        seen[0] += 1
        slot, _ = space_saving.count(counters, keys[i])
        certain = counters.counts[slot] - counters.errors[slot]
        hot[i] = slot if certain >= compute_hot_threshold(seen[0], theta, caution) else -1
