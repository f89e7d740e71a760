"""Level: every partition gets its fair share of each batch, exactly, for a few split keys.

A micro-batch is finite, and a source can see its whole share of it before it answers. So nothing
has to be estimated: count the share's keys, give each key its home partition by hash, and each
partition a capacity, its fair share. Partitions above capacity give the surplus of their largest
keys to those below, one after the other, as in McNaughton's wrap-around rule: each move
fills a partition, empties a surplus or uses up a key.

The order of the moves is chosen so that sources, who see only their own share, agree on most of
them without talking: small surpluses first, each to the next partition with room from its key's own
hash on; the largest surpluses, whose keys go nearly everywhere anyway, fill up what is left. The
records beyond equal whole shares go to other partitions for each source.

From the second batch on, sources know what all of them counted in the one before, and agree by it
where their own shares would not let them: see *several sources* below.

Guarantees, for each source and batch (m records, n active partitions):
- the largest load is ceil(m / n), and where nothing is above that, nothing moves. So one source's
  is the least that whole records allow, and that of s sources together, each of which rounds up on
  its own, is less than s records above their mean; exactly the mean where n divides every m;
- at most n - 1 (key, partition) pairs more than keys; all keys but the moved ones are at home, but
  where a lone source packs: see *few keys* below;
- the routes are a function of the share alone, and how many records of a key a partition gets is a
  function of the share's counts alone.
With `balance: seconds` the same holds for estimated work in place of records, up to one record: no
partition gets more than its capacity plus the work of one of the records. Work is reckoned in whole
1/4096 of a record's of mean cost, from 1 to 4096^2 of them, and a cost is rounded to that.
With `balance: bytes` it holds for bytes, up to less than one record for each split key that the
partition has a part of, also where sources agree. With `target_file_bytes` besides, keys of no
more than that go whole to homes that are level for them (`grouping.parts.level.whole_keys`), and
only a partition in which those alone are above the mean gets more than it.

Where sources agree, `slack` takes the place of exactness: no source's largest load is above
ceil((1 + slack) m / n).

Costs: one look in a hash table a record, a few passes over the distinct keys, and the share must be
held while it is counted. Bounds: a piece of `chunk_records` records is held at a time, at most
24 bytes a record and 96 a distinct key of it, and the table stays for the next piece. The state is
105 bytes a partition and 24 for each of `cost_keys`; with several sources 16 bytes for each key of
the share, at most 256 KiB, 20 for each pair away from home that being exact makes, and the plan. A
share of several pieces is levelled piece by piece, each filling up what those before it left
uneven; then the bound on pairs holds for each piece, and a cut of the share that is not
`route_chunks`' is a piece too until `begin_batch`.

Few keys. Where n - 1 extra pairs are more than 0.05 a key, a lone source gives homes up if that
brings it to 1.05 (`grouping.parts.level.packing`): loads are as exact, and keys are in as few
partitions as their records allow. If even those are too many, loads of 1 + `slack` times the mean
are tried, 1.02 by default; and if that does not do, homes are kept. A share of several pieces, or
of other work than records, keeps them in any case. Several sources pack by their plan.

Several sources. Where keys are alike, the largest keys of a source's share are a matter of chance,
and each source splits others. So every source leaves the counts of its share in its state, and all
make the same plan of them (`grouping.parts.level.agreed_homes`): homes that are level, and a few
keys that all may split over the same partitions. A source fills partitions with those, and moves
others only above its slack. What is left of its own deviations mostly cancels in the sum over
sources. Where keys are too uneven for that, they are packed. Sources are exact on their own,
without a plan, where that costs at most 1.05 pairs a key; where the batch has too few records or
keys for a plan to stay below 1.02 times the mean, unless `slack` allows more; and where the plan
does not fit. A source whose share departs from it by more than chance is exact, one partition that
does is brought down to its part, and after a plan that gave uneven loads all sources are exact for
a while (`grouping.parts.level.drift`, `.agreement`). docs/level.md has the proofs, and what is
possible without talking within the batch.

Pairs over keys in the first batch, and then in the second with the largest load over the mean; 10^6
records of 10^4 keys, 100 partitions:

| sources | uniform | z = 0.2 | 0.5 | 0.8 | 1.1 | 1.4 | 2.0 |
|---|---|---|---|---|---|---|---|
| 5 | 1.16 | 1.09 | 1.03 | 1.01 | 1.01 | 1.01 | 1.08 |
| 5, then | 1.05, 1.008 | 1.05, 1.009 | 1.03, 1 | 1.01, 1 | 1.01, 1 | 1.01, 1 | 1.08, 1 |
| 48 | 1.85 | 1.72 | 1.18 | 1.03 | 1.01 | 1.01 | 1.08 |
| 48, then | 1.05, 1.018 | 1.05, 1.016 | 1.05, 1.006 | 1.03, 1 | 1.01, 1 | 1.01, 1 | 1.08, 1 |

Departures from McNaughton: homes come first, so nothing moves without need; jobs are keys with
whole records, and may run on several machines at once; the order above for that of the
machines.

| here | there |
|---|---|
| partition, key, cost of its records | machine, job, processing time |
| capacity: the mean | the optimal length: the mean, or the longest job if that is more |
| extra pairs <= n - 1 | at most n - 1 preemptions |

Relatives. Prompt (SIGMOD 2020) counts the keys of a micro-batch, too, and cuts heavy ones, in one
receiver, for equal sizes and equal numbers of keys a block; its keys have no home, so a key's block
changes from batch to batch, and several receivers do not agree. Iceberg's Flink sink
(`MapAssignment`) wraps sorted keys around its writers as McNaughton does, by weights that all
sources reported before, and draws the writer of each record of a cut key at random: loads are equal
on average, not in a batch, and a rerun routes otherwise. Here counts are those of the batch itself,
nothing is drawn, and keys that need not move do not.

| word | meaning | where |
|---|---|---|
| number | of a key: its rank by first record in the share | `exact_counts` |
| entries | by number: key and records | `exact_counts` |
| ticks | by number: a record's work, in 1/4096 of the mean one's; empty: all alike | `level` |
| code | by number: the key's partition, or -1 - j for the j-th giver | `levelling` |
| surplus, room | work of a partition above, below its capacity | `levelling` |
| gift, giver | records that a key gives away, and the key | `give` |
| draw | a hash of the giver and a counter: where to look for room | `_find_room` |
| segment | records of a giver that go to this partition | `move_surplus`, `assign` |
| cursor | of a giver: its segment that is being filled | `move_surplus`, `assign` |
| plan | agreed homes and shared keys of a batch | `agreed_homes` |
| cost, speed | seconds a record of a key; of a partition, relative to the mean | `key_costs` |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> level = create("level", partitions=3, seed=1)
>>> level.route(np.array([7, 7, 7, 7, 8, 9], np.uint64)).tolist()
[1, 2, 0, 0, 1, 2]

Reference: R. McNaughton, Scheduling with deadlines and loss functions, Management Science, 1959;
A. S. Abdelhamid, A. R. Mahmood, A. Daghistani, W. G. Aref, Prompt: Dynamic data-partitioning for
distributed micro-batch stream processing systems, SIGMOD 2020; Apache Iceberg, Flink sink, class
`MapAssignment`.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

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
from unskew.grouping.hashing import salts
from unskew.grouping.parts.dealing.pieces import route_pieces
from unskew.grouping.parts.key_costs import check_costs, empty_costs, learn, ticks_of
from unskew.grouping.parts.level import agreement, size_sums
from unskew.grouping.parts.level.agreed_homes import Where
from unskew.grouping.parts.level.levelled import (
    Levelled,
    Partitions,
    Share,
    count_share,
    level_as_agreed,
    level_exactly,
    level_packed,
)
from unskew.grouping.parts.level.levelling import assign
from unskew.grouping.parts.level.share_pairs import Piece, SharePairs
from unskew.grouping.parts.level.sizes import assign_bytes, count_bytes, read_sizes
from unskew.grouping.parts.level.split_keys import note_split_keys
from unskew.grouping.parts.level.whole_keys import agree_with_target, keep_whole
from unskew.grouping.parts.sketches.exact_counts import ExactCounts
from unskew.grouping.snapshot import Arrays, Snapshot

_NO_TICKS = np.empty(0, np.int64)
_ENDS = {"early_loads", "late_loads"}


class LevelParams(GroupingParams):
    """The options of `level`."""

    chunk_records: int = Field(default=2**22, ge=1, le=2**27)
    """Records of a share that are held and levelled at once; bounds the memory."""
    balance: Literal["records", "seconds", "bytes"] = "records"
    """Balance the number of records, their estimated time (costs of keys are rounded to 1/4096 of
    the mean record's), or their bytes, which are known of the rows of a table: those of the columns
    in its files, before they are encoded and compressed."""
    speeds: Literal["equal", "measured"] = "equal"
    """With `balance: seconds`: are partitions equally fast, or as fast as their reports say?
    Measure only where a partition keeps its machine and slot, or is slow by its own data."""
    cost_keys: int = Field(default=1024, ge=1, le=65_536)
    """With `balance: seconds`: keys whose own cost is remembered; others cost the mean."""
    smoothing: float = Field(default=0.5, gt=0.0, le=1.0)
    """With `balance: seconds`: the weight of the last batch in costs and speeds."""
    target_file_bytes: Annotated[int, Field(ge=1, le=2**50)] | None = Field(
        None, examples=[134_217_728]
    )
    """With `balance: bytes`: a key with at most this many bytes in a batch goes whole to one
    partition, and so into one file; one with more fills several files anyway, and may go to several
    partitions. Several sources judge by the batch before; in the first, each takes its share for an
    equal part of the batch. Default: every key may go to several."""
    slack: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(None, examples=[0.05])
    """How far a source may go above its capacity, as a part of it, where several sources agree on
    homes by the counts of the batch before; 0: they do not, and each is exact on its own. Default:
    2.75 sqrt(n / records of its share), what chance does to a share, and only where all sources
    together then stay below 1.02 times the mean. A lone source goes above its capacity only where
    being exact costs more than 1.05 pairs a key; default: 0.02. With `balance: seconds` each source
    is exact on its own; with `target_file_bytes` only whole keys lift one above its capacity."""

    @model_validator(mode="after")
    def _options_fit_balance(self) -> "LevelParams":
        if self.speeds == "measured" and self.balance != "seconds":
            raise ValueError("speeds: measured ones need balance: seconds")
        if self.target_file_bytes is not None and self.balance != "bytes":
            raise ValueError("target_file_bytes: needs balance: bytes")
        return self


class Level(Grouping):
    """Exact counts, homes by hash, and the surplus of the largest keys moved."""

    name = "level"
    version = 4
    Params = LevelParams
    wants_feedback = True
    growing = agreement.GROWING
    bounds = size_sums.BOUNDS
    checks = (check_costs, agreement.check_memory)

    params: LevelParams

    def __init__(self, setting: Setting, params: LevelParams) -> None:
        super().__init__(setting, params)
        # Whoever runs a grouping gathers reports only for one that wants them: an option decides.
        self.wants_feedback = params.balance == "seconds"  # type: ignore[misc]
        self._home, self._start, self._order, table = salts(setting.seed, 4)
        self._counts = ExactCounts(table)
        self._share_pairs = SharePairs(setting.partitions, params.chunk_records)
        self.state |= {
            "loads": np.zeros(setting.partitions, np.int64),
            "moved_records": np.zeros(1, np.int64),
            "extra_pairs": np.zeros(1, np.int64),
            "split_known": np.zeros(1, np.int64),
            "split_keys": np.zeros(setting.partitions, np.uint64),
            "split_records": np.zeros(setting.partitions, np.int64),
        }
        self.state |= empty_costs(params.cost_keys, setting.partitions)
        self.state |= agreement.empty_memory(setting.partitions)
        if self.wants_sizes:
            self.state |= size_sums.empty_sums()
        self._plans = params.slack != 0 and params.balance != "seconds"
        self._packs = setting.sources == 1 and params.balance == "records"

    def route_chunks(self, chunks: Iterable[Chunk]) -> Iterator[Int32s]:
        """Hold up to `chunk_records`, and route them as one."""
        self._share_pairs.clear()
        columns = self._read_chunks(chunks)
        yield from route_pieces(columns, self.params.chunk_records, self._route_piece)
        self._share_pairs.clear()

    def _read_chunks(self, chunks: Iterable[Chunk]) -> Iterator[tuple[UInt64s, Int64s]]:
        for given, beside in chunks:
            keys = validate_array("keys", given, np.uint64)
            yield keys, self._read_sizes(beside, keys.size)

    def hot_keys(self) -> UInt64s:
        """The keys of this batch that went to several partitions, those with most records first."""
        known = int(self.state["split_known"][0])
        keys: UInt64s = self.state["split_keys"][:known].copy()
        return keys

    def signals(self) -> dict[str, float]:
        """This batch's records away from home, extra pairs and split keys; keys of known cost."""
        kept = {"split_keys": "split_known", "known_costs": "costs_known"}
        names = ("moved_records", "extra_pairs", *kept)
        return {name: float(self.state[kept.get(name, name)][0]) for name in names}

    def _check_state(self, state: Arrays) -> None:
        super()._check_state(state)
        room = self.setting.partitions
        require(state["split_known"][0] <= room, "split_known", f"at most {room}")

    def _begin_batch(self, feedback: Feedback | None) -> None:
        for name in ("loads", "moved_records", "extra_pairs", "split_known"):
            self.state[name][:] = 0
        if feedback is not None and self.params.balance == "seconds":
            measured = self.params.speeds == "measured"
            learn(self.state, feedback, self.params.smoothing, speeds=measured)

    @property
    def wants_agreement(self) -> bool:
        """A lone source has no other to agree with, and costs are balanced by each on its own."""
        return self._plans and self.setting.sources > 1

    def agree(self, states: Sequence[Arrays]) -> dict[str, NDArray[Any]]:
        """The plan of all sources for the next batch; empty where each is exact on its own."""
        where, target = self._where_to_agree(), self.params.target_file_bytes
        if target is not None:
            return agree_with_target(states, where, self.params.slack, target)
        return agreement.agree(states, where, self.params.slack)

    def make_up_agreement(self, keys: UInt64s) -> Arrays:
        """A plan for `keys`, however little it would gain."""
        if self.params.balance == "seconds":
            return {}
        # A lone source packs without a plan, by the same kernels.
        made_up = agreement.made_up_plan(keys, self._where_to_agree())
        return made_up if self._plans else {}

    def _where_to_agree(self) -> Where:
        salts_ = np.array([self._home, self._order, self._start], np.uint64)
        return Where(self.active, self.state["active"], salts_)

    def _take_agreed(self, agreed: Arrays) -> None:
        if self.wants_sizes:
            self.state |= size_sums.empty_sums()
        agreement.begin(self.state, agreed)

    def _upgrade(self, snapshot: Snapshot) -> Snapshot:
        # Version 1 had no memory of what was counted, version 2 none of plans that failed, version
        # 3 compared the ends of a batch, and until 2026-11 there were no plans by bytes.
        if snapshot.grouping != self.name or snapshot.version not in {1, 2, 3, 4}:
            return snapshot
        added = size_sums.empty_sums() if self.wants_sizes else {}
        kept = snapshot.arrays
        if snapshot.version < self.version:
            added |= agreement.empty_memory(self.setting.partitions)
            kept = {name: each for name, each in kept.items() if name not in _ENDS}
        return dataclasses.replace(snapshot, version=self.version, arrays={**added, **kept})

    @property
    def wants_sizes(self) -> bool:
        """Bytes are of no use but to balance them."""
        return self.params.balance == "bytes"

    def _read_sizes(self, beside: Int64s | None, records: int) -> Int64s:
        return read_sizes(beside if self.wants_sizes else None, records)

    def _route(self, keys: UInt64s, beside: Int64s | None, out: Int32s) -> None:
        self._share_pairs.clear()
        sizes = self._read_sizes(beside, keys.size)
        for start in range(0, keys.size, self.params.chunk_records):
            piece = slice(start, start + self.params.chunk_records)
            self._route_piece(keys[piece], sizes[piece], out[piece])
        self._share_pairs.clear()

    # Level one piece of the share:
    #   1  count the records of each key
    #   2  load[p] <- what p got in this batch + the records of the keys whose home it is
    #   3  capacity[p] <- p's fair share of all of it, in whole records
    #   4  if no load is above its capacity: every record goes home
    #   5  for each p above it: its largest keys give records, until load[p] = capacity[p]
    #   6  for each gift, the smallest power of two first:
    #   7      while records of it are left:
    #   8          q <- a partition with room, by the key's hash, else the next one that has any
    #   9          as many of them as q has room for go to q
    #      or pack, where that is the only way to 1.05 pairs a key (`packing`)
    #  10  each record goes to its key's partition; those of a split key fill its parts in order
    def _route_piece(self, keys: UInt64s, sizes: Int64s, out: Int32s) -> None:
        counts = self._counts
        counts.clear()
        numbers = counts.count(keys)
        agrees = self.wants_agreement or bool(self.state["plan_used"][0])
        wanted = agrees and self.wants_sizes
        squares = size_sums.count_squares(counts, numbers, sizes) if wanted else None
        if sizes.size:
            count_bytes(numbers, sizes, len(counts), counts.entries)
        where = self._partitions()
        share = count_share(counts, self._ticks(counts), self.state["loads"], where, squares)
        target, setting = self.params.target_file_bytes, self.setting
        if target is not None:
            share = keep_whole(self.state, share, where, setting, target)
        exact = levelled = level_exactly(share, where, setting.source, setting.sources)
        if agrees:
            levelled = self._levelled_as_agreed(share, where) or exact
            agreement.note_share(self.state, share, numbers, exact)
        elif self._packs and keys.size < self.params.chunk_records:
            # A full piece may have others behind it.
            levelled = level_packed(share, where, exact, self.params.slack) or exact
        note_split_keys(self.state, levelled, share)
        cursors, segments = levelled.cursors, levelled.segment_partitions
        piece = Piece(counts.keys.copy(), levelled.codes, levelled.givers, cursors.copy(), segments)
        self.state["extra_pairs"] += self._share_pairs.add(piece)
        codes, contents = levelled.codes, levelled.segment_records
        if sizes.size:
            loads = self.state["loads"]
            assign_bytes(numbers, sizes, codes, cursors, segments, contents, out, loads)
            self.state["moved_records"] += np.count_nonzero(out != share.homes[numbers])
            return
        away = segments != share.homes[levelled.owners()]
        self.state["loads"][:] = levelled.loads
        self.state["moved_records"] += contents[away].sum()
        assign(numbers, codes, cursors, segments, contents, out)

    def _levelled_as_agreed(self, share: Share, where: Partitions) -> Levelled | None:
        """Level the share by the plan; the loads are noted also while the plan is not in use."""
        plan = agreement.plan_of(self.state)
        if plan is None or not where.mask[plan.shared_partitions].all():
            return None
        if not where.mask[plan.home_partitions].all():
            return None
        source, sources = self.setting.source, self.setting.sources
        unit = size_sums.unit_of(self.state)
        levelled = level_as_agreed(share, plan, where, source, sources, self.params.slack, unit)
        if levelled is not None:
            self.state["plan_loads"] += levelled.loads - share.base
        return levelled if self.state["plan_used"][0] else None

    def _partitions(self) -> Partitions:
        salts_ = np.array([self._home, self._start, self._order], np.uint64)
        return Partitions(self.state["active"], self.active, self.state["speeds"], salts_)

    def _ticks(self, counts: ExactCounts) -> Int64s:
        """Each key's work a record, in ticks; empty where all records are the same."""
        return ticks_of(self.state, counts.keys) if self.state["costs_known"][0] else _NO_TICKS
