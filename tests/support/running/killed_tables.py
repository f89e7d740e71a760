"""A job of rows for a table that is killed at random moments, drawn from a seed, and goes on.

    python -m tests.support.running.killed_tables --seeds 5 --format delta

What the table has at the end is read without Spark, by the table's own log, and compared with what
was in the records: each row as often as it was there.
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
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import psutil
import pyarrow.parquet as pq
import yaml

from tests.support.running.cluster import python_workers
from tests.support.running.processes import children_named, end_process
from unskew.jobs.sinks.table_log import committed_files

FILES = 6
RECORDS = 3000
STARTS_MAX = 12
VICTIMS = ("driver and JVM", "driver", "JVM", "Python worker")
GROUPINGS = (
    {"type": "level"},
    {"type": "level", "balance": "bytes", "target_file_bytes": 2000},
    {"type": "key"},
    {"type": "shuffle"},
)
Rows = Counter[tuple[str | None, int]]


@dataclass
class Outcome:
    """What became of one seed."""

    seed: int
    format: str
    killed: list[str]
    """What was hit, while the job ran."""
    right: bool
    orphans: int


def drawn_records(seed: int) -> list[list[tuple[str | None, int]]]:
    """Skewed records, a list a file."""
    rng = np.random.default_rng(seed)
    names = [None, *[f"c{number}" for number in range(30)]]
    weights = 1 / np.arange(1, len(names) + 1) ** 1.4
    keys = rng.choice(len(names), (FILES, RECORDS), p=weights / weights.sum())
    return [[(names[key], row) for row, key in enumerate(file)] for file in keys.tolist()]


def write_job(folder: Path, how: str, rng: np.random.Generator) -> Path:
    """The job's file; grouping and writers are drawn anew at each start."""
    job = {
        "name": "killed",
        "source": {"type": "files", "path": str(folder / "in"), "files_per_batch": 1},
        "decode": {"type": "json", "schema": "country STRING, number INT"},
        "operator": {"type": "rows"},
        "grouping": GROUPINGS[int(rng.integers(len(GROUPINGS)))],
        "partitions": int(rng.integers(2, 6)),
        "sinks": [
            {
                "type": "table",
                "format": how,
                "path": str(folder / "table"),
                "partition_by": ["country"],
            }
        ],
        "dead_letters": {"type": "files", "path": str(folder / "rejected")},
        "trigger": {"type": "available_now"},
        "checkpoint": str(folder / "checkpoint"),
        "spark": {"spark.master": "local[2,4]", "spark.driver.memory": "1g"},
    }
    file = folder / "job.yaml"
    file.write_text(yaml.safe_dump(job))
    return file


def begun(folder: Path) -> int:
    """How many batches were begun."""
    offsets = folder / "checkpoint" / "offsets"
    return len([each for each in offsets.glob("*") if each.name.isdecimal()])


def run_and_kill(
    folder: Path, job: Path, rng: np.random.Generator, victim: str | None
) -> tuple[int | None, bool]:
    """Run the job; kill the victim at a random moment of a random batch.

    The exit code, and whether the victim was there to be killed.
    """
    was_killed = False
    with (folder / "log").open("a") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "unskew", "run", str(job), "--log", "json"],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            target = begun(folder) + int(rng.integers(1, 3))
            while victim and begun(folder) < target and process.poll() is None:
                time.sleep(0.02)
            if victim and process.poll() is None:
                time.sleep(float(rng.uniform(0, 3)))
                was_killed = process.poll() is None and strike(process.pid, victim)
            return process.wait(600), was_killed
        finally:
            end_process(process, 60)


def strike(driver: int, victim: str) -> bool:
    """SIGKILL; was there what it was for?"""
    if victim == "driver and JVM":
        os.killpg(driver, signal.SIGKILL)
        return True
    if victim == "driver":
        os.kill(driver, signal.SIGKILL)
        return True
    processes = children_named("java", driver)
    if victim == "Python worker":
        processes = [worker for jvm in processes for worker in python_workers(jvm)[:1]]
    with suppress(psutil.NoSuchProcess):
        for process in processes:
            process.kill()
        return bool(processes)
    return False


def rows_of_table(folder: Path, how: str) -> Rows:
    """The table's rows by its own log."""
    table = folder / "table"
    names = committed_files(str(table)) if how == "parquet" else set(delta_files(table))
    rows: Rows = Counter()
    for name in names:
        country = unquote(name.partition("/")[0].removeprefix("country="))
        key = None if country == "__HIVE_DEFAULT_PARTITION__" else country
        numbers = pq.ParquetFile(table / name).read(["number"])["number"].to_pylist()
        rows.update((key, number) for number in numbers)
    return rows


def delta_files(table: Path) -> Iterator[str]:
    """The files of a Delta table to which rows were only added."""
    for version in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, version.read_text().splitlines()):
            assert "remove" not in action
            if "add" in action:
                yield unquote(action["add"]["path"])


def write_records(folder: Path, records: list[list[tuple[str | None, int]]]) -> None:
    """The job's files."""
    folder.mkdir()
    for number, file in enumerate(records):
        lines = [json.dumps({"country": key, "number": row}) for key, row in file]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")


def run_to_the_end(folder: Path, how: str, rng: np.random.Generator) -> list[str]:
    """Start the job again and again, until a start that nothing was killed in ends well."""
    drawn = [str(victim) for victim in rng.choice(VICTIMS, int(rng.integers(1, 4)))]
    killed = []
    for victim in [*drawn, *[None] * STARTS_MAX]:
        code, was_killed = run_and_kill(folder, write_job(folder, how, rng), rng, victim)
        killed += [victim] if victim and was_killed else []
        if victim is None and code == 0:
            break
    else:
        print((folder / "log").read_text()[-4000:])
    return killed


def try_seed(seed: int, how: str) -> Outcome:
    """One job from its first start to its end."""
    records = drawn_records(seed)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        write_records(folder / "in", records)
        killed = run_to_the_end(folder, how, np.random.default_rng([seed, len(how)]))
        expected = Counter(row for file in records for row in file)
        table = folder / "table"
        there = {str(file.relative_to(table)) for file in table.rglob("part-*.parquet")}
        committed = committed_files(str(table)) if how == "parquet" else set(delta_files(table))
        right = rows_of_table(folder, how) == expected
        return Outcome(seed, how, killed, right, len(there - committed))


def main() -> int:
    """Print a line a seed; 1 if a table was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--format", choices=["parquet", "delta"], default=None)
    arguments = parser.parse_args()
    wrong = 0
    for seed in range(arguments.first, arguments.first + arguments.seeds):
        for how in [arguments.format] if arguments.format else ["parquet", "delta"]:
            outcome = try_seed(seed, how)
            print(outcome, flush=True)
            wrong += not outcome.right
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
