"""Shares of few records a partition: known whole before they are routed, and levelled.

Sources do not see each other's loads, so what chance leaves uneven in their shares adds up. Two
choices leave the loads of one source some 0.7 records apart (one standard deviation), however many
records it has. In the sum over s sources the fullest of 100 partitions is then 2.5 * 0.7 sqrt(s)
records above the mean: nothing beside thousands of records a partition, a quarter of 50. A key that
its sources do not know as hot yet, since each has seen few records of it, adds to that.

So a source holds its share back until it has `held_records` of it. If the share is over before, the
source knows its size, and so the whole records that each partition is to get, at least: a partition
that has them is *full*. A record whose candidates are full goes to the least loaded of all, in an
order that begins elsewhere in each source. All loads of the source are then equal or differ by one,
and the odd records of all sources add up evenly.

A larger share is routed as it comes, and so are the keys of one source that is alone, of `route`,
and with `memory: stream`. `held_records: 0` is the paper's form.
"""

import itertools
from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np
from pydantic import Field

from unskew.grouping.arguments import validate_array
from unskew.grouping.base import Chunk, Int32s
from unskew.grouping.parts.heads import HeadGrouping, HeadParams

NEVER_FULL = 2**62
_HELD = 33.5
"""2.5 * 0.67 / 0.05: the fullest of 100 partitions is 2.5 standard deviations above the mean, one
of a source's load under two choices is 0.67 records, and 0.05 of the mean is allowed."""


class SmallShareParams(HeadParams):
    """The options of a grouping with a head that levels small shares."""

    held_records: Annotated[int, Field(ge=0, le=2**22)] | None = Field(None, examples=[0])
    """With several sources and `memory: batch`: a share of fewer records is routed when it is
    whole, and levelled; 0: none is, as in the paper. Default: 33.5 n / sqrt(sources), below which
    chance takes the fullest partition to more than 1.05 times the mean."""


class SmallShareGrouping(HeadGrouping):
    """A grouping with a head whose small shares are levelled: partitions may be full."""

    params: SmallShareParams

    full = NEVER_FULL
    """The load from which on only the least loaded partition takes a record."""

    @property
    def held_records(self) -> int:
        """A share of fewer records is small."""
        sources, held = self.setting.sources, self.params.held_records
        if sources == 1 or self.params.memory == "stream":
            return 0
        if held is None:
            held = int(_HELD * self.active.size / sources**0.5)
        return held

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        """Hold the share back while it is small; how it is cut changes no route."""
        chunks = iter(chunks)
        held, records = self._hold(chunks)
        if records < self.held_records:
            self.full = (int(self.state["loads"].sum()) + records) // self.active.size
        try:
            for keys, timestamps in itertools.chain(held, chunks):
                yield self.route(keys, timestamps)
        finally:
            self.full = NEVER_FULL

    def _hold(self, chunks: Iterator[Chunk]) -> tuple[list[Chunk], int]:
        """The first chunks, as many as are needed to see that the share is not small."""
        held: list[Chunk] = []
        records = 0
        while records < self.held_records and (chunk := next(chunks, None)) is not None:
            records += validate_array("keys", chunk[0], np.uint64).size
            held.append(chunk)
        return held, records
