"""Where a batch's time went, and what it would have been under another grouping.

The parts add up to the time of the batch. They follow from when Spark's stages ran; within a stage
that does two things at once, as reading and routing, the time is shared out by what the tasks
measured of each.

Another grouping has other loads, by the reports; and it routes, moves and merges more or less, by
the cost model, where its constants are known: those that `auto` has learnt, or a calibration's.
"""

import heapq
from collections.abc import Iterable
from itertools import pairwise

from unskew.grouping.choice.ways import KEY, LEVEL
from unskew.jobs.observe.batches.batch import OWN, BatchDone
from unskew.jobs.observe.batches.stages import BatchStages, StageTime

WAITING, READ, ROUTE, WORK, MERGE, COMMIT, REST = (
    *("waiting", "read", "route", "work", "merge", "commit"),
    "rest",
)
PARTS = (WAITING, READ, ROUTE, WORK, MERGE, COMMIT, REST)
"""In the order of the batch; `rest` is what is left where Spark does not say when stages ran."""


def split_seconds(done: BatchDone) -> dict[str, float]:
    """Seconds of each part; together the batch's."""
    stages = done.stages
    parts = dict.fromkeys(PARTS, 0.0)
    if stages is None or not stages.stages:
        parts |= _split_by_progress(done)
    else:
        parts |= _split_by_stages(done, stages)
    # Clocks of the driver and of tasks differ by milliseconds: no part is below zero.
    return {name: max(0.0, seconds) for name, seconds in parts.items()}


def estimate_seconds_under_key(done: BatchDone) -> float | None:
    """Estimate the batch's time under the grouping `key`; None if no partition reported.

    A key costs what it cost here, where the operator measures that of each; otherwise a record
    costs what the records of its partition did in the mean.
    """
    stats = done.stats
    if stats is None or not stats.total:
        return None
    return _replace_work(done, KEY, stats.under_key_seconds.tolist())


def estimate_seconds_level(done: BatchDone) -> float | None:
    """Estimate the batch's time with equal partitions; None if no partition reported."""
    stats = done.stats
    if stats is None or not stats.total:
        return None
    even = [float(stats.busy_seconds.mean())] * stats.busy_seconds.size
    return _replace_work(done, LEVEL, even)


def _replace_work(done: BatchDone, way: str, busy_seconds: list[float]) -> float:
    """The batch's time under another way, with these busy times of its partitions instead."""
    assert done.stats is not None
    expected = done.choice.expected if done.choice else {}
    if done.choice and {way, done.choice.way} <= expected.keys():
        more = expected[way].seconds - expected[done.choice.way].seconds
        return max(0.0, done.seconds + more)
    beside = done.beside_work
    more = beside[way] - beside[OWN] if beside else 0.0
    own = done.stats.busy_seconds.tolist()
    slots = done.stages.slots if done.stages else len(own)
    work = _schedule(busy_seconds, slots) - _schedule(own, slots)
    return max(0.0, done.seconds + work + more)


def _schedule(tasks: Iterable[float], slots: int) -> float:
    """When the last of the tasks ends, each started in order as soon as a slot is free."""
    free = [0.0] * max(1, slots)
    for seconds in tasks:
        heapq.heapreplace(free, free[0] + seconds)
    return max(free)


def _split_by_stages(done: BatchDone, times: BatchStages) -> dict[str, float]:
    stages, work = times.stages, times.work
    before, after = stages[: times.merge if work is None else work], stages[times.merge :]
    parts = {
        READ: _sum_seconds(before),
        MERGE if times.merges else COMMIT: _sum_seconds(after),
    }
    if work is not None:
        parts |= _split_work(done, stages[work], parts[READ], alone=bool(before))
    parts |= _split_route(done, before, parts[READ])
    written = done.parts["wal_commit"]
    ended = max(stage.ended for stage in stages)
    gaps = sum(max(0.0, later.started - earlier.ended) for earlier, later in pairwise(stages))
    parts[WAITING] = max(0.0, stages[0].started - done.began - written) + gaps
    parts[COMMIT] = parts.get(COMMIT, 0.0) + max(0.0, done.began + done.seconds - ended) + written
    return parts


def _split_work(done: BatchDone, stage: StageTime, read: float, *, alone: bool) -> dict[str, float]:
    """The work of the stage in which partitions work, which also reads if it is the first."""
    if alone or done.stats is None:
        return {WORK: stage.seconds}
    share = _divide(float(done.stats.busy_seconds.sum()), stage.run_seconds)
    return {READ: read + stage.seconds * (1 - share), WORK: stage.seconds * share}


def _split_route(done: BatchDone, stages: tuple[StageTime, ...], read: float) -> dict[str, float]:
    """The time of routing, which the tasks do that read."""
    if done.routing is None:
        return {}
    share = _divide(done.routing.seconds, sum(stage.run_seconds for stage in stages))
    return {READ: read * (1 - share), ROUTE: read * share}


def _split_by_progress(done: BatchDone) -> dict[str, float]:
    """Split the time by Spark's progress and the reports alone."""
    main, routing, stats = done.parts["add_batch"], done.routing, done.stats
    work = min(main, float(stats.busy_seconds.max())) if stats else 0.0
    route = min(main - work, routing.seconds / max(1, routing.sources)) if routing else 0.0
    commit = done.parts["wal_commit"] + done.parts["commit_offsets"]
    return {
        WAITING: done.seconds - main - commit,
        ROUTE: route,
        WORK: work,
        COMMIT: commit,
        REST: main - work - route,
    }


def _sum_seconds(stages: Iterable[StageTime]) -> float:
    return sum(stage.seconds for stage in stages)


def _divide(part: float, whole: float) -> float:
    return min(1.0, part / whole) if whole > 0 else 0.0
