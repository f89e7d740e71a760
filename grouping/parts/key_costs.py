"""Seconds a record by key, and speeds of partitions, learnt from the reports of batches.

A report row has the records of a key in a partition, and the seconds they took. A key's cost and a
partition's speed explain it together, seconds = records x cost / speed, so they are fitted in turn,
a few rounds a batch: costs with the speeds given, then speeds with the costs given. What a
partition did beside its rows counts with one common cost, that of all records without a row.

Guarantees: costs and speeds are positive and finite whatever the reports; a speed is within
1/16 to 16 times the mean speed. Costs: a sort of the rows a batch. Bound: 24 bytes for each of
`room` keys (those with the most seconds stay) and 8 bytes a partition.

Departures from POSG (W/F of a Count-Min pair) and FISH (P_w): exact rows of the heaviest keys
instead of a sketch of all, and a partition is slow only beyond what its mix of keys explains.

Smoothing: new = old + smoothing x (measured - old), for keys and partitions that were measured;
the seconds by which keys are ranked fade by the same factor in batches without the key.

Reference: N. Rivetti et al., Proactive Online Scheduling for Shuffle Grouping in Distributed
Stream Processing Systems, Middleware 2016.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Feedback, Float64s, Int64s, UInt64s
from unskew.grouping.contents import require
from unskew.grouping.snapshot import Arrays

SPEED_RATIO_MAX = 16.0
TICKS_A_MEAN_RECORD = 4096
TICKS_MAX = 2**24
_ROUNDS = 4


@dataclass(frozen=True)
class Rows:
    """A batch's rows by distinct key: `key_of` and `partition_of` say whose each row is."""

    keys: UInt64s
    key_of: Int64s
    partition_of: Int64s
    records: Float64s
    seconds: Float64s


def empty_costs(room: int, partitions: int) -> dict[str, NDArray[Any]]:
    """The state before any report: no key known, all partitions equally fast."""
    return {
        "cost_keys": np.zeros(room, np.uint64),
        "cost_per_record": np.zeros(room, np.float64),
        "cost_seconds": np.zeros(room, np.float64),
        "costs_known": np.zeros(1, np.int64),
        "cost_mean": np.zeros(1, np.float64),
        "speeds": np.ones(partitions, np.float64),
    }


def check_costs(state: Arrays) -> None:
    """Raise a SnapshotError if the costs in a state contradict each other."""
    known = int(state["costs_known"][0])
    keys, costs = state["cost_keys"], state["cost_per_record"]
    require(known <= keys.size, "costs_known", "at most as many as there is room for")
    require((keys[1:known] > keys[: max(known - 1, 0)]).all(), "cost_keys", "ascending keys")
    require((costs >= 0).all(), "cost_per_record", "no negative cost")
    require(state["cost_mean"][0] > 0 or not known, "cost_mean", "above 0 where costs are known")
    require((state["speeds"] > 0).all(), "speeds", "above 0")


def learn(
    state: dict[str, NDArray[Any]], feedback: Feedback, smoothing: float, *, speeds: bool
) -> None:
    """Take one batch's reports into `state`, in place."""
    if not (feedback.busy_seconds.any() and feedback.records.any()):
        return
    rows = _rows(feedback)
    measured = state["speeds"].copy()
    # Values near the limits of a float may overflow: such a batch is skipped below.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore", under="ignore"):
        costs, rest = _costs(feedback, rows, measured)
        for _ in range(_ROUNDS if speeds else 0):
            measured = _speeds(feedback, rows, costs, rest, measured)
            costs, rest = _costs(feedback, rows, measured)
        seconds = _sums(rows.key_of, rows.seconds, rows.keys.size)
    learnt = np.concatenate([costs, measured, seconds, [rest]])
    if not (np.isfinite(learnt).all() and rest > 0):
        return
    state["speeds"] += smoothing * (measured - state["speeds"])
    old = float(state["cost_mean"][0])
    state["cost_mean"][0] = old + smoothing * (rest - old) if old > 0 else rest
    _merge(state, rows.keys, costs, seconds, smoothing)


def ticks_of(state: dict[str, NDArray[Any]], keys: UInt64s) -> Int64s:
    """The work of a record of each key, in whole 1/4096 of a record's of mean cost, at least one.

    A key whose cost is not known costs the mean.
    """
    ticks = np.full(keys.size, TICKS_A_MEAN_RECORD, np.int64)
    known = int(state["costs_known"][0])
    if known:
        ratios = state["cost_per_record"][:known] / state["cost_mean"][0]
        costs = np.clip(np.rint(ratios * TICKS_A_MEAN_RECORD), 1, TICKS_MAX).astype(np.int64)
        at = np.minimum(np.searchsorted(state["cost_keys"][:known], keys), known - 1)
        same = state["cost_keys"][at] == keys
        ticks[same] = costs[at[same]]
    return ticks


def _rows(feedback: Feedback) -> Rows:
    used = (feedback.key_records > 0) & (feedback.key_seconds > 0)
    keys, key_of = np.unique(feedback.key_hashes[used], return_inverse=True)
    return Rows(
        keys,
        key_of.astype(np.int64),
        feedback.key_partitions[used].astype(np.int64),
        feedback.key_records[used].astype(np.float64),
        feedback.key_seconds[used].astype(np.float64),
    )


def _sums(groups: Int64s, values: Float64s, size: int) -> Float64s:
    return np.bincount(groups, values, size).astype(np.float64)


def _costs(feedback: Feedback, rows: Rows, speeds: Float64s) -> tuple[Float64s, float]:
    """Each key's seconds a record at the mean speed, and those of a record without a row."""
    work = _sums(rows.key_of, rows.seconds * speeds[rows.partition_of], rows.keys.size)
    costs = work / _sums(rows.key_of, rows.records, rows.keys.size)
    records, seconds = _without_rows(feedback, rows)
    if records.sum() <= 0 or seconds.sum() <= 0:
        records, seconds = feedback.records.astype(np.float64), feedback.busy_seconds
    return costs, float((seconds * speeds).sum() / records.sum())


def _without_rows(feedback: Feedback, rows: Rows) -> tuple[Float64s, Float64s]:
    partitions = feedback.records.size
    records = _sums(rows.partition_of, rows.records, partitions)
    seconds = _sums(rows.partition_of, rows.seconds, partitions)
    return (
        np.maximum(feedback.records - records, 0.0),
        np.maximum(feedback.busy_seconds - seconds, 0.0),
    )


def _speeds(
    feedback: Feedback, rows: Rows, costs: Float64s, rest: float, before: Float64s
) -> Float64s:
    """How much work each partition did in a second, over the mean of those that worked."""
    work = _sums(rows.partition_of, rows.records * costs[rows.key_of], before.size)
    work += _without_rows(feedback, rows)[0] * rest
    worked = (work > 0) & (feedback.busy_seconds > 0)
    speeds = before.copy()
    if not worked.any():
        return speeds
    speeds[worked] = work[worked] / feedback.busy_seconds[worked]
    speeds[worked] /= speeds[worked].mean()
    return np.clip(speeds, 1 / SPEED_RATIO_MAX, SPEED_RATIO_MAX)


def _merge(
    state: dict[str, NDArray[Any]],
    keys: UInt64s,
    costs: Float64s,
    seconds: Float64s,
    smoothing: float,
) -> None:
    """Bring the table up to date; the keys with the most seconds stay, kept in order of key."""
    known = int(state["costs_known"][0])
    union = np.union1d(state["cost_keys"][:known], keys)
    was = np.searchsorted(union, state["cost_keys"][:known])
    now = np.searchsorted(union, keys)
    cost = np.zeros(union.size)
    cost[now] = costs
    cost[was] = state["cost_per_record"][:known]
    cost[now] += smoothing * (costs - cost[now])
    weight = np.zeros(union.size)
    weight[was] = (1 - smoothing) * state["cost_seconds"][:known]
    weight[now] += smoothing * seconds
    room = state["cost_keys"].size
    kept = np.sort(np.lexsort((union, -weight))[:room])
    state["costs_known"][0] = kept.size
    for name, values in (("keys", union), ("per_record", cost), ("seconds", weight)):
        state[f"cost_{name}"][:] = 0
        state[f"cost_{name}"][: kept.size] = values[kept]
