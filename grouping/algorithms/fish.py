"""FISH: recent hot keys by decaying counts, as many candidates as they are hot, least waiting time.

Each record's key is counted in epochs whose counts fade (`grouping.parts.sketches.decaying`). A key
with more than theta of the recent records is hot and gets d candidates: all for the hottest, half
as many for one half as frequent, and so on by powers of two, never fewer than d_min and never fewer
than it had since it got its counter. All other keys have two. Candidates are the next distinct
partitions on a consistent-hash ring (`grouping.parts.fish.ring`), so a partition that comes or goes
moves only its arcs. Of its candidates a record takes the one with the shortest estimated waiting
time: unserved records times the time of a record there, as the partition reported it.

Guarantees: a key outside the counters goes to two partitions at most; a key's candidates are a
prefix of one fixed order. A new hot key has its candidates within the epoch. Costs: a hash lookup,
then d comparisons for a hot key with fewer candidates than all, O(log n) where all are candidates.
State: 76 bytes a counter at most, 17 bytes a partition and under 100 more, whatever the keys. Built
again and not saved: 28 bytes a virtual node, and the lists of hot keys' candidates in 128 bytes a
partition and 32 a counter.

Departures, and why:

- f_k's denominator is not given: it is the total of all records, decayed like the counts.
- Line 3 of algorithm 2 is garbled: it is read as index = floor(log2(f_top / f_k)), d = n >> index.
- A key with fewer than `records_min` = 2 (decayed) records is not hot. Early in an epoch, and for
  n above some hundreds always, one record alone is more than theta of what is counted: without
  this most of the tail turns hot once and keeps its candidates (measured: pairs 2.9x instead of
  2.1x of the keys, 128 partitions, z = 1; the paper has 2.61x at most). 0 is the paper's text.
- d_min has no formula ("related to the sum of the frequency of all hot keys"): at each epoch's end
  it is ceil(n * hot mass / hot keys), at least 2, or what `candidates_min` says.
- M_k is forgotten when the key leaves the counters; the paper would remember every key for ever.
- Algorithm 3 taken literally adds N_w to C_w twice. Meant is equation (1): C_w grows by one a
  record and loses T / P_w an interval. Several intervals without a record count as that many.
- A partition also serves the other sources, of which this one knows nothing: T / (P_w * sources).
- T runs in stream time: by the records' own times (the latest so far; an earlier one changes
  nothing), or by records, so that a replay routes the same. By records it is the time in which all
  partitions together serve as many records, and so it is by time until there is a report.
- With `memory: batch` backlogs are zero at a batch's start and nothing is served until its end, as
  a batch's partitions start when it is routed.
- P_w is the last report's busy time per record; a partition without one has the mean of the others.
- A partition that joins starts with the shortest waiting time of the others.
- What the paper compares with is an option: another `rule` in CHK's stead (with that of `d_choices`
  d is 2 until the first epoch ends, and M_k is not used), `placement: modulo`, and `assignment:
  records`, the least load by records sent.
- Equal waiting times: the first in the order of the ring, and among all partitions the first from
  a partition that differs by source, so that sources do not all begin with the same.

| paper | here |
|---|---|
| N_epoch, alpha, K_max, theta | `epoch_records`, `alpha`, `counters`, `threshold` |
| Algorithm 1 | `count`, `decaying.counted`, and at an epoch's end `decaying.decay` |
| c_k, f_k, f_top | `counter_counts`, over `epoch[TOTAL]`, `epoch[TOP]` over it |
| CHK (Alg. 2): line 1; index, d, M_k | `is_hot`; `chk` (`grouping.parts.fish.candidates`) |
| HASH(k) mod n (section 5) | `grouping.parts.fish.modulo` |
| d_min, M_k | `candidates_min`, `candidates` |
| W_num | number of active partitions |
| Algorithm 3: lines 2 to 10 | `clock_turned` (`grouping.parts.fish.backlogs`) |
| lines 12 to 17 | `find_least`; of two candidates `least_of_two`, of all `least_of_all` |
| A | a prefix of the ring's `walk`, kept in `lists` |
| N_w | within `backlog`, which counts every record at once |
| C_w, P_w, T_w | `backlog`, `cost`, their product |
| T, t_pri | `interval_seconds` or `interval_records`, `clock` |

>>> from unskew.grouping.base import Setting
>>> fish = Fish(Setting(partitions=4, seed=1), FishParams())
>>> fish.route(np.full(8, 7, np.uint64)).tolist(), fish.hot_keys().tolist()
([2, 0, 1, 3, 0, 1, 2, 3], [7])

The choice among the candidates is in `grouping.parts.fish.candidates`; what all this gains, and
over what, is measured in `docs/fish-findings.md`.

Reference: Y. Huang, "Efficient Time-Evolving Stream Processing at Scale" (paper 000).
"""

from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unskew.grouping.base import (
    Feedback,
    Float64s,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.contents import ANY_TIME, COUNT_MAX, Bounds
from unskew.grouping.hashing import salts
from unskew.grouping.kernels import borrowing_kernel
from unskew.grouping.parts.choices import EPSILON, solve_choices
from unskew.grouping.parts.fish import ring
from unskew.grouping.parts.fish.backlogs import Load, clock_turned
from unskew.grouping.parts.fish.candidates import (
    Everyone,
    Lists,
    Rule,
    chk,
    find_least,
    is_hot,
    least_candidates,
    least_of_all,
    least_of_two,
    look_up,
    make_lists,
    new_everyone,
    set_up,
)
from unskew.grouping.parts.fish.ring import Ring
from unskew.grouping.parts.sketches import decaying
from unskew.grouping.parts.sketches.decaying import RECORDS, TOP, TOTAL
from unskew.grouping.parts.sketches.space_saving import Counters, count

_MICROSECONDS = 1e6
_NO_TIMES = np.empty(0, np.int64)


class FishParams(GroupingParams):
    """Options of FISH; the defaults are the paper's."""

    epoch_records: int = Field(1000, ge=1, le=1_000_000_000)
    """N_epoch: records of this source in an epoch."""
    alpha: float = Field(0.2, ge=0, le=1)
    """How much counts weigh after each epoch; 1 never forgets, 0 forgets all."""
    counters: int = Field(1000, ge=1, le=1_000_000)
    """K_max: how many keys are counted."""
    threshold: float | None = Field(None, gt=0, lt=1, examples=[0.001])
    """theta: a key above this share of the recent records is hot; without it 1/(4n)."""
    records_min: float = Field(2.0, ge=0, le=1_000_000)
    """A key seen less often (recent records, decayed) is not hot, whatever its share."""
    candidates_min: int | None = Field(None, ge=2, le=10_000, examples=[4])
    """d_min: least candidates when hot; without it ceil(n * hot share / hot keys), at least 2."""
    memory: Literal["batch", "stream"] = "batch"
    """Backlogs are zero at each batch's start, or go on (the paper's, for an endless stream)."""
    interval_seconds: float = Field(10.0, ge=0.001, le=1e9)
    """T, by the records' times: how often backlogs are reduced by what was served (`stream`)."""
    interval_records: int | None = Field(None, ge=1, le=10**12, examples=[10_000])
    """T in records of this source instead: backlogs are reduced as if all of them were served."""
    virtual_nodes: int = Field(64, ge=1, le=1000)
    """Positions of each partition on the ring."""
    rule: Literal["chk", "d_choices", "w_choices"] = "chk"
    """How many candidates a hot key has: by its own frequency (the paper's); as many for all as
    the inequality of `d_choices` gives at an epoch's end; or all partitions, as in `w_choices`."""
    placement: Literal["ring", "modulo"] = "ring"
    """Candidates by the consistent-hash ring, or by hashes modulo the number of partitions."""
    assignment: Literal["waiting_time", "records"] = "waiting_time"
    """Of its candidates a record takes the one with the shortest estimated waiting time, or the one
    that this source has sent the fewest records, as before FISH."""

    @model_validator(mode="after")
    def _check_together(self) -> "FishParams":
        if self.rule != "chk" and self.candidates_min is not None:
            raise ValueError(f"candidates_min: only with rule chk (got rule {self.rule})")
        if self.assignment == "records" and self.interval_records is not None:
            raise ValueError("interval_records: only with assignment waiting_time (got records)")
        return self


class _Sketch(NamedTuple):
    """The keys as this source has counted them: algorithm 1."""

    counters: Counters
    epoch: Float64s
    candidates: Int32s
    """M_k, by counter."""
    candidates_min: Int64s
    """d_min."""


class Fish(Grouping):
    """Epoch-based recent hot keys, CHK, heuristic assignment, consistent-hash ring."""

    name = "fish"
    Params = FishParams
    wants_feedback = True
    params: FishParams
    bounds: ClassVar[Bounds] = {"candidates_min": (2, COUNT_MAX), "clock": ANY_TIME}
    checks = (decaying.check,)
    _rule: Rule

    def __init__(self, setting: Setting, params: FishParams) -> None:
        super().__init__(setting, params)
        # Whoever runs a grouping gathers reports only for one that wants them: an option decides.
        self.wants_feedback = params.assignment == "waiting_time"  # type: ignore[misc]
        n = setting.partitions
        self.state |= decaying.arrays(params.counters)
        self.state |= {
            "candidates": np.zeros(params.counters, np.int32),
            "candidates_min": np.full(1, params.candidates_min or 2, np.int64),
            "backlog": np.zeros(n, np.float64),
            "cost": np.zeros(n, np.float64),
            "clock": np.zeros(3, np.int64),
        }
        self._salts = salts(setting.seed, 2)
        self._nodes = ring.packed_nodes(self._salts[1], n, params.virtual_nodes)
        self._update_active()

    @property
    def wants_timestamps(self) -> bool:
        """Only for waiting times with `memory: stream` and without `interval_records`."""
        params = self.params
        serves = params.memory == "stream" and params.assignment == "waiting_time"
        return serves and params.interval_records is None

    def set_active(self, partitions: Sequence[int]) -> None:
        """Route only to these partitions from now on; new ones start at the shortest wait.

        Backlogs count all records since the interval began. A new one of 0 would take every record
        that may go there until it has caught up with work that the others have long done.
        """
        before = self.state["active"].copy()
        super().set_active(partitions)
        now = self.state["active"]
        stayed, came = (before != 0) & (now != 0), (before == 0) & (now != 0)
        if stayed.any():
            backlog = self.state["backlog"]
            backlog[came] = (backlog * self._cost)[stayed].min() / self._cost[came]

    def hot_keys(self) -> UInt64s:
        """The keys above the threshold now, hottest first."""
        hot = self._hot_counters()
        keys, counts = self.state["counter_keys"][hot], self.state["counter_counts"][hot]
        order: UInt64s = keys[np.lexsort((keys, -counts))]
        return order

    def signals(self) -> dict[str, float]:
        """Figures of the counters, the candidates and the backlogs."""
        hot = self._hot_counters()
        total = self.state["epoch"][TOTAL]
        waiting = (self.state["backlog"] * self._cost)[self.active]
        return {
            "hot_keys": float(hot.size),
            "hot_share": float(self.state["counter_counts"][hot].sum() / total) if total else 0.0,
            "counted_keys": float(self.state["counter_used"][0]),
            "candidates_min": float(self.state["candidates_min"][0]),
            "waiting_max": float(waiting.max()),
            "waiting_mean": float(waiting.mean()),
        }

    def _hot_counters(self) -> NDArray[np.intp]:
        counts, errors = self.state["counter_counts"], self.state["counter_errors"]
        frequent = counts > self._rule.threshold * self.state["epoch"][TOTAL]
        return np.flatnonzero(frequent & (counts - errors >= self._rule.records_min))

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        times = _NO_TIMES if timestamps is None else timestamps
        if self.params.rule != "d_choices":
            self._route_part(keys, times, out)
            return
        start, length = 0, self.params.epoch_records
        while start < keys.size:
            counted = int(self.state["epoch"][RECORDS])
            if counted >= length:
                self._solve_choices()
                counted = 0
            part = slice(start, start + length - counted)
            self._route_part(keys[part], times[part], out[part])
            start = part.stop

    def _solve_choices(self) -> None:
        """The candidates of every hot key in the next epoch, by the shares of this one."""
        counts = self.state["counter_counts"][self._hot_counters()]
        shares = np.sort(counts)[::-1] / self.state["epoch"][TOTAL]
        self._set_candidates(max(2, solve_choices(shares, self.active.size, EPSILON)))

    def _set_candidates(self, candidates: int) -> None:
        self.state["candidates_min"][0] = candidates
        self._rule = self._rule._replace(candidates_min=candidates)

    def _route_part(self, keys: UInt64s, times: Int64s, out: Int32s) -> None:
        state = self.state
        sketch = _Sketch(
            decaying.view(state), state["epoch"], state["candidates"], state["candidates_min"]
        )
        backlog, cost = state["backlog"], self._cost
        load = Load(backlog, cost, backlog * cost, self._served, state["clock"])
        _route_all(keys, times, out, self._rule, sketch, load, self._ring, self._lists, self._all)

    def _begin_batch(self, feedback: Feedback | None) -> None:
        if feedback is not None and self.wants_feedback:
            known = (feedback.records > 0) & (feedback.busy_seconds > 0)
            self.state["cost"][known] = (feedback.busy_seconds / np.maximum(feedback.records, 1))[
                known
            ]
        if self.params.memory == "batch":
            self.state["backlog"][:] = 0
        self._costs_changed()

    def _update_active(self) -> None:
        super()._update_active()
        self.state["backlog"][self.state["active"] == 0] = 0
        n, active, counters = self.setting.partitions, self.active.size, self.params.counters
        self._ring = ring.make_ring(self._nodes, self.state["active"])
        self._lists = make_lists(n, counters, self.active)
        first = self.setting.source * active // self.setting.sources
        self._all = new_everyone(np.roll(self.active, -first))
        self._costs_changed()
        if self.params.rule == "w_choices":
            self._set_candidates(max(2, active))

    def _costs_changed(self) -> None:
        """`state["cost"]` or the active partitions are new: bring what follows up to date."""
        params, cost = self.params, self.state["cost"]
        known = cost > 0
        self._cost = np.where(known, cost, cost[known].mean() if known.any() else 1.0)
        speed = np.where(self.state["active"] != 0, 1 / self._cost, 0.0)
        # What each partition serves: its part of each record that the clock counts, or, where it
        # runs by time and times per record are known, this source's records in an interval.
        self._served = speed / speed.sum()
        interval, measured = 0.0, False
        if params.memory == "stream" and params.interval_records is not None:
            interval = float(params.interval_records)
        elif self.wants_timestamps:
            interval = params.interval_seconds * _MICROSECONDS
            measured = bool(known.any())
        if measured:
            self._served = speed * params.interval_seconds / self.setting.sources
        self._rule = Rule(
            self._salts[0],
            params.epoch_records,
            params.alpha,
            params.threshold or 1 / (4 * self.active.size),
            params.records_min,
            self._candidates_given(),
            interval,
            measured,
            params.rule == "chk",
            params.placement == "modulo",
        )

    def _candidates_given(self) -> int:
        """Least candidates of a hot key if they do not follow from an epoch's counts, or 0."""
        if self.params.rule != "chk":
            return int(self.state["candidates_min"][0])
        return self.params.candidates_min or 0


@borrowing_kernel
def _route_all(
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    rule: Rule,
    sketch: _Sketch,
    load: Load,
    nodes: Ring,
    lists: Lists,
    everyone: Everyone,
) -> None:
    counters, epoch = sketch.counters, sketch.epoch
    n = np.int64(everyone.partitions.size)
    tree_is_current = False
    for i in range(keys.size):
        if rule.interval > 0 and clock_turned(times, i, rule, load):
            tree_is_current = False
        if epoch[RECORDS] >= rule.epoch_records:
            sketch.candidates_min[0] = least_candidates(counters, epoch, rule, n)
            decaying.decay(counters, epoch, rule.alpha)
        slot, is_new = count(counters, keys[i])
        if is_new:
            sketch.candidates[slot] = 0
            lists.lengths[slot] = 0
        recent = counters.counts[slot]
        decaying.counted(epoch, recent)
        hot = is_hot(recent, counters.errors[slot], epoch, rule)
        least = sketch.candidates_min[0]
        wanted = np.int64(least) if hot else np.int64(2)
        if rule.by_frequency:
            wanted = chk(hot, epoch[TOP], recent, least, sketch.candidates, slot, n)
        if wanted >= n:
            if not tree_is_current:
                set_up(everyone, load.waiting)
                tree_is_current = True
            chosen = least_of_all(everyone, load.waiting)
        elif wanted == 2:
            chosen = least_of_two(rule, nodes, lists.active, keys[i], load.waiting)
        else:
            if lists.lengths[slot] < wanted:
                look_up(lists, slot, wanted, rule, nodes, keys[i])
            chosen = find_least(lists.pool, lists.starts[slot], wanted, load.waiting)
        load.backlog[chosen] += 1.0
        load.waiting[chosen] = load.backlog[chosen] * load.cost[chosen]
        out[i] = chosen
