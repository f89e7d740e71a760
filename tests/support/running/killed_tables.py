"""Jobs of rows for tables, killed at random moments that are drawn from a seed, and started again.

    python -m tests.support.running.killed_tables --rounds 5 [--first N] [--executors] [--record]

A round is six jobs in one driver, of which three write Parquet and three Delta: a kill hits each of
them at another moment of a batch. Kills come at random moments, or when files of a batch are there
and its log does not have them, or has them and the checkpoint no commit. Where a job was is looked
at while all stand still, just before SIGKILL. Every start has another grouping and number of
writers, but for one job that is under `none` all the time. At the end each table is compared, as a
multiset, with what went into its job. `--executors` kills the executors of a cluster instead of
driver, JVM and Python workers. Whose tasks a worker or an executor had is not known, so such kills
count no points.
`--record` adds the counts to `killed_tables.json` beside this module.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import yaml

from tests.support.running.cluster import SHORT_LIVED, Cluster, cluster, python_workers
from tests.support.running.processes import children_named, end_process
from tests.support.running.tables_read import files_outside_of_log, rows_of_table
from unskew.jobs.sinks.tables.log import has_batch, has_transaction
from unskew.jobs.sinks.tables.orphans import find_orphans, remove
from unskew.jobs.sinks.tables.table import DELTA_SETTINGS

FORMATS = ("parquet", "delta") * 3
BATCHES, RECORDS = 4, 200
KILLED_STARTS, STARTS_MAX = 2, 12
DRIVERS = ("driver", "JVM", "driver and JVM")
WORKER, EXECUTOR = "Python worker", "executor"
GROUPINGS: tuple[dict[str, Any], ...] = (
    {"type": "level"},
    {"type": "level", "balance": "bytes", "target_file_bytes": 500},
    {"type": "key"},
    {"type": "shuffle"},
    {"type": "local"},
)
UNROUTED = {"type": "none"}
"""Of one job of a round, at all of its starts: a checkpoint is of plain Spark or not."""
BEGUN, WRITTEN, LOGGED = "begun", "files, not in the log", "in the log, no commit"
LEDGER = Path(__file__).with_suffix(".json")
_ROOT = Path(__file__).resolve().parents[3]
_SETTINGS = {
    **DELTA_SETTINGS,
    "spark.master": "local[2,4]",
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    # So that some of the few batches write a compact log.
    "spark.sql.streaming.fileSink.log.compactInterval": "3",
    "spark.databricks.delta.retentionDurationCheck.enabled": "false",
    # By default VACUUM lists a table's folders in 10,000 tasks.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
}
Records = list[list[tuple[str | None, int]]]


@dataclass
class Round:
    """What became of the jobs of one seed."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    points: Counter[str] = field(default_factory=Counter)
    """Batches that a kill of the driver or the JVM cut off, by format and how far they were."""
    tables: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    outside: Counter[str] = field(default_factory=Counter)
    """Files outside of the tables' logs, by format."""
    left: int = 0
    """The same, once they were cleaned up by the format's own means."""


def drawn_records(seed: int) -> Records:
    """Skewed records, a list a batch."""
    rng = np.random.default_rng(seed)
    names = [None, *[f"c{number}" for number in range(6)]]
    weights = 1 / np.arange(1, len(names) + 1) ** 1.4
    keys = rng.choice(len(names), (BATCHES, RECORDS), p=weights / weights.sum())
    return [[(names[key], row) for row, key in enumerate(batch)] for batch in keys.tolist()]


def write_records(folder: Path, records: Records) -> None:
    """A job's files, a batch each."""
    folder.mkdir(parents=True)
    for number, batch in enumerate(records):
        lines = [json.dumps({"country": key, "number": row}) for key, row in batch]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")


def write_job(folder: Path, how: str, rng: np.random.Generator, *, routed: bool) -> None:
    """The job's file; grouping and writers are drawn at each start."""
    table = {"type": "table", "format": how, "path": str(folder / "table")}
    job = {
        "name": f"killed-{folder.name}",
        "source": {"type": "files", "path": str(folder / "in"), "files_per_batch": 1},
        "decode": {"type": "json", "schema": "country STRING, number INT"},
        "operator": {"type": "rows"},
        "grouping": GROUPINGS[int(rng.integers(len(GROUPINGS)))] if routed else UNROUTED,
        "partitions": int(rng.integers(2, 5)),
        "sinks": [{**table, "partition_by": ["country"]}],
        "dead_letters": {"type": "files", "path": str(folder / "rejected")},
        "trigger": {"type": "available_now"},
        "checkpoint": str(folder / "checkpoint"),
    }
    (folder / "job.yaml").write_text(yaml.safe_dump(job))


class World:
    """The jobs of a round, and the driver that runs them."""

    def __init__(self, folder: Path, seed: int, spark: Cluster | None) -> None:
        self.round = Round(seed)
        self._folder, self._spark = folder, spark
        self._left: dict[Path, set[str]] = {}
        self._rng = np.random.default_rng([seed, spark is not None])
        self._unrouted = self.homes()[int(self._rng.integers(len(FORMATS)))]
        self._records = [drawn_records(seed * len(FORMATS) + job) for job in range(len(FORMATS))]
        for home, records in zip(self.homes(), self._records, strict=True):
            write_records(home / "in", records)
        cluster_settings = spark.settings() if spark else {}
        (folder / "spark.json").write_text(json.dumps({**_SETTINGS, **cluster_settings}))

    def run_to_the_end(self) -> None:
        """Start the jobs and kill, again and again; the last start is left alone."""
        for _ in range(KILLED_STARTS if self._spark is None else 1):
            self._start(self._draw_victims())
        for _ in range(STARTS_MAX):
            if self._start([], "--vacuum") == 0:
                self.compare()
                return
        print((self._folder / "log").read_text()[-6000:])
        self.round.wrong.append("the jobs did not come to their end")

    def homes(self) -> list[Path]:
        """The folders of the jobs, in the order of `FORMATS`."""
        return [self._folder / f"{job}-{how}" for job, how in enumerate(FORMATS)]

    def _draw_victims(self) -> list[str]:
        if self._spark:
            return [EXECUTOR] * int(self._rng.integers(2, 5))
        workers = [WORKER] * int(self._rng.integers(0, 3))
        return [*workers, str(self._rng.choice(DRIVERS))]

    def _start(self, victims: Sequence[str], *words: str) -> int:
        """Run all jobs and kill the victims, one after the other; the exit code."""
        for home, how in zip(self.homes(), FORMATS, strict=True):
            write_job(home, how, self._rng, routed=home != self._unrouted)
            self._left[home] = files_outside_of_log(home / "table")
        program = [sys.executable, "-m", "tests.support.running.tables_driver", str(self._folder)]
        with (self._folder / "log").open("a") as log:
            process = subprocess.Popen(
                [*program, *words],
                cwd=_ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "JAVA_TOOL_OPTIONS": SHORT_LIVED},
            )
            try:
                for victim in victims:
                    self._wait_and_strike(process, victim)
                return process.wait(900)
            finally:
                end_process(process, 60)

    def _wait_and_strike(self, process: "subprocess.Popen[bytes]", victim: str) -> None:
        target = self._begun() + int(self._rng.integers(1, 7))
        while self._begun() < target and process.poll() is None:
            time.sleep(0.02)
        point = str(self._rng.choice((BEGUN, WRITTEN, LOGGED)))
        if point == BEGUN:
            time.sleep(float(self._rng.uniform(0, 1)))
        else:
            self._wait_for_point(process, str(self._rng.choice(FORMATS)), point)
        if process.poll() is None and self._strike(process.pid, victim):
            self.round.kills[victim] += 1

    def _wait_for_point(
        self, process: "subprocess.Popen[bytes]", how: str, point: str, seconds: float = 60.0
    ) -> None:
        """Wait until a job of that format is there; it may have gone on when this returns."""
        deadline = time.monotonic() + seconds
        homes = [home for home, form in zip(self.homes(), FORMATS, strict=True) if form == how]
        while process.poll() is None and time.monotonic() < deadline:
            if any(self.point_of(home, how) == point for home in homes):
                return

    def _strike(self, driver: int, victim: str) -> bool:
        """SIGKILL; was there what it was for?"""
        if victim not in DRIVERS:
            processes = self._processes_of(driver, victim)
            drawn = processes[int(self._rng.integers(len(processes)))] if processes else None
            return drawn is not None and _signal(drawn, signal.SIGKILL)
        parts = {"driver": [psutil.Process(driver)], "JVM": children_named("java", driver)}
        everyone = [process for processes in parts.values() for process in processes]
        for process in everyone:
            _signal(process, signal.SIGSTOP)
        points = [self.point_of(home, how) for home, how in zip(self.homes(), FORMATS, strict=True)]
        victims = [
            each for name, processes in parts.items() if name in victim for each in processes
        ]
        struck = [_signal(process, signal.SIGKILL) for process in victims]
        for process in everyone:
            _signal(process, signal.SIGCONT)
        if any(struck):
            pairs = zip(FORMATS, points, strict=True)
            self.round.points.update(f"{how}: {point}" for how, point in pairs if point)
        return any(struck)

    def point_of(self, home: Path, how: str) -> str | None:
        """How far the job's batch is; None between two batches."""
        checkpoint, table = home / "checkpoint", home / "table"
        batch = _newest(checkpoint / "offsets")
        if batch <= _newest(checkpoint / "commits"):
            return None
        if how == "parquet":
            logged = has_batch(str(table), batch)
        else:
            query = json.loads((checkpoint / "metadata").read_text())["id"]
            logged = has_transaction(str(table), query, batch)
        if logged:
            return LOGGED
        new = files_outside_of_log(table) - self._left.get(home, set())
        return WRITTEN if new else BEGUN

    def _processes_of(self, driver: int, victim: str) -> list[psutil.Process]:
        if victim == EXECUTOR:
            return self._spark.executors() if self._spark else []
        machines = children_named("java", driver)
        if victim == WORKER:
            return [worker for jvm in machines for worker in python_workers(jvm)]
        return machines

    def _begun(self) -> int:
        return sum(_newest(home / "checkpoint" / "offsets") + 1 for home in self.homes())

    def compare(self) -> None:
        """Compare each table with what went into its job, also once it was cleaned up."""
        outside = json.loads((self._folder / "outside.json").read_text())
        for home, how, records in zip(self.homes(), FORMATS, self._records, strict=True):
            table = home / "table"
            if how == "parquet":
                remove(str(table), find_orphans(str(table), 0))
            self.round.tables[how] += 1
            self.round.outside[how] += outside[home.name]
            self.round.left += len(files_outside_of_log(table))
            if rows_of_table(table) != Counter(row for batch in records for row in batch):
                self.round.wrong.append(home.name)


def _newest(log: Path) -> int:
    """The newest entry of a log of Spark's; -1 if there is none."""
    with suppress(FileNotFoundError):
        return max((int(file.name) for file in log.iterdir() if file.name.isdecimal()), default=-1)
    return -1


def _signal(process: psutil.Process, number: signal.Signals) -> bool:
    """Was it there?"""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)
        return True
    return False


def try_round(seed: int, *, executors: bool = False) -> Round:
    """The jobs of one seed, from their first start to their end."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        with cluster(folder / "cluster") if executors else nullcontext() as spark:
            (folder / "jobs").mkdir()
            world = World(folder / "jobs", seed, spark)
            world.run_to_the_end()
            return world.round


def record(done: Round) -> None:
    """Add a round's counts to the ledger."""
    counts = json.loads(LEDGER.read_text()) if LEDGER.exists() else {}
    for name in ("kills", "points", "tables", "outside"):
        counts[name] = dict(sorted((Counter(counts.get(name)) + getattr(done, name)).items()))
    counts["rounds"] = counts.get("rounds", 0) + 1
    counts["wrong"] = counts.get("wrong", 0) + len(done.wrong)
    counts["left after cleaning"] = counts.get("left after cleaning", 0) + done.left
    LEDGER.write_text(json.dumps(counts, indent=1) + "\n")


def main() -> int:
    """Print a line a round; 1 if a table was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.running.killed_tables")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--executors", action="store_true", help="kill those of a cluster")
    parser.add_argument("--record", action="store_true", help="add the counts to the ledger")
    given = parser.parse_args()
    # So that all that was started ends, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    failed = False
    for seed in range(given.first, given.first + given.rounds):
        done = try_round(seed, executors=given.executors)
        print(done, flush=True)
        if given.record:
            record(done)
        failed = failed or bool(done.wrong or done.left)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
