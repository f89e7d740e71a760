"""Whole: no key is split, and heavy ones go where the last batch's counts leave room.

A hash sends many heavy keys to one partition by chance, and its share of all other keys to the
partition of the hottest one. So every source counts its share of a batch, and before the next one
begins the counts of all sources are joined: the keys with most records, and by buckets of the hash
the records of the others. From those keys and buckets are assigned again, the heaviest first, each
to the partition with the least load. In a first batch, and where nothing was counted, keys are at
home: a bucket is a part of its partition's share of the hash.

Guarantees:
- a key's records of a batch are in one partition, from all sources together: each begins the batch
  with what all left in the one before (in Spark, in the journal). Without that it is key grouping;
- by the counts of the last batch, the largest load is at most 1 + `slack` times that of longest
  processing time first, which is at most 4/3 - 1/(3n) of the least that whole keys and buckets
  allow; no grouping that keeps keys whole is below max(mean, hottest key);
- a batch that goes on as the last one differs from that by the noise of counts alone: in the
  fullest partition at most some 4 sqrt(2 n / m) of the mean, as two batches differ. With 20,000
  records a partition that is 0.04. A key that becomes hot is dealt with in the next batch;
- no key's count is too low by more than 1 in `counted_keys` of a batch's records.

With `balance: seconds` the same holds for estimated time in place of records, by the costs of keys
that partitions report (`grouping.parts.key_costs`). Partitions count as equally fast: no key is in
two of them, so a slow one and one with costly keys look alike.

A key is in another partition than in the last batch only where that helps: within `slack` it
stays. No partition keeps anything from batch to batch, so moves cost nothing; where an operator has
a cache or a connection a key, `moves_max` bounds them. Then those out of the fullest partitions
come first, and only as many as make the largest load least; a key that is no longer among the
counted goes with its bucket, beyond that bound.

Costs: one look in a hash table a record, a sort of the distinct keys a share, and two paths of a
tournament tree for each counted key and bucket a batch. Bounds: a table of at most 96 bytes a
distinct key of `piece_records` records; the state is 36 bytes for each of `counted_keys`, 12 a
bucket, 24 for each of `cost_keys` and 9 a partition. At a batch's begin one source reads those of
all sources.

Departures: longest processing time first is for one moment and known jobs. Here counts are those of
the batch before, light keys are one job a bucket, and jobs stay where they are within `slack`.

| here | there |
|---|---|
| partition | machine |
| counted key, bucket of the other keys | job |
| work: records times the ticks of each | processing time |
| 1 + `slack` | how much longer than the rule's the whole may take so that keys can stay |

Relatives. `distribution_aware` assigns heavy keys and buckets the same way, once, from the sample
of one source, and the next source otherwise. Engines that keep a key's state where its records go
must move that state, and so move little; here the merge has the state, and any key may move.

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> whole, keys = create("whole", partitions=2), np.repeat(np.arange(6, dtype=np.uint64), 100)
>>> np.bincount(whole.route(keys), minlength=2).tolist()
[200, 400]
>>> whole.begin_batch(agreed=whole.agree([whole.state]))
>>> np.bincount(whole.route(keys), minlength=2).tolist()
[300, 300]

Reference: R. L. Graham, "Bounds on multiprocessing timing anomalies", SIAM Journal on Applied
Mathematics 17(2), 1969.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unskew.grouping.arguments import validate_array
from unskew.grouping.base import (
    Chunk,
    Feedback,
    Float64s,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.contents import check_distinct, require
from unskew.grouping.hashing import pick_active_each, pick_each, salts
from unskew.grouping.parts.key_costs import (
    TICKS_A_MEAN_RECORD,
    check_costs,
    empty_costs,
    learn,
    ticks_of,
)
from unskew.grouping.parts.longest_first import assign
from unskew.grouping.parts.sketches import largest_counts
from unskew.grouping.parts.sketches.exact_counts import ExactCounts
from unskew.grouping.snapshot import Arrays

COUNTED_KEYS_A_PARTITION = 32
BUCKETS_A_PARTITION = 32
DEFAULT_MOST = 16_384
SURE = 4
"""A key is assigned by its count if this many times the count's error is not above the count."""


class WholeParams(GroupingParams):
    """The options of `whole`."""

    counted_keys: int | None = Field(default=None, ge=1, le=2**20, examples=[4096])
    """Keys that are assigned by their own counts; the others go with their bucket. Default: 32 a
    partition, at most 16384."""
    slack: float = Field(default=0.01, ge=0.0, le=1.0)
    """How much larger than it need be the largest load may be so that a key stays where it was."""
    moves_max: int | None = Field(default=None, ge=0, le=2**20, examples=[16])
    """Counted keys, and buckets of others, that may change their partition in one batch. Default:
    any number."""
    piece_records: int = Field(default=2**20, ge=1, le=2**27)
    """Records of a share that are counted at once; bounds the memory."""
    balance: Literal["records", "seconds"] = "records"
    """Balance the number of records, or their estimated time (costs of keys are rounded to 1/4096
    of the mean record's)."""
    cost_keys: int = Field(default=1024, ge=1, le=65_536)
    """With `balance: seconds`: keys whose own cost is remembered; others cost the mean."""
    smoothing: float = Field(default=0.5, gt=0.0, le=1.0)
    """With `balance: seconds`: the weight of the last batch in costs."""


class Whole(Grouping):
    """Whole keys: heavy ones, and buckets of others, assigned by the counts of the last batch."""

    name = "whole"
    Params = WholeParams
    splits = False
    wants_feedback = True

    params: WholeParams
    checks = (check_costs, largest_counts.check)

    def __init__(self, setting: Setting, params: WholeParams) -> None:
        super().__init__(setting, params)
        # Whoever runs a grouping gathers reports only for one that wants them: an option decides.
        self.wants_feedback = params.balance == "seconds"  # type: ignore[misc]
        n = setting.partitions
        self._room = params.counted_keys or min(COUNTED_KEYS_A_PARTITION * n, DEFAULT_MOST)
        self._buckets = n * max(1, min(BUCKETS_A_PARTITION, DEFAULT_MOST // n))
        self._hash, table = salts(setting.seed, 2)
        self._counts = ExactCounts(table)
        self._partitions = np.empty(0, np.int32)
        self._assigned = ExactCounts(table)
        self.state |= empty_costs(params.cost_keys, n)
        self._take_agreed({})

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        """Answer each chunk at once; how the share is cut into them changes no count."""
        room = self.params.piece_records
        self._counts.clear()
        for given, _ in chunks:
            keys = validate_array("keys", given, np.uint64)
            out = np.empty(keys.size, np.int32)
            done = 0
            while done < keys.size:
                stop = min(done + room, keys.size)
                self._route_counted(keys[done:stop], out[done:stop])
                room -= stop - done
                done = stop
                if room == 0:
                    self._end_piece()
                    room = self.params.piece_records
            yield out
        self._end_piece()

    def hot_keys(self) -> UInt64s:
        """The keys that do not go with their bucket, those with most work first."""
        known = min(int(self.state["assigned_known"][0]), self.setting.partitions)
        keys: UInt64s = self.state["assigned_keys"][:known].copy()
        return keys

    def signals(self) -> dict[str, float]:
        """What moved before this batch, keys apart from their bucket, balance expected, costs."""
        names = ("moves", "assigned_known", "expected_max_over_mean", "costs_known")
        shown = ("moves", "assigned_keys", "expected_max_over_mean", "known_costs")
        values = [float(self.state[name][0]) for name in names]
        return dict(zip(shown, values, strict=True))

    @property
    def wants_agreement(self) -> bool:
        """Always: a key would be split if a source knew more of it than another."""
        return True

    def agree(self, states: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """The counts of all sources, with the assignment and the costs that all had."""
        agreed = {name: states[0][name] for name in self.state if name != "active"}
        parts = [largest_counts.read(state) for state in states]
        counts = largest_counts.joined(parts, self._room, self._ticks_of)
        agreed |= largest_counts.arrays(self._room)
        largest_counts.write(agreed, counts)
        agreed["bucket_records"] = np.sum([state["bucket_records"] for state in states], axis=0)
        return agreed

    def make_up_agreement(self, keys: UInt64s) -> Arrays:
        """Make up an agreement of this source alone."""
        return self.agree([self.state])

    def _take_agreed(self, agreed: Arrays) -> None:
        self.state |= {name: array.copy() for name, array in (agreed or self._unknown()).items()}
        self._update_active()

    def _unknown(self) -> dict[str, NDArray[Any]]:
        """Make an agreement in which nothing is counted and every key is at home."""
        n = self.setting.partitions
        return largest_counts.arrays(self._room) | {
            "bucket_records": np.zeros(self._buckets, np.int64),
            "bucket_partitions": np.repeat(np.arange(n, dtype=np.int32), self._buckets // n),
            "assigned_keys": np.zeros(self._room, np.uint64),
            "assigned_partitions": np.zeros(self._room, np.int32),
            "assigned_known": np.zeros(1, np.int64),
            "moves": np.zeros(1, np.int64),
            "expected_max_over_mean": np.ones(1, np.float64),
        }

    def _check_state(self, state: Arrays) -> None:
        super()._check_state(state)
        known = int(state["assigned_known"][0])
        require(known <= self._room, "assigned_known", f"at most {self._room}")
        check_distinct("assigned_keys", state["assigned_keys"][:known])

    def _begin_batch(self, feedback: Feedback | None) -> None:
        if feedback is not None and self.params.balance == "seconds":
            learn(self.state, feedback, self.params.smoothing, speeds=False)
        counts = largest_counts.read(self.state)
        if counts.keys.size:
            sure = counts.errors * SURE <= counts.records
            self._assign(counts.keys[sure], counts.records[sure])
            largest_counts.write(self.state, largest_counts.NOTHING)
            self.state["bucket_records"][:] = 0

    def _update_active(self) -> None:
        super()._update_active()
        # What is looked up follows from the state: it is rebuilt when that changes.
        known = int(self.state["assigned_known"][0])
        self._assigned.clear()
        self._assigned.count(self.state["assigned_keys"][:known])
        self._bucket_to = self.state["bucket_partitions"].copy()
        left = np.flatnonzero(self.state["active"][self._bucket_to] == 0)
        drawn = np.empty(left.size, np.int32)
        pick_active_each(
            left.astype(np.uint64), self._hash, self.state["active"], self.active, drawn
        )
        self._bucket_to[left] = drawn

    def _assign(self, keys: UInt64s, records: Int64s) -> None:
        """Assign these keys, and the buckets of all others, to the active partitions."""
        buckets = self._bucket_of(keys)
        others = self.state["bucket_records"].copy()
        np.subtract.at(others, buckets, records)
        work = np.append(records * self._ticks_of(keys), others * TICKS_A_MEAN_RECORD)
        partitions = np.append(self._partitions_of(keys), self._bucket_to)
        jobs = np.argsort(-work, kind="stable")
        jobs = jobs[work[jobs] > 0]
        partitions[jobs] = self._assigned_jobs(work[jobs].astype(np.float64), partitions[jobs])
        self.state["bucket_partitions"][:] = partitions[keys.size :]
        jobs = jobs[jobs < keys.size]
        apart = jobs[partitions[jobs] != self.state["bucket_partitions"][buckets[jobs]]]
        self.state["assigned_known"][0] = apart.size
        for name, values in (("keys", keys), ("partitions", partitions)):
            self.state[f"assigned_{name}"][: apart.size] = values[apart]
            self.state[f"assigned_{name}"][apart.size :] = 0
        self._update_active()

    def _assigned_jobs(self, work: Float64s, before: Int32s) -> Int32s:
        limit = self.params.moves_max
        moves_max = work.size if limit is None else limit
        to = assign(work, before, self.state["active"], self.params.slack, moves_max)
        self.state["moves"][0] = np.count_nonzero(to != before)
        loads = np.bincount(to, work)
        self.state["expected_max_over_mean"][0] = loads.max() * self.active.size / loads.sum()
        return to

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        (out[:],) = self.route_chunks([(keys, None)])

    def _route_counted(self, keys: UInt64s, out: Int32s) -> None:
        """Count the keys; look up a partition for those that are new, and send all there."""
        known = len(self._counts)
        numbers = self._counts.count(keys)
        if len(self._counts) > self._partitions.size:
            self._partitions.resize(self._counts.entries.shape[0], refcheck=False)
        if len(self._counts) > known:
            new = self._counts.keys[known:].copy()
            self._partitions[known : len(self._counts)] = self._partitions_of(new)
        np.take(self._partitions, numbers, out=out)

    def _partitions_of(self, keys: UInt64s) -> Int32s:
        """Find the partition of each key: the one that it is assigned to, if that is active."""
        partitions = self._bucket_to[self._bucket_of(keys)]
        numbers = self._assigned.find(keys)
        assigned = np.flatnonzero(numbers >= 0)
        to = self.state["assigned_partitions"][numbers[assigned]]
        stays = self.state["active"][to] != 0
        partitions[assigned[stays]] = to[stays]
        return partitions

    def _bucket_of(self, keys: UInt64s) -> Int32s:
        buckets = np.empty(keys.size, np.int32)
        pick_each(keys, self._hash, self._buckets, buckets)
        return buckets

    def _end_piece(self) -> None:
        """Add what was counted to the state's counts."""
        if not len(self._counts):
            return
        keys = self._counts.keys.copy()
        records = self._counts.counts.astype(np.int64)
        np.add.at(self.state["bucket_records"], self._bucket_of(keys), records)
        parts = [largest_counts.read(self.state), largest_counts.of_piece(keys, records)]
        joined = largest_counts.joined(parts, self._room, self._ticks_of)
        largest_counts.write(self.state, joined)
        self._counts.clear()

    def _ticks_of(self, keys: UInt64s) -> Int64s:
        return ticks_of(self.state, keys)
