"""When sources use a plan, and what of it is in their states.

In its state every source leaves the counts of its largest keys, the pairs that it made, or would
have made, to be exact on its own, and the loads that the plan in force gave it. All sources read
all of them, so all decide alike for the batch to come:

1. being exact cost at most `EXACT_MAX` pairs a key, which is 1.05 but for what chance adds in the
   next batch: every source is exact on its own, no plan;
2. some partition would be fuller than `LARGEST_MAX` times the mean, by chance since records are
   few, or since keys are too few for level homes, and the job allows no more: keys are packed, if
   that stays below it and brings pairs to `PAIRS_MAX` a key; else every source is exact;
3. otherwise a plan. If the last one gave loads above what is allowed, by more than chance, as it
   does when keys change, it is reckoned but not used, until one would have been good: after the
   first time one batch, then three, seven and so on, at most `WAIT_MAX`; each batch in which a plan
   that is used is good takes one off again.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.contents import check_distinct, require
from unskew.grouping.parts.level.agreed_homes import (
    Counted,
    Plan,
    Where,
    add_counts,
    count_exact_extra,
    make_plan,
    pack_homes,
)
from unskew.grouping.parts.level.drift import PARTS, add_parts, changes
from unskew.grouping.parts.level.levelled import PAIRS_MAX, Levelled, Share
from unskew.grouping.parts.level.shared_keys import fill_shared
from unskew.grouping.parts.level.size_sums import find_unit, name_unit, note_sums
from unskew.grouping.snapshot import Arrays

KEYS_MAX = 2**14
"""Keys of a source's share that it leaves counts of, those with most records."""
EXACT_MAX = 1.045
LARGEST_MAX = 1.02
WAIT_MAX = 63
_CHANCE = 1.7
"""About how many standard deviations a plan leaves the fullest of 100 partitions above the mean."""
_SPREAD = 0.1, 8.0
"""How far apart chance leaves all partitions, in the same unit: the first, and the second times
what it does to a source's own partitions, relative to their part. Measured; shared keys even out
more of what is small."""
_SPREAD_CHANCE, _SPREAD_LEAST = 3.0, 0.35
"""How much further apart loads may be until a plan counts as failed: standard deviations of what
chance does to their spread, and no less than the second. By the first alone 3 of 48 good batches
at z = 0.1 counted as failed, with 48 sources and 100 partitions; all were exact in the next."""
_WORTH = 0.95
"""A plan is used if it makes at most this part of the pairs that being exact makes."""
_PACKED_FROM = 1.048
"""Keys are packed where being exact cost more than this a key: `PAIRS_MAX` but for chance."""
_FITTING = 0.9
"""A plan fits if at least this part of the records is from sources whose share it expected."""
_PLAN = Plan._fields
_LISTS = (
    ("counted_keys", "counted_records"),
    ("exact_keys", "exact_partitions", "exact_records"),
    ("home_keys", "home_partitions"),
    ("shared_keys", "shared_records"),
)
GROWING = frozenset(
    [*_PLAN]
    + [f"counted_{name}" for name in ("keys", "records")]
    + [f"exact_{name}" for name in ("keys", "partitions", "records")]
)


def empty_memory(partitions: int) -> dict[str, NDArray[Any]]:
    """The state before any batch: nothing counted, no plan."""
    return {
        "counted_keys": np.empty(0, np.uint64),
        "counted_records": np.empty(0, np.int64),
        "exact_keys": np.empty(0, np.uint64),
        "exact_partitions": np.empty(0, np.int32),
        "exact_records": np.empty(0, np.int64),
        "plan_loads": np.zeros(partitions, np.int64),
        "plan_used": np.zeros(1, np.int64),
        "plan_waits": np.zeros(2, np.int64),
        "part_loads": np.zeros(PARTS * partitions, np.int64),
        "home_keys": np.empty(0, np.uint64),
        "home_partitions": np.empty(0, np.int32),
        "shared_keys": np.empty(0, np.uint64),
        "shared_first": np.zeros(1, np.int64),
        "shared_partitions": np.empty(0, np.int32),
        "shared_records": np.empty(0, np.int64),
        "whole_records": np.empty(0, np.int64),
    }


def check_memory(state: Arrays) -> None:
    """Raise a SnapshotError if lists in a state that belong together do not fit."""
    for first, *others in _LISTS:
        for name in others:
            fits = state[name].size == state[first].size
            require(fits, name, f"as many as {first}, {state[first].size}")
    require(state["whole_records"].size in {0, state["plan_loads"].size}, "whole_records", "all")
    waits = state["plan_waits"]
    require((waits >= 0).all() and (waits <= WAIT_MAX).all(), "plan_waits", f"0 to {WAIT_MAX}")
    starts = state["shared_first"]
    ends = state["shared_keys"].size + 1, state["shared_partitions"].size
    require(starts.size == ends[0] and (np.diff(starts) > 0).all(), "shared_first", "ascending")
    require((starts[0], starts[-1]) == (0, ends[1]), "shared_first", f"from 0 to {ends[1]}")
    check_distinct("shared_keys", state["shared_keys"])
    homes = state["home_keys"]
    require((homes[1:] > homes[:-1]).all(), "home_keys", "ascending keys")


def begin(state: dict[str, NDArray[Any]], agreed: Arrays) -> None:
    """Forget the batch before, take what the sources agreed on; nothing if that is empty."""
    fresh = empty_memory(state["plan_loads"].size)
    state.update(fresh)
    state.update({name: array.copy() for name, array in agreed.items()})


def plan_of(state: Arrays) -> Plan | None:
    """The plan of this batch, if there is one."""
    return Plan(*(state[name] for name in _PLAN)) if state["whole_records"].size else None


def note_counts(state: dict[str, NDArray[Any]], keys: UInt64s, records: Int64s) -> None:
    """Add the counts of a piece to those of the share; the keys with most records stay."""
    if state["counted_keys"].size == 0 and keys.size <= KEYS_MAX:
        state["counted_keys"], state["counted_records"] = keys.copy(), records
        return
    both = np.concatenate([state["counted_keys"], keys])
    distinct, which = np.unique(both, return_inverse=True)
    counts = np.concatenate([state["counted_records"], records])
    sums = np.bincount(which, counts, distinct.size).astype(np.int64)
    kept = np.sort(np.lexsort((distinct, -sums))[:KEYS_MAX])
    state["counted_keys"], state["counted_records"] = distinct[kept], sums[kept]


def note_share(
    state: dict[str, NDArray[Any]], share: Share, numbers: Int32s, exact: Levelled
) -> None:
    """Leave in the state what all sources need for the next batch, of one piece of a share.

    numbers: of each record's key. exact: how the source levels the piece on its own.
    """
    add_parts(numbers, share.homes, state["part_loads"])
    if share.squares is not None:
        note_sums(state, share.records, share.squares)
    keys, owners = share.counts.keys, exact.owners()
    note_counts(state, keys, share.records)
    away = exact.segment_partitions != share.homes[owners]
    note_exact_pairs(
        state, keys[owners[away]], exact.segment_partitions[away], exact.segment_records[away]
    )


def note_exact_pairs(
    state: dict[str, NDArray[Any]], keys: UInt64s, partitions: Int32s, records: Int64s
) -> None:
    """Keep the pairs away from home that being exact takes: keys, partitions, records of each."""
    for name, array in (("keys", keys), ("partitions", partitions), ("records", records)):
        state[f"exact_{name}"] = np.concatenate([state[f"exact_{name}"], array])


def agree(states: Sequence[Arrays], where: Where, slack: float | None) -> dict[str, NDArray[Any]]:
    """The plan for the batch after the one that left these states; none if it is better exact.

    Plans that failed are remembered in either case.
    """
    shares = [state for state in states if state["counted_keys"].size]
    waits = states[0]["plan_waits"]
    if len(shares) < 2:
        return _without_plan(waits)
    counted, unit = add_counts(shares), find_unit(shares)
    largest = LARGEST_MAX if slack is None else max(LARGEST_MAX, 1.0 + slack)
    chance = float(np.sqrt(where.active.size * unit / counted.records.sum()))
    if shares[0]["whole_records"].size:
        waits = next_waits(shares[0], _was_good(shares, where, largest, chance))
    plan = _worthy_plan(shares, counted, where, largest, chance, unit)
    if plan is None:
        return _without_plan(waits)
    used = np.array([waits[1] == 0 and not _changing(shares, where)], np.int64)
    used_now = {"plan_used": used, "plan_waits": waits}
    return {**plan._asdict(), **used_now, **name_unit(shares[0], unit)}


def _without_plan(waits: Int64s) -> dict[str, NDArray[Any]]:
    return {"plan_waits": waits} if waits.any() else {}


def _worthy_plan(
    states: Sequence[Arrays],
    counted: Counted,
    where: Where,
    largest: float,
    chance: float,
    unit: int,
) -> Plan | None:
    """A plan that costs less than being exact and will not be above `largest`."""
    exact, keys = count_exact_extra(states, counted), counted.keys.size
    if exact <= (EXACT_MAX - 1.0) * keys:
        return None
    if unit > 1:
        counted = Counted(counted.keys, -(-counted.records // unit))
    even = largest - _CHANCE * chance
    if even >= 1.0:
        plan = make_plan(counted, states[0], len(states), where)
        if plan.extra <= _WORTH * exact and _expected_largest(plan, where) <= even:
            return plan
    all_known = all(state["counted_keys"].size < KEYS_MAX for state in states)
    if exact <= (_PACKED_FROM - 1.0) * keys or not all_known:
        return None
    packed = pack_homes(counted, len(states), where, largest)
    few = packed is not None and packed.extra <= (PAIRS_MAX - 1.0) * keys
    return packed if few else None


def _expected_largest(plan: Plan, where: Where) -> float:
    """The largest load over the mean if records are just what the plan expects."""
    loads = plan.whole_records.copy()
    fill_shared(plan.shared_records, plan.shared_first, plan.shared_partitions, 0, loads)
    return float(loads.max() * where.active.size / max(int(loads.sum()), 1))


def _was_good(states: Sequence[Arrays], where: Where, largest: float, chance: float) -> bool:
    """Were loads level under the plan that these states had, used or not?"""
    loads = np.sum([state["plan_loads"] for state in states], axis=0)[where.active]
    counted = sum(int(state["counted_records"].sum()) for state in states)
    if loads.sum() < _FITTING * counted:
        return False
    deviations = loads / max(float(loads.mean()), 1.0) - 1.0
    usual = (_SPREAD[0] + _SPREAD[1] * chance * np.sqrt(len(states))) * chance
    by_chance = usual * (1.0 + max(_SPREAD_CHANCE / np.sqrt(2 * loads.size), _SPREAD_LEAST))
    return bool(np.sqrt(np.mean(deviations**2)) <= by_chance or deviations.max() <= largest - 1.0)


def _changing(states: Sequence[Arrays], where: Where) -> bool:
    """Were the parts of the batch unlike each other, by more than chance?"""
    loads = np.sum([state["part_loads"] for state in states], axis=0)
    return changes(loads.reshape(PARTS, -1)[:, where.active])


def next_waits(state: Arrays, good: bool) -> Int64s:
    """Compute for how many batches a failed plan is not used, and how many of them remain."""
    waits, left = (int(value) for value in state["plan_waits"])
    used = bool(state["plan_used"][0])
    if good:
        return np.array([max(waits - used, 0), max(left - 1, 0)], np.int64)
    waits = min(2 * waits + 1, WAIT_MAX) if used else waits
    left = max(waits, 1)
    return np.array([waits, left], np.int64)


def made_up_plan(keys: UInt64s, where: Where) -> dict[str, NDArray[Any]]:
    """The plan for a batch of `keys`, whatever it costs: to compile what makes and follows one."""
    distinct, records = np.unique(keys, return_counts=True)
    counted = Counted(distinct, records.astype(np.int64))
    plan = make_plan(counted, empty_memory(where.mask.size), 2, where)
    # For its kernels: a plan of another batch may be one of packed keys.
    pack_homes(counted, 2, where, LARGEST_MAX)
    return {**plan._asdict(), "plan_used": np.ones(1, np.int64)}
