"""Dynamic Key Grouping: two neighbouring partitions for a key, and more for one that stays hot.

A key's candidates are the partition h of its hash and those next to it, h+1, h+2, ...; a record
goes to the least loaded of them. Keys are counted in three spaces that model the generations of a
garbage collector: a new key is a baby, every 15 s the most frequent babies become teenagers, every
60 s the most frequent teenagers become old. Only an old key may get a further partition: when the
least loaded of its partitions has more than the threshold's share and the next one is less loaded.
A key with more than two partitions gives the last one back when at least two are below the
threshold. The threshold is L_i + sqrt(L_i) percent, with L_i = 100 / n percent the ideal load, so
one key never gets more than floor(100 / (L_i + sqrt(L_i))) + 1 partitions (the paper's table 1).

The guarantee is modest: a hot key's partitions end up near the threshold (13.16 % each for n = 10),
not at the ideal load, and never before the key is old. Costs a table lookup a record, for an old
key also a scan of its candidates. State, whatever the stream: (expected_keys / 2 +
baby_keys_max) counted keys of 16 bytes and two numbers for each of the expected_keys / 2 old and
teenage ones; 0.13 MB with the defaults, and 0.07 MB of hash table beside it.

Departures:

- Time is stream time, the largest record timestamp so far (or a number of records), not a clock: a
  replay routes the same. A cycle runs at the first record at or after its time; cycles missed in a
  gap run once. A timestamp far in the future therefore stops the cycles until time catches up.
- When both cycles are due, babies are promoted first. Alg. 3 does not say how an empty space
  fills; here free slots are filled first. A key that falls back to baby space is back at two.
- Loads are ranked since the batch's start (`memory: batch`), or since the last cycle or change of
  a key's partitions (`stream`), never over the whole life: else a new partition gets all records
  of its key until its lifetime load has caught up, and the balance is worse than before.
- Shares of few records are noise, so the thresholds are looked at only after `sample_records`
  records since the last change, however many batches those take, of which at least 1000 are in the
  loads, and one change is one partition (Alg. 4 takes away several at once). So with
  `memory: batch` no key is widened in batches of fewer than 1000 records, and in small shares less:
  a key of 30 % leaves the fullest of 100 partitions at 2.1 times the mean in batches of 5,000 or
  50,000 records from one source, at 3.6 and 2.1 from 48. After N records the
  distance from ideal load to threshold is 0.1 sqrt(N) standard deviations of a fair partition's
  share, whatever n is: 3.2 for 1000. A key that is near its most partitions needs more: with 1000 a
  key alone gets 29 of its 30 at n = 50, 78 of 83 at n = 200, for its last partitions lie that close
  to the threshold; 100 n records tell them apart. A source that sees a 48th of the stream looks 48
  times as often: it errs more, but the errors of 48 sources cancel out, and waiting would let each
  reach its width 48 times later.
- Baby space is unbounded in the paper. Here it holds `baby_keys_max` keys; a cycle with more of
  them thins them out, and a count may then be too low by 2 / baby_keys_max of all records.
- Key counts are never forgotten in the paper; `decay` below 1 lets new hot keys overtake earlier.
- When a partition is away, keys that start at it are hashed again and those before it skip it:
  two keys in n change one of their two candidates or both, the others none.

| paper | here |
|---|---|
| N_m (machines of the system), m | the active partitions |
| N_m (machines of a key) | `widths` |
| L_i, L_s, T | `threshold_percent` |
| CM, LLmin | `find_best_candidate` and its load |
| OS, TS, BS | old, teenage, baby space of `grouping.parts.key_spaces` |
| Algorithms 1 to 3 | `run_teenage_cycle`, `run_old_cycle`, `_promote`, in the same module |
| chooseBestTask, shouldScaleOut, shouldScaleDown (Alg. 4 to 6) | `grouping.parts.key_widths` |
| Key Item | a slot: `keys`, `counts`, `widths`, `checked` |
| isWarmUp, RT | `warming_up`, stream time since the first record |

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> [machines_max(partitions) for partitions in (5, 10, 20, 50, 100)]
[5, 8, 14, 30, 51]
>>> dynamic_key = create("dynamic_key", partitions=4, records_per_second=1000)
>>> dynamic_key.route(np.array([7, 7, 7, 8, 9], np.uint64)).tolist()
[1, 2, 1, 3, 0]

Reference: O. Dalabasmaz, A. B. Can: Dynamic Key Grouping: A Load Balancing Algorithm for
Distributed Stream Processing Engines.
"""

import math
from typing import ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from unskew.grouping.base import (
    Feedback,
    Grouping,
    GroupingParams,
    Int32s,
    Int64s,
    Setting,
    UInt64s,
)
from unskew.grouping.contents import Bounds
from unskew.grouping.hashing import pick_active, salts
from unskew.grouping.kernels import borrowing_kernel
from unskew.grouping.parts.key_spaces import (
    BABY,
    NEVER,
    OLD,
    TEENAGE,
    TIMES,
    Spaces,
    admit,
    check_spaces,
    choose_table_size,
    compute_bounds,
    empty_spaces,
    find,
    reindex,
    run_old_cycle,
    run_teenage_cycle,
)
from unskew.grouping.parts.key_widths import WIDTH_MIN, choose_best_task, find_best_candidate
from unskew.grouping.snapshot import Arrays

SAMPLE_RECORDS_LEAST = 1_000
SAMPLE_RECORDS_A_PARTITION = 100
_MICROSECONDS = 1_000_000
_NOW, _BEGIN, _TEENAGE_DUE, _OLD_DUE, _TOTAL, _SINCE = range(6)


class DynamicKeyParams(GroupingParams):
    """Options of Dynamic Key Grouping; the defaults are the paper's."""

    expected_keys: int = Field(default=100, ge=10, le=100_000)
    """Distinct keys to keep: 10 % of it in old space, 40 % in teenage space, and 50 % survive in
    baby space."""
    baby_keys_max: int = Field(default=8_000, ge=64, le=10_000_000)
    """Keys that baby space takes between two cuts, at least `expected_keys`; with more in a cycle,
    counts become too low by at most 2 / baby_keys_max of the records."""
    teenage_cycle_seconds: float = Field(default=15.0, gt=0, le=1e9)
    """Stream time between promotions from baby to teenage space."""
    old_cycle_seconds: float = Field(default=60.0, gt=0, le=1e9)
    """Stream time between promotions from teenage to old space."""
    warm_up_seconds: float = Field(default=15.0, ge=0, le=1e9)
    """Stream time after the first record before which no key gets a further partition."""
    check_seconds: float = Field(default=0.0, ge=0, le=1e9)
    """The least stream time between two checks of a key against the thresholds; the authors' code
    has 60, the paper's algorithms 0."""
    sample_records: int | None = Field(default=None, ge=1, le=1_000_000_000, examples=[1_000])
    """Records of all sources since a source's last change before it compares shares with
    thresholds; it counts its own, a fair part of them. Default: 100 a partition, at least 1000."""
    records_per_second: int | None = Field(default=None, ge=1, le=1_000_000_000, examples=[10_000])
    """None: stream time is the records' timestamps. A number: records are counted instead, and so
    many of this source make a second."""
    decay: float = Field(default=1.0, ge=0, le=1)
    """At each old cycle all counts are multiplied by this; 1: never forget, as in the paper."""
    memory: Literal["batch", "stream"] = "batch"
    """Loads are counted since the batch's start, when partitions are idle, or (`stream`, the
    paper's) since the last cycle or change of a key's partitions."""

    @model_validator(mode="after")
    def _babies_have_room(self) -> "DynamicKeyParams":
        if self.baby_keys_max < self.expected_keys:
            raise ValueError(
                f"baby_keys_max: at least expected_keys, {self.expected_keys} "
                f"(got {self.baby_keys_max})"
            )
        return self


def threshold_percent(partitions: int) -> float:
    """The share of the load, in percent, above which a key may get a further partition: L_s."""
    ideal = 100 / partitions
    return ideal + math.sqrt(ideal)


def machines_max(partitions: int) -> int:
    """How many partitions a key with all of the load gets: the last column of table 1."""
    return min(partitions, math.floor(100 / threshold_percent(partitions)) + 1)


class _Rule(NamedTuple):
    """The numbers that steer a kernel; times are stream time."""

    threshold: float
    """L_s, as a part of the load."""
    width_max: int
    teenage_ticks: int
    old_ticks: int
    warm_ticks: int
    check_ticks: int
    sample_records: int
    """Records of this source that are needed since the last change."""
    loaded_records: int
    """Records that the loads of this source must have."""
    stream: bool
    """Do loads begin at zero with a cycle or change, rather than with a batch?"""
    decay: float
    babies_kept: int


class _Ring(NamedTuple):
    """The partitions as a source sees them."""

    mask: NDArray[np.uint8]
    active: Int32s
    nodes: Int32s
    """The active partitions twice: the first follow the last."""
    positions: Int32s
    """By partition: where it is among the nodes."""
    loads: Int64s


class DynamicKey(Grouping):
    """Adjacent candidates, two by default, more for keys that live long and load much."""

    name = "dynamic_key"
    Params = DynamicKeyParams
    params: DynamicKeyParams
    bounds: ClassVar[Bounds] = {"checked": TIMES, "clock": TIMES}

    def __init__(self, setting: Setting, params: DynamicKeyParams) -> None:
        super().__init__(setting, params)
        self._salt = salts(setting.seed, 1)[0]
        self._bounds = compute_bounds(params.expected_keys, params.baby_keys_max)
        self._table = np.empty(choose_table_size(int(self._bounds[-1])), np.int32)
        self.state |= empty_spaces(self._bounds) | {
            "loads": np.zeros(setting.partitions, np.int64),
            "clock": np.array([NEVER, NEVER, NEVER, NEVER, 0, 0], np.int64),
        }
        if not self.wants_timestamps:
            self.state["clock"][_NOW] = 0
        self._update_active()

    @property
    def wants_timestamps(self) -> bool:
        """Only where records are not counted instead."""
        return self.params.records_per_second is None

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        times = np.empty(0, np.int64) if timestamps is None else timestamps
        loads, clock = self.state["loads"], self.state["clock"]
        ring = _Ring(self.state["active"], self.active, self._nodes, self._positions, loads)
        _route_records(keys, times, out, self._rule, self._spaces, ring, clock)

    @property
    def _rule(self) -> _Rule:
        params, n, sources = self.params, self.active.size, self.setting.sources
        return _Rule(
            threshold=threshold_percent(n) / 100,
            width_max=machines_max(n),
            teenage_ticks=self._ticks(params.teenage_cycle_seconds),
            old_ticks=self._ticks(params.old_cycle_seconds),
            warm_ticks=self._ticks(params.warm_up_seconds),
            check_ticks=self._ticks(params.check_seconds) if params.check_seconds else 0,
            sample_records=max(1, self._sample_records // sources),
            loaded_records=max(1, min(self._sample_records, SAMPLE_RECORDS_LEAST) // sources),
            stream=params.memory == "stream",
            decay=params.decay,
            babies_kept=(params.expected_keys + 1) // 2,
        )

    @property
    def _spaces(self) -> Spaces:
        return Spaces(
            keys=self.state["keys"],
            counts=self.state["counts"],
            widths=self.state["widths"],
            checked=self.state["checked"],
            sizes=self.state["sizes"],
            bounds=self._bounds,
            table=self._table,
            salt=self._salt,
        )

    @property
    def _sample_records(self) -> int:
        least = max(SAMPLE_RECORDS_LEAST, SAMPLE_RECORDS_A_PARTITION * self.active.size)
        return self.params.sample_records or least

    def _ticks(self, seconds: float) -> int:
        return max(1, round(seconds * (self.params.records_per_second or _MICROSECONDS)))

    def _begin_batch(self, feedback: Feedback | None) -> None:
        if self.params.memory == "batch":
            self.state["loads"][:] = 0
            self.state["clock"][_TOTAL] = 0

    def _check_state(self, state: Arrays) -> None:
        check_spaces(state, self._bounds)

    def _update_active(self) -> None:
        super()._update_active()
        self._nodes = np.concatenate([self.active, self.active])
        self._positions = np.zeros(self.setting.partitions, np.int32)
        self._positions[self.active] = np.arange(self.active.size)
        reindex(self._spaces)

    def hot_keys(self) -> UInt64s:
        """The keys in old space, the most frequent first."""
        used = self.state["sizes"][OLD]
        order = np.argsort(-self.state["counts"][:used], kind="stable")
        return self.state["keys"][order].copy()

    def signals(self) -> dict[str, float]:
        """Keys in each space, keys with more than two partitions, and the most of any key."""
        old, teenage, baby = self.state["sizes"]
        first = self._bounds[TEENAGE]
        widths = np.append(
            self.state["widths"][:old], self.state["widths"][first : first + teenage]
        )
        return {
            "old_keys": float(old),
            "teenage_keys": float(teenage),
            "baby_keys": float(baby),
            "wide_keys": float((widths > WIDTH_MIN).sum()),
            "width_max": float(widths.max(initial=WIDTH_MIN)),
        }


@borrowing_kernel
def _route_records(
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    rule: _Rule,
    spaces: Spaces,
    ring: _Ring,
    clock: Int64s,
) -> None:
    widths, checked, loads = spaces.widths, spaces.checked, ring.loads
    now, total, since = clock[_NOW], clock[_TOTAL], clock[_SINCE]
    due = min(clock[_TEENAGE_DUE], clock[_OLD_DUE])
    for i in range(keys.size):
        now = max(now, min(times[i], -NEVER)) if times.size else now + 1
        if now >= due:
            due = _run_cycles(now, rule, spaces, clock)
            if rule.stream:
                loads[:] = 0
                total = since = 0
        slot = find(keys[i], spaces)
        if slot < 0:
            slot = admit(keys[i], spaces)
        spaces.counts[slot] += 1
        start = ring.positions[pick_active(keys[i], spaces.salt, ring.mask, ring.active)]
        width = min(widths[slot] if slot < widths.size else WIDTH_MIN, rule.width_max)
        enough = since >= rule.sample_records and total >= rule.loaded_records
        if enough and slot < widths.size and now - checked[slot] >= rule.check_ticks:
            checked[slot] = now
            warming_up = now - clock[_BEGIN] <= rule.warm_ticks
            is_old = slot < spaces.bounds[OLD + 1]
            least = rule.threshold * total
            best, new_width = choose_best_task(
                ring.nodes, start, width, rule.width_max, loads, least, warming_up, is_old
            )
            if new_width != width:
                widths[slot] = new_width
                since = 0
                if rule.stream:
                    loads[:] = 0
                    total = 0
        else:
            best = find_best_candidate(ring.nodes, start, width, loads)
        loads[best] += 1
        total += 1
        since += 1
        out[i] = best
    clock[_NOW], clock[_TOTAL], clock[_SINCE] = now, total, since


@borrowing_kernel
def _run_cycles(now: int, rule: _Rule, spaces: Spaces, clock: Int64s) -> np.int64:
    """Promote, once for all cycles that are due; the time of the next one."""
    if clock[_BEGIN] == NEVER:
        clock[_BEGIN] = now
        clock[_TEENAGE_DUE] = now + rule.teenage_ticks
        clock[_OLD_DUE] = now + rule.old_ticks
        return np.int64(min(clock[_TEENAGE_DUE], clock[_OLD_DUE]))
    if now >= clock[_TEENAGE_DUE]:
        run_teenage_cycle(rule.babies_kept, spaces)
        missed = (now - clock[_TEENAGE_DUE]) // rule.teenage_ticks
        clock[_TEENAGE_DUE] += (missed + 1) * rule.teenage_ticks
    if now >= clock[_OLD_DUE]:
        run_old_cycle(spaces)
        missed = (now - clock[_OLD_DUE]) // rule.old_ticks
        clock[_OLD_DUE] += (missed + 1) * rule.old_ticks
        if rule.decay < 1:
            _fade(spaces, rule.decay ** float(missed + 1))
    reindex(spaces)
    return np.int64(min(clock[_TEENAGE_DUE], clock[_OLD_DUE]))


@borrowing_kernel
def _fade(spaces: Spaces, factor: float) -> None:
    for space in range(BABY + 1):
        first = spaces.bounds[space]
        for slot in range(first, first + spaces.sizes[space]):
            spaces.counts[slot] = np.int64(spaces.counts[slot] * factor)
