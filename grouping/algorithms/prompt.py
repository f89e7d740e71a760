"""Prompt: a micro-batch's keys dealt in order of frequency, and what heavy ones have left, fitted.

A source counts the keys of its whole share, as `level` does, and sorts them by frequency. Each key
is dealt to the partitions in turn, there and back; but of a key with more records than the mean
key, m / K for m records of K keys, only m / K: a *fragment*. So partitions get equal numbers of
keys, and nearly equal numbers of records. Then what is left of the frequent keys, the most frequent
first, goes to the partition of the key's fragment if there is room for it, else where it fits best,
and where it fits nowhere the partition with most room is filled with a part of it.

Guarantees, for each source and batch (n active partitions):
- the numbers of keys dealt to two partitions differ by at most one;
- the largest load is at most ceil(m / n) or, if that is more, ceil(K / n) floor(m / K): so less
  than one mean key above the mean, and exactly ceil(m / n) where n divides K;
- extra (key, partition) pairs: at most one for each key with more records than the mean key, and n
  more. With keys that are alike that is up to half of the keys; `level` has at most n - 1.

What it does not have is homes. A key's partition follows from its rank in the share, which differs
from batch to batch and from source to source: s sources bring a key to up to s partitions, and a
cache that a partition keeps for a key is cold in the next batch. docs/level.md compares the two.

Costs: one look in a hash table a record, a sort of the distinct keys, and the share must be held
while it is counted. Bounds: a piece of `chunk_records` records is held at a time, at most 24 bytes
a record and 160 a distinct key of it; the state is 9 bytes a partition and 24 in all. A share of
several pieces is dealt piece by piece, and so is one that `route` gets in parts.

Departures, and what was to be had of the paper. Its abstract, the abstract of its author's thesis
and a public implementation by others could be read (that of the authors of Dalton, PVLDB 16(3),
who say that they found none), not the listing itself. Here, unlike there:
- counts are exact and sorted when the share is complete; the paper keeps a nearly sorted list while
  records arrive, to have the batch ready at its deadline;
- each source deals its own share, beginning with a partition that differs by source; the paper has
  one receiver, which cuts the batch into blocks for map tasks;
- the keys below the mean are dealt on where the fragments end, in one course there and back; that
  implementation begins again with the first partition, so that numbers of keys may differ by two;
- a rest that fits nowhere is cut; that implementation gives all of it to the emptiest partition;
- equally frequent keys are in the order of a hash, so that no order of records matters;
- the paper's elasticity, how many tasks there are, is the engine's here.

| paper | here |
|---|---|
| data block, P | active partition (slot), n |
| key list, sorted by frequency | `_by_frequency` |
| P_size, the records of a block | `size`, ceil(m / n) |
| P_k, the keys of a block | K / n, kept by `deal` |
| S_cut = P_size / P_k | `cut`, floor(m / K), at most `size` |
| fragments, zigzag | `deal` (grouping.parts.dealing.fragments) |
| residuals, best fit | `fit` (grouping.parts.dealing.fragments) |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> prompt = create("prompt", partitions=3, seed=1)
>>> prompt.route(np.array([7, 7, 7, 7, 8, 9], np.uint64)).tolist()
[0, 0, 1, 2, 1, 2]

Reference: A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref, "Prompt: Dynamic
data-partitioning for distributed micro-batch stream processing systems", SIGMOD 2020.
"""

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unskew.grouping.arguments import validate_array
from unskew.grouping.base import (
    Chunk,
    Feedback,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.contents import require
from unskew.grouping.hashing import mix64_each, salts
from unskew.grouping.parts.dealing.fragments import deal, fit
from unskew.grouping.parts.dealing.pieces import route_pieces
from unskew.grouping.parts.level.levelling import assign
from unskew.grouping.parts.sketches.exact_counts import ExactCounts
from unskew.grouping.snapshot import Arrays

_HIGH = np.uint64(32)


class PromptParams(GroupingParams):
    """The options of Prompt."""

    chunk_records: int = Field(default=2**22, ge=1, le=2**27)
    """Records of a share that are held and dealt at once; bounds the memory."""


class Prompt(Grouping):
    """Keys in order of frequency, fragments of the mean key's size, best fit for the rest."""

    name = "prompt"
    Params = PromptParams
    params: PromptParams

    def __init__(self, setting: Setting, params: PromptParams) -> None:
        super().__init__(setting, params)
        self._order, table = salts(setting.seed, 2)
        self._counts = ExactCounts(table)
        self.state |= {
            "extra_fragments": np.zeros(1, np.int64),
            "cut_keys": np.zeros(1, np.int64),
            "hot_known": np.zeros(1, np.int64),
            "hot_hashes": np.zeros(setting.partitions, np.uint64),
        }

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        """Hold up to `chunk_records`, and deal them as one."""
        columns = ((validate_array("keys", given, np.uint64),) for given, _ in chunks)
        return route_pieces(columns, self.params.chunk_records, self._route_piece)

    def hot_keys(self) -> UInt64s:
        """The keys of the last piece that went to several partitions, most frequent first."""
        known = int(self.state["hot_known"][0])
        keys: UInt64s = self.state["hot_hashes"][:known].copy()
        return keys

    def signals(self) -> dict[str, float]:
        """This batch's keys in several fragments, and the fragments beyond one a key."""
        return {name: float(self.state[name][0]) for name in ("cut_keys", "extra_fragments")}

    def _check_state(self, state: Arrays) -> None:
        super()._check_state(state)
        room = self.setting.partitions
        require(state["hot_known"][0] <= room, "hot_known", f"at most {room}")

    def _begin_batch(self, feedback: Feedback | None) -> None:
        for name in ("extra_fragments", "cut_keys", "hot_known"):
            self.state[name][:] = 0

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        step = self.params.chunk_records
        for start in range(0, keys.size, step):
            self._route_piece(keys[start : start + step], out[start : start + step])

    def _route_piece(self, keys: UInt64s, out: Int32s) -> None:
        self._counts.clear()
        numbers = self._counts.count(keys)
        order = self._by_frequency()
        counts = self._counts.counts.astype(np.int64)[order]
        slots = self._slots()
        size = -(-keys.size // slots.size)
        cut = min(size, keys.size // counts.size)
        firsts, loads = deal(counts, cut, slots.size)
        starts, at, records = fit(counts, cut, size, firsts, loads)
        lengths = np.diff(starts, append=at.size)
        split = np.flatnonzero(lengths > 1)
        codes = np.empty(counts.size, np.int32)
        codes[order] = slots[firsts]
        codes[order[split]] = -1 - np.arange(split.size)
        self._note(order[split], lengths[split])
        assign(numbers, codes, starts[split], slots[at], records, out)

    def _by_frequency(self) -> NDArray[np.intp]:
        """The keys' numbers, most frequent first, equals by a hash (32 bits of it)."""
        hashes = mix64_each(self._counts.keys ^ self._order)
        return np.argsort((~self._counts.counts << _HIGH) | (hashes >> _HIGH), kind="stable")

    def _slots(self) -> Int32s:
        """The active partitions from one on that differs by source."""
        setting = self.setting
        return np.roll(self.active, -(setting.source * self.active.size // setting.sources))

    def _note(self, split: NDArray[np.intp], lengths: Int64s) -> None:
        self.state["cut_keys"] += split.size
        self.state["extra_fragments"] += int((lengths - 1).sum())
        hot = self._counts.keys[split[: self.setting.partitions]]
        self.state["hot_known"][0] = hot.size
        self.state["hot_hashes"][: hot.size] = hot
        self.state["hot_hashes"][hot.size :] = 0
