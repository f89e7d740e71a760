"""Jobs of rows for tables, killed at random moments that are drawn from a seed, and started again.

    python -m tests.support.running.killed_tables --rounds 5 [--first N] [--executors] [--record]

A round is six jobs in one driver, of which three write Parquet and three Delta: a kill hits each of
them at another moment of a batch. Every start has another grouping and number of writers. At the
end each table is compared, as a multiset, with what went into its job. `--executors` kills the
executors of a cluster instead of driver, JVM and Python workers. `--record` adds the counts to
`killed_tables.json` beside this module.
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

from tests.support.running.cluster import Cluster, cluster, python_workers
from tests.support.running.processes import children_named, end_process
from tests.support.running.tables_read import files_outside_of_log, rows_of_table
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
# A JVM that lives for a minute spends half of its time on code that it will run no more.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
Records = list[list[tuple[str | None, int]]]


@dataclass
class Round:
    """What became of the jobs of one seed."""

    seed: int
    kills: Counter[str] = field(default_factory=Counter)
    hit: Counter[str] = field(default_factory=Counter)
    """Batches that were under way at a kill, by format."""
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


def write_job(folder: Path, how: str, rng: np.random.Generator) -> None:
    """The job's file; grouping and writers are drawn anew at each start."""
    table = {"type": "table", "format": how, "path": str(folder / "table")}
    job = {
        "name": f"killed-{folder.name}",
        "source": {"type": "files", "path": str(folder / "in"), "files_per_batch": 1},
        "decode": {"type": "json", "schema": "country STRING, number INT"},
        "operator": {"type": "rows"},
        "grouping": GROUPINGS[int(rng.integers(len(GROUPINGS)))],
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
        self._rng = np.random.default_rng([seed, spark is not None])
        self._records = [drawn_records(seed * len(FORMATS) + job) for job in range(len(FORMATS))]
        for home, records in zip(self._homes(), self._records, strict=True):
            write_records(home / "in", records)
        master = {"spark.master": spark.url, "spark.executor.memory": "512m"} if spark else {}
        (folder / "spark.json").write_text(json.dumps({**_SETTINGS, **master}))

    def run_to_the_end(self) -> None:
        """Start the jobs and kill, again and again; the last start is left alone."""
        for _ in range(KILLED_STARTS if self._spark is None else 1):
            self._start(self._draw_victims())
        for _ in range(STARTS_MAX):
            if self._start([], "--vacuum") == 0:
                self._compare()
                return
        print((self._folder / "log").read_text()[-6000:])
        self.round.wrong.append("the jobs did not come to their end")

    def _homes(self) -> list[Path]:
        return [self._folder / f"{job}-{how}" for job, how in enumerate(FORMATS)]

    def _draw_victims(self) -> list[str]:
        if self._spark:
            return [EXECUTOR] * int(self._rng.integers(2, 5))
        workers = [WORKER] * int(self._rng.integers(0, 3))
        return [*workers, str(self._rng.choice(DRIVERS))]

    def _start(self, victims: Sequence[str], *words: str) -> int:
        """Run all jobs and kill the victims, one after the other; the exit code."""
        for home, how in zip(self._homes(), FORMATS, strict=True):
            write_job(home, how, self._rng)
        program = [sys.executable, "-m", "tests.support.running.tables_driver", str(self._folder)]
        with (self._folder / "log").open("a") as log:
            process = subprocess.Popen(
                [*program, *words],
                cwd=_ROOT,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "JAVA_TOOL_OPTIONS": _SHORT_LIVED},
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
        time.sleep(float(self._rng.uniform(0, 1)))
        under_way = [how for how, *counts in self._count_batches() if counts[0] > counts[1]]
        if process.poll() is None and self._strike(process.pid, victim):
            self.round.kills[victim] += 1
            self.round.hit.update(under_way)

    def _strike(self, driver: int, victim: str) -> bool:
        """SIGKILL; was there what it was for?"""
        if victim == "driver and JVM":
            os.killpg(driver, signal.SIGKILL)
            return True
        if victim == "driver":
            os.kill(driver, signal.SIGKILL)
            return True
        processes = self._processes_of(driver, victim)
        if not processes:
            return False
        with suppress(psutil.NoSuchProcess):
            processes[int(self._rng.integers(len(processes)))].kill()
            return True
        return False

    def _processes_of(self, driver: int, victim: str) -> list[psutil.Process]:
        if victim == EXECUTOR:
            return self._spark.executors() if self._spark else []
        machines = children_named("java", driver)
        if victim == WORKER:
            return [worker for jvm in machines for worker in python_workers(jvm)]
        return machines

    def _begun(self) -> int:
        return sum(begun for _, begun, _ in self._count_batches())

    def _count_batches(self) -> list[tuple[str, int, int]]:
        """Of each job: its format, how many batches were begun, and how many committed."""
        logs = [
            (home / "checkpoint" / "offsets", home / "checkpoint" / "commits")
            for home in self._homes()
        ]
        return [
            (how, _count(offsets), _count(commits))
            for how, (offsets, commits) in zip(FORMATS, logs, strict=True)
        ]

    def _compare(self) -> None:
        """Compare each table with what went into its job, also once it was cleaned up."""
        outside = json.loads((self._folder / "outside.json").read_text())
        for home, how, records in zip(self._homes(), FORMATS, self._records, strict=True):
            table = home / "table"
            if how == "parquet":
                remove(str(table), find_orphans(str(table), 0))
            self.round.tables[how] += 1
            self.round.outside[how] += outside[home.name]
            self.round.left += files_outside_of_log(table)
            if rows_of_table(table) != Counter(row for batch in records for row in batch):
                self.round.wrong.append(home.name)


def _count(log: Path) -> int:
    with suppress(FileNotFoundError):
        return sum(file.name.isdecimal() for file in log.iterdir())
    return 0


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
    for name in ("kills", "hit", "tables", "outside"):
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
