"""POSG: shuffle by estimated cost, each record to the partition that will be done first.

The time a record takes depends on its key. Every instance (here: partition) keeps a Count-Min pair
of records and seconds per key; when it is stable it is sent to the scheduler (here: a source), and
a new one is begun. The scheduler adds up the estimated seconds it gave to each instance and sends
the next record to the one with the least. Whenever matrices arrive, a synchronisation removes what
the estimates have drifted from the real busy time.

Instance: START until N records are executed, then STABILIZING with a snapshot of all ratios; after
each N more either the ratios are stable (sent, reset, START) or a new snapshot is taken.
Scheduler: ROUND_ROBIN until every instance has sent once; SEND_ALL asks each instance, by round
robin, for its real time; WAIT_ALL and RUN schedule greedily, RUN once all answers are added.
Matrices that arrive later lead from any state but ROUND_ROBIN to SEND_ALL.

Guarantee: with exact costs and no idle time the makespan is at most (2 - 1/k) of the optimum for k
partitions. Any record may go anywhere, so the pairs of key and partition are those of shuffling.
Cost: r hashes, r + 1 reads in the chosen partition's matrices and log2 k comparisons a record.
State: 32 r c bytes a partition (F, W and the snapshot of the instance; F and W / F of the scheduler
in single precision) and 14 numbers, whatever the keys are: 7.2 kB a partition with the defaults,
0.33 GB at most (more cells are an error).

In an engine no instance can talk to a scheduler, but the partitions' reports reach every source
alike, so each source keeps its own copy of the instances and runs their state machines itself:
copies fed the same rows stay equal. Rows of one record each are taken as executed in their order,
exactly as the paper does. Several sources: busy time belongs to all of them together, so a source
counts as its own the share of the records that it sent itself; all sources together then repay a
partition's excess once, not once each.

Departures and why:
- Rows with several records have lost their order, so an instance's windows end with the batch then,
  and it answers as of the batch's end: the estimate it compares with is interpolated between the
  asking record and now.
- Records without rows are spread evenly over the cells: with no rows at all, every estimate is the
  instance's mean cost. A key that was never seen (0/0 in the paper) also gets the mean.
- The greedy rule assumes instances that never idle. `memory: batch`: all are idle at a batch's
  start and its records are all there, so sums begin at 0 and the rule is right; Delta then only
  shows the drift. `memory: stream` with `lift`: the sum of an instance that ran dry is lifted to
  now, the latest timestamp, when it is next chosen (so of several idle ones the one idle for
  longest is next), and an answer puts it at now plus what it has still to do. Reports of records
  still queued (a simulator's) put "now" off until they can be done. Of s sources each sees one
  record in s, so there a record weighs s times its cost; very unequal sources are better off
  without `lift`. Without `lift` it is
  the paper's rule to the letter; busy time made equal then takes an instance that idled for one
  that owes work, and near 100 % load that is worse than round robin.
- `synchronise: reports` asks all instances again with each report, since reports come anyway: the
  drift between two matrices, thousands of records apart, is most of what is left to gain.
- `synchronise_records: N` asks all instances again when N records were sent since they were asked,
  by the records themselves, as when matrices arrive.
- The paper scans all k instances for the least; a tournament tree gives the same one.
- Round robin goes on where it was when SEND_ALL begins again, else the first instances would get
  more than others whenever matrices arrive often.
- An instance that joins starts at the least sum of the others, with the mean of their costs.
- A cost below a nanosecond counts as one: clocks too coarse for the work give plain shuffling.
- mu is 0.2, not 0.05: with that, ten instances are still in round robin when the paper's stream of
  32,768 records ends (and five leave it after 20,480, not 10,240).
- c = ceil(e / epsilon) is 55 for the defaults; the paper prints 54.

| paper | here |
|---|---|
| k, op | partitions, `op` |
| r, c, h_1 ... h_r | rows and columns of `shape` (count_min), `_salts` |
| F_op, W_op, S_op | `instance_records`, `instance_seconds`, `instance_snapshot` |
| UPDATE (III.1) | `add` (count_min); `take` calls it for each row of a report |
| eta_op <= mu (eq. 1) | `is_stable` (count_min), `tolerance` |
| N, epsilon, delta | `window`, `epsilon`, `delta` (options) |
| the scheduler's F and W / F | `costs` |
| C^[op], estimated | `estimated` |
| C_op, real | `busy`, or the time from `_work_off` where `lift` is on |
| Delta_op = C_op - C^[op] | `delta`; it is added, so what was estimated too high is negative |
| SUBMIT, UPDATE C^ (III.2) | `find_winner` and `replay` (tournament), `frozen_cost` (count_min) |
| figures 2 and 3, A to F | `_step`; `_receive`, `send_all`, `ask`, `_reply`, `_synchronise` |

Listing III.1 has a slip in line 7: the loop over the hash functions runs "to c", but there are r of
them, one a row.

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> posg = create("posg", partitions=3, seed=1)
>>> posg.route(np.array([7, 7, 8, 9], np.uint64)).tolist()
[0, 1, 2, 0]

Reference: N. Rivetti, E. Anceaume, Y. Busnel, L. Querzoni, B. Sericola: Proactive online scheduling
for shuffle grouping in distributed stream processing systems. Middleware 2016.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
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
from unskew.grouping.contents import ANY_TIME, COUNT_MAX, Bounds
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import salts
from unskew.grouping.kernels import kernel
from unskew.grouping.parts.posg_machines import (
    DRIFT,
    RECEIVED,
    RUN,
    SEND_ALL,
    STATE,
    SYNCHRONISATIONS,
    TURN,
    UNSET,
    Instances,
    Rules,
    Scheduler,
    ask,
    check_machine,
    count_active,
    forget_batch,
    lifted,
    records_until_due,
    send_all,
    take,
    tick,
)
from unskew.grouping.parts.sketches.count_min import frozen_cost, shape
from unskew.grouping.parts.tournament import find_winner, replay, tournament

CELLS_MAX = 10_000_000
NEVER = 2**62
_NO_TIMES = np.empty(0, np.int64)
_LEAST_COST = 1e-9


class PosgParams(GroupingParams):
    """Options of `posg`; the defaults are the paper's, but for `tolerance`, `memory` and `lift`."""

    epsilon: float = Field(0.05, ge=0.0005, le=3)
    """Precision of the sketches: ceil(e / epsilon) columns."""
    delta: float = Field(0.1, ge=1e-6, lt=1)
    """Chance of a worse estimate: ceil(log2(1 / delta)) rows."""
    window: int = Field(1024, ge=1, le=10**9)
    """N: an instance checks whether its matrices are stable each time it had this many records."""
    tolerance: float = Field(0.2, ge=0)
    """mu: matrices are stable when their ratios changed by at most this, relative to their sum.

    The paper's 0.05 is not met within its 32,768 records at k = 10; with 0.2 they are sent after
    two windows, as its figures show. Sparse matrices (few keys, small epsilon) take more windows;
    with 1 they too are nearly always sent after two.
    """
    memory: Literal["batch", "stream"] = "batch"
    """Do estimated times start at zero in each batch (all partitions idle), or continue?"""
    lift: bool = True
    """With `memory: stream`: lift partitions that ran dry to the latest timestamp?"""
    synchronise: Literal["matrices", "reports"] = "matrices"
    """Remove the drift of the estimates when matrices arrive (the paper), or with each report?"""
    synchronise_records: Annotated[int, Field(ge=1, le=10**9)] | None = Field(None, examples=[64])
    """With `memory: stream`: ask the instances also after this many records of this source, by the
    next record to each as when matrices arrive. Default: not by records, as in the paper."""

    @model_validator(mode="after")
    def _check_together(self) -> "PosgParams":
        if self.synchronise_records is None:
            return self
        if self.memory == "batch":
            raise ValueError("synchronise_records: only with memory stream (got batch)")
        if self.synchronise == "reports":
            raise ValueError("synchronise_records: only with synchronise matrices (got reports)")
        return self


class Posg(Grouping):
    """Proactive online shuffle grouping: the least estimated completion time is next."""

    name = "posg"
    Params = PosgParams
    wants_feedback = True
    params: PosgParams
    bounds: ClassVar[Bounds] = {"clock": ANY_TIME, "machine": (-COUNT_MAX, COUNT_MAX)}
    checks = (check_machine,)

    def __init__(self, setting: Setting, params: PosgParams) -> None:
        super().__init__(setting, params)
        n = setting.partitions
        rows, columns = shape(params.epsilon, params.delta)
        if n * rows * columns > CELLS_MAX:
            raise GroupingError(
                f"posg.epsilon: {n} partitions x {rows} rows x {columns} columns are more than"
                f" {CELLS_MAX} cells (got {params.epsilon}); choose a larger epsilon"
            )
        self._salts = salts(setting.seed, rows)
        batch = params.memory == "batch"
        lift = params.lift and not batch
        often = params.synchronise == "reports" and not batch
        self._rules = Rules(params.window, params.tolerance, batch, lift, often)
        self._every = params.synchronise_records or NEVER
        # What the other sources send meanwhile is ahead of this source's next record as well.
        self._weight = float(setting.sources) if lift else 1.0
        matrices = (n, rows, columns)
        self.state |= {
            "instance_records": np.zeros(matrices),
            "instance_seconds": np.zeros(matrices),
            "instance_snapshot": np.zeros(matrices),
            "instance_window": np.zeros(n),
            "instance_phase": np.zeros(n, np.uint8),
            "costs": np.zeros((*matrices, 2), np.float32),
            "mean": np.zeros(n),
            "known": np.zeros(n, np.uint8),
            "estimated": np.zeros(n),
            "idle": np.zeros(n),
            "busy": np.zeros(n),
            "free": np.zeros(n),
            "sent": np.zeros(n, np.int64),
            "executed": np.zeros(n),
            "asked": np.zeros(n, np.uint8),
            "replied": np.zeros(n, np.uint8),
            "marker_sent": np.zeros(n, np.int64),
            "marker_estimated": np.zeros(n),
            "delta": np.zeros(n),
            "machine": np.zeros(5, np.int64),
            "totals": np.zeros(3),
            "clock": np.full(2, UNSET, np.int64),
            "counted": np.ones(n, np.uint8),
        }
        self.state["machine"][TURN] = setting.source * n // setting.sources

    @property
    def wants_timestamps(self) -> bool:
        """Only with `memory: stream` and `lift`."""
        return self._rules.lift

    def signals(self) -> dict[str, float]:
        """State (0 to 3), share of instances known, synchronisations, matrices, last drift."""
        machine = self.state["machine"]
        return {
            "scheduler_state": float(machine[STATE]),
            "known_share": float(self.state["known"][self.active].mean()),
            "synchronisations": float(machine[SYNCHRONISATIONS]),
            "matrices_received": float(machine[RECEIVED]),
            "drift_seconds": float(self.state["totals"][DRIFT]),
        }

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        times = _NO_TIMES if timestamps is None else timestamps
        scheduler = self._scheduler()
        rule = self._weight, self._every
        _route_keys(scheduler, self._salts, *rule, self.active, keys, times, out)

    def _begin_batch(self, feedback: Feedback | None) -> None:
        scheduler = self._scheduler()
        if feedback is not None:
            take(
                self._instances(),
                scheduler,
                self._salts,
                feedback.records,
                feedback.busy_seconds,
                feedback.key_partitions,
                feedback.key_hashes,
                feedback.key_records,
                feedback.key_seconds,
                self._rules,
            )
        if self._rules.batch:
            forget_batch(scheduler)

    def _update_active(self) -> None:
        super()._update_active()
        count_active(self._scheduler(), self.state["counted"])

    def _scheduler(self) -> Scheduler:
        return Scheduler(*(self.state[name] for name in Scheduler._fields))

    def _instances(self) -> Instances:
        return Instances(*(self.state[f"instance_{name}"] for name in Instances._fields))


@kernel
def _route_keys(
    at: Scheduler,
    salt: UInt64s,
    weight: float,
    every: int,
    active: Int32s,
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
) -> None:
    i = 0
    while i < keys.size:
        stop = keys.size
        if at.machine[STATE] == RUN:
            stop = min(stop, i + records_until_due(at, every))
            if stop == i:
                send_all(at)
        if at.machine[STATE] <= SEND_ALL:
            i = _route_in_turn(at, salt, weight, active, keys, times, out, i)
        else:
            _route_greedily(at, salt, weight, keys, times, out, i, stop)
            i = stop


@kernel
def _route_in_turn(
    at: Scheduler,
    salt: UInt64s,
    weight: float,
    active: Int32s,
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    first: int,
) -> int:
    """Round robin, until all instances are asked: then the number of the next record."""
    i = first
    while i < keys.size and at.machine[STATE] <= SEND_ALL:
        op = int(active[at.machine[TURN] % active.size])
        at.machine[TURN] = (at.machine[TURN] + 1) % active.size
        at.sent[op] += 1
        if at.machine[STATE] == SEND_ALL:
            begin = lifted(at, op, at.estimated[op], times[i]) if times.size else at.estimated[op]
            more = frozen_cost(at.costs, op, salt, keys[i])
            at.estimated[op] = begin + weight * max(more, _LEAST_COST)
            ask(at, op)
        elif times.size:
            tick(at.clock, times[i])
        out[i] = op
        i += 1
    return i


@kernel
def _route_greedily(
    at: Scheduler,
    salt: UInt64s,
    weight: float,
    keys: UInt64s,
    times: Int64s,
    out: Int32s,
    first: int,
    stop: int,
) -> None:
    """SUBMIT and UPDATE of listing III.2."""
    tree = tournament(at.estimated, at.active)
    op = find_winner(tree)
    for i in range(first, stop):
        out[i] = op
        at.sent[op] += 1
        begin = tree.values[op]
        if times.size:
            begin = lifted(at, op, begin, times[i])
        more = frozen_cost(at.costs, op, salt, keys[i])
        op = replay(tree, op, begin + weight * max(more, _LEAST_COST))
    for op in range(at.estimated.size):
        if at.active[op] != 0:
            at.estimated[op] = tree.values[op]
