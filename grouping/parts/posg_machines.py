"""The two state machines of POSG, and the messages between them, as kernels over arrays.

`posg` has the idea, the departures and the paper's symbols. Here are what an instance does with the
records it executed (`take`), and how the scheduler takes its matrices and answers.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.contents import require
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.sketches.count_min import (
    add,
    freeze,
    is_stable,
    mean_cost,
    ratios,
    spread,
)
from unskew.grouping.snapshot import Arrays

Flags = NDArray[np.uint8]

ROUND_ROBIN, SEND_ALL, WAIT_ALL, RUN = 0, 1, 2, 3
START, STABILIZING = 0, 1

STATE, TURN, UNASKED, SYNCHRONISATIONS, RECEIVED = range(5)
MATCHED, DRIFT, REPORTED = range(3)
FIRST, LATEST = range(2)
UNSET = np.iinfo(np.int64).min
# Shares of several sources are fractions: the part of a record that rounding may leave out.
_SLACK = 1e-6


class Instances(NamedTuple):
    records: Float64s
    seconds: Float64s
    snapshot: Float64s
    window: Float64s
    phase: Flags


class Scheduler(NamedTuple):
    active: Flags
    costs: NDArray[np.float32]
    mean: Float64s
    known: Flags
    estimated: Float64s
    idle: Float64s
    busy: Float64s
    free: Float64s
    sent: Int64s
    executed: Float64s
    asked: Flags
    replied: Flags
    marker_sent: Int64s
    marker_estimated: Float64s
    delta: Float64s
    machine: Int64s
    totals: Float64s
    clock: Int64s


class Rules(NamedTuple):
    window: int
    tolerance: float
    batch: bool
    """Are all partitions idle when a batch begins?"""
    lift: bool
    every_report: bool
    """Synchronise with every report, not only when matrices arrive?"""


def check_machine(state: Arrays) -> None:
    """Raise a SnapshotError if the scheduler is in none of its states."""
    number = state["machine"][STATE]
    require(ROUND_ROBIN <= number <= RUN, "machine", f"a state from 0 to {RUN} (got {number})")


@kernel
def tick(clock: Int64s, time: np.int64) -> float:
    """Seconds from the first record's time to the latest one, `time` included."""
    if clock[FIRST] == UNSET:
        clock[FIRST] = time
    clock[LATEST] = max(clock[LATEST], time)
    return _now(clock)


@kernel
def _now(clock: Int64s) -> float:
    if clock[FIRST] == UNSET:
        return 0.0
    seconds: float = (np.float64(clock[LATEST]) - np.float64(clock[FIRST])) * 1e-6
    return seconds


@kernel
def lifted(at: Scheduler, op: int, estimated: float, time: np.int64) -> float:
    """When can `op` begin what is sent now? A partition that ran dry: at once."""
    now = tick(at.clock, time)
    at.idle[op] += max(0.0, now - estimated)
    return max(estimated, now)


@kernel
def records_until_due(at: Scheduler, every: int) -> int:
    """How many records are sent in RUN until the instances are asked again.

    They are asked after `every` records of this source, counted from the requests before.
    """
    sent = 0
    for op in range(at.sent.size):
        if at.active[op] != 0:
            sent += at.sent[op] - at.marker_sent[op]
    return max(0, every - sent)


@kernel
def ask(at: Scheduler, op: int) -> None:
    """Figure 2.D: the record just sent carries the request; after the last one, WAIT_ALL."""
    if at.asked[op] == 0:
        at.asked[op] = 1
        at.marker_sent[op] = at.sent[op]
        at.marker_estimated[op] = at.estimated[op] - at.idle[op]
        at.machine[UNASKED] -= 1
    if at.machine[UNASKED] <= 0:
        at.machine[STATE] = WAIT_ALL


@kernel
def take(
    instances: Instances,
    at: Scheduler,
    salt: UInt64s,
    records: Int64s,
    busy_seconds: Float64s,
    key_partitions: Int32s,
    key_hashes: UInt64s,
    key_records: Int64s,
    key_seconds: Float64s,
    rules: Rules,
) -> None:
    """Apply what the instances did since the last report, and their messages of that time."""
    ordered = key_records.size == 0 or key_records.max() <= 1
    exact = ordered and key_records.size > 0 and not rules.batch and not rules.lift
    share = _own_share(at, records.sum())
    if rules.lift:
        _work_off(at, busy_seconds)
    rest_records = records.astype(np.float64)
    rest_seconds = busy_seconds.copy()
    if not exact:
        for op in range(records.size):
            _execute(at, op, share * rest_records[op], share * rest_seconds[op])
            _reply(at, op, rules)
    for row in range(key_records.size):
        op = int(np.int64(key_partitions[row]))
        count = np.float64(key_records[row])
        rest_records[op] -= count
        rest_seconds[op] -= key_seconds[row]
        if count > 0:
            seconds = key_seconds[row]
            add(instances.records[op], instances.seconds[op], salt, key_hashes[row], count, seconds)
            instances.window[op] += count
        if exact:
            _execute(at, op, share * count, share * key_seconds[row])
            _reply(at, op, rules)
        if ordered:
            _step(instances, at, op, rules)
    for op in range(records.size):
        count = max(rest_records[op], 0.0)
        seconds = max(rest_seconds[op], 0.0)
        if count > 0:
            spread(instances.records[op], instances.seconds[op], count, seconds)
            instances.window[op] += count
        if exact:
            _execute(at, op, share * count, share * seconds)
            _reply(at, op, rules)
        _step(instances, at, op, rules)
    if rules.every_report and at.machine[STATE] == RUN:
        _ask_all(at)


@kernel
def _work_off(at: Scheduler, busy_seconds: Float64s) -> None:
    """When each partition was, or will be, done with what is reported.

    Reports of queued records may come before their time: the work since the last report begins
    when that of before is done. For reports of completed records this is at most one record late.
    """
    before = at.totals[REPORTED]
    for op in range(busy_seconds.size):
        at.free[op] = max(at.free[op], before) + busy_seconds[op]
    at.totals[REPORTED] = _now(at.clock)


@kernel
def _own_share(at: Scheduler, executed: int) -> float:
    """Which part of the executed records did this source send? All of them, if it is alone."""
    if executed == 0:
        return 0.0
    unmatched = at.sent.sum() - at.totals[MATCHED]
    share = float(min(1.0, max(0.0, unmatched / executed)))
    at.totals[MATCHED] += share * executed
    return share


@kernel
def _execute(at: Scheduler, op: int, records: float, seconds: float) -> None:
    at.executed[op] += records
    at.busy[op] += seconds


@kernel
def _step(instances: Instances, at: Scheduler, op: int, rules: Rules) -> None:
    """The instance's state machine, at the end of a window (figure 2)."""
    if instances.window[op] < rules.window:
        return
    instances.window[op] = 0.0
    records = instances.records[op]
    seconds = instances.seconds[op]
    snapshot = instances.snapshot[op]
    stabilizing = instances.phase[op] == STABILIZING
    if stabilizing and is_stable(records, seconds, snapshot, rules.tolerance):
        _receive(at, op, records, seconds)
        records[:] = 0.0
        seconds[:] = 0.0
        instances.phase[op] = START
    else:
        ratios(records, seconds, snapshot)
        instances.phase[op] = STABILIZING


@kernel
def _receive(at: Scheduler, op: int, records: Float64s, seconds: Float64s) -> None:
    """New matrices reach the scheduler (figures 3.A, 3.B and 3.F)."""
    at.mean[op] = mean_cost(records, seconds)
    freeze(records, seconds, at.mean[op], at.costs[op])
    at.known[op] = 1
    at.machine[RECEIVED] += 1
    if at.machine[STATE] != ROUND_ROBIN or _all_active(at, at.known):
        send_all(at)


@kernel
def send_all(at: Scheduler) -> None:
    """A new epoch: answers that are still on their way belong to the last one."""
    at.asked[:] = 0
    at.replied[:] = 0
    at.machine[UNASKED] = at.active.sum()
    at.machine[STATE] = SEND_ALL


@kernel
def _ask_all(at: Scheduler) -> None:
    """Requests that need no record to carry them: the next reports will answer them."""
    at.asked[:] = 1
    at.replied[:] = 0
    at.marker_sent[:] = at.sent
    at.marker_estimated[:] = at.estimated - at.idle
    at.machine[STATE] = WAIT_ALL


@kernel
def _reply(at: Scheduler, op: int, rules: Rules) -> None:
    """If `op` has executed the record that carried the request, its Delta arrives (3.D).

    What it still has to do is ahead of its real time: the part of the estimates since the request.
    """
    if at.asked[op] == 0 or at.replied[op] != 0:
        return
    past = at.executed[op] - at.marker_sent[op]
    if not rules.batch and past < -_SLACK:
        return
    after = at.sent[op] - at.marker_sent[op]
    part = 0.0 if rules.batch or after <= 0 else 1.0 - min(1.0, max(0.0, past / after))
    ahead = part * (at.estimated[op] - at.idle[op] - at.marker_estimated[op])
    real = max(_now(at.clock), at.free[op]) if rules.lift else float(at.busy[op])
    at.delta[op] = real + ahead - at.estimated[op]
    at.replied[op] = 1
    _synchronise(at)


@kernel
def _synchronise(at: Scheduler) -> None:
    """When all answers are there, they are added, and RUN begins (3.E)."""
    if at.machine[STATE] != WAIT_ALL or not _all_active(at, at.replied):
        return
    at.totals[DRIFT] = 0.0
    for op in range(at.delta.size):
        if at.active[op] != 0:
            at.estimated[op] = max(0.0, at.estimated[op] + at.delta[op])
            at.totals[DRIFT] = max(at.totals[DRIFT], abs(at.delta[op]))
    at.machine[STATE] = RUN
    at.machine[SYNCHRONISATIONS] += 1


@kernel
def _all_active(at: Scheduler, flags: Flags) -> bool:
    waiting = 0
    for op in range(flags.size):
        waiting += at.active[op] != 0 and flags[op] == 0
    return waiting == 0


@kernel
def forget_batch(at: Scheduler) -> None:
    """All partitions are idle: nothing is sent that is not executed, and no time is ahead."""
    at.estimated[:] = 0.0
    at.idle[:] = 0.0
    at.busy[:] = 0.0
    at.sent[:] = 0
    at.executed[:] = 0.0
    at.marker_sent[:] = 0
    at.marker_estimated[:] = 0.0
    at.delta[:] = 0.0
    at.totals[MATCHED] = 0.0


@kernel
def count_active(at: Scheduler, counted: Flags) -> None:
    """Bring sums and machine up to date with `active`; `counted` is what they know of it."""
    least = np.inf
    mean = 0.0
    for op in range(counted.size):
        if at.active[op] != 0 and counted[op] != 0:
            least = min(least, at.estimated[op])
        if at.known[op] != 0:
            mean += at.mean[op]
    mean /= max(1, at.known.sum())
    unasked = 0
    changed = False
    for op in range(counted.size):
        if at.active[op] != 0 and counted[op] == 0:
            _join(at, op, least, mean)
        unasked += at.active[op] != 0 and at.asked[op] == 0
        changed |= counted[op] != at.active[op]
        counted[op] = at.active[op]
    if not changed:
        return
    at.machine[UNASKED] = unasked
    if at.machine[STATE] == SEND_ALL and unasked == 0:
        at.machine[STATE] = WAIT_ALL
    if at.machine[STATE] == ROUND_ROBIN and _all_active(at, at.known):
        send_all(at)
    _synchronise(at)


@kernel
def _join(at: Scheduler, op: int, least: float, mean: float) -> None:
    """The time away counts as busy, so that nothing is owed for it; no answer is waited for.

    Nor is anything owed for what it did before it left, as far as no estimate had been made of it.
    """
    if least < np.inf and least > at.estimated[op]:
        at.busy[op] = least
        at.idle[op] += least - at.estimated[op]
        at.estimated[op] = least
    if at.known[op] == 0:
        at.mean[op] = mean
        at.costs[op, :, :, 1] = mean
    at.asked[op] = 1
    at.replied[op] = 1
    at.delta[op] = 0.0
