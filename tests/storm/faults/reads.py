"""Damaged files of the journal, read by our own readers: the same content, or an error."""

import random
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.storm.faults.flip import flip
from tests.storm.harness.case import Case
from tests.storm.harness.counts import Counts, StormError
from unskew.grouping.errors import SnapshotError
from unskew.grouping.registry import GROUPINGS, create
from unskew.grouping.snapshot import Snapshot
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.rejected_file import COLUMNS
from unskew.grouping.spark.report import PartitionReport
from unskew.grouping.spark.routing_file import Routes, RoutingStats

_CHECKED = (".state", ".routing", ".report")
_REJECTED = ".rejected"
_FLIPS = 100
READ_AS_OTHERS = "read as another"


def storm_reads(case: Case) -> None:
    """A journal of every grouping, without a job: each of its files is damaged and read."""
    rng = case.rng()
    journal = Journal(str(case.folder))
    for batch, name in enumerate(GROUPINGS):
        partitions = rng.randint(1, 6)
        state = create(name, partitions=partitions, seed=rng.randint(0, 9)).snapshot()
        journal.write_state(batch, 0, state)
        journal.write_routing(batch, 0, RoutingStats(rng.random()), Routes(rng.randint(0, 9), 7))
        report = PartitionReport(records=rng.randint(0, 9), busy_seconds=rng.random())
        journal.write_report(batch, 0, report.to_snapshot(partitions))
        rejected = [f"{rng.random()}" for _ in range(rng.randint(1, 40))]
        journal.write_rejected(batch, 0, pa.table(dict.fromkeys(COLUMNS, rejected)))
    read_damaged(case.folder, rng, case.counts, _FLIPS)


def read_damaged(journal: Path, rng: random.Random, counts: Counts, flips: int) -> None:
    """Damage files of a journal one at a time, and read each; StormError if it reads as another."""
    files = [path for path in sorted(journal.rglob("*")) if path.suffix in (*_CHECKED, _REJECTED)]
    for _ in range(flips if files else 0):
        path = rng.choice(files)
        data = path.read_bytes()
        whole = _read(path)
        harm = flip(path, rng)
        counts.faults["file damaged, then read"] += 1
        try:
            outcome = _outcome(path, whole)
        finally:
            path.write_bytes(data)
        if outcome == READ_AS_OTHERS:
            raise StormError(f"{path.name}: {harm}: it reads as another")
        counts.outcomes[outcome] += 1


def _outcome(path: Path, whole: Any) -> str:
    try:
        damaged = _read(path)
    except (SnapshotError, pa.ArrowException, OSError):
        return "damage noticed by its reader"
    return "damage without effect" if damaged == whole else READ_AS_OTHERS


def _read(path: Path) -> Any:
    """What the reader makes of the file, as something that can be compared."""
    if path.suffix != _REJECTED:
        return Snapshot.from_bytes(path.read_bytes()).to_bytes()
    return list(Journal(str(path.parent.parent)).rejected(int(path.parent.name)))
