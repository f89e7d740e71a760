"""Two jobs write Delta tables while the same are compacted all the time: prints what was done.

    python -m tests.support.running.compacted_tables FOLDER SEED

One job adds rows, the other merges totals. A third thread runs OPTIMIZE and VACUUM on both tables,
by turns that the seed draws, until the jobs have ended; then once more, so that a table that lost a
file of a newer version by it could not be read.
"""

import json
import random
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.support.running.delta_jobs import COUNTS, ROWS, read, table
from tests.support.running.in_process import job_over, write_lines
from unskew.jobs.engine.retries import run_with_retries
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import session
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.follower import Follower
from unskew.jobs.sinks.tables.table import DELTA_SETTINGS

BATCHES, ROWS_OF_BATCH, COUNTRIES = 5, 60, 5
_COMMANDS = ["OPTIMIZE", "OPTIMIZE", "VACUUM"]
_PAUSE_SECONDS_MAX = 0.5


def make_rows(seed: int) -> list[list[dict[str, Any]]]:
    """Make the records of each batch: a country and a number that is met once."""
    rng = random.Random(seed)
    return [
        [
            {"country": f"c{min(int(rng.expovariate(1)), COUNTRIES - 1)}", "amount": number}
            for number in range(batch * ROWS_OF_BATCH, (batch + 1) * ROWS_OF_BATCH)
        ]
        for batch in range(BATCHES)
    ]


class Retries(Follower):
    """Counts how often a job was started again."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def on_retry(self, reason: str, seconds: float) -> None:
        self.reasons.append(reason)


class JobThread(threading.Thread):
    """A job, started again after conflicts as `unskew run` does."""

    def __init__(self, spark: SparkSession, folder: Path, name: str, changes: Any) -> None:
        super().__init__(daemon=True)
        source = {"type": "files", "path": str(folder / "in"), "files_per_batch": 1}
        sinks = [table(folder / name, partition_by=["country"] if name == "rows" else [])]
        job = job_over(source, folder, name, **{**changes, "sinks": sinks})
        self.job = job.model_copy(update={"name": name})
        self.retries = Retries()
        self.error: BaseException | None = None
        self._spark = spark

    def run(self) -> None:
        followers, stop = (self.retries,), Stop()
        try:
            run_with_retries(
                self.job, lambda: Service(self.job, self._spark, followers, stop), followers, stop
            )
        except BaseException as error:  # noqa: BLE001 - told by whoever waits for it
            self.error = error


def compact(spark: SparkSession, path: Path, command: str, done: Counter[str]) -> None:
    """Run OPTIMIZE or VACUUM on a table, if it is there; count how it ended."""
    if not list(path.glob("_delta_log/*.json")):
        return
    name = f"{command} {path.name}"
    try:
        answer = spark.sql(f"{command} delta.`{path}`").collect()
    except (PySparkException, Py4JJavaError) as error:
        # The text of an exception that PySpark does not know is Java's to give.
        java = getattr(error, "java_exception", None)
        text = str(error) if java is None else str(java.toString())
        if "CONCURRENT" not in text.upper():
            raise RuntimeError(f"{name}: {text}") from None
        done[f"{name}: came too late"] += 1
        return
    merged = command == "VACUUM" or answer[0]["metrics"]["numFilesRemoved"] > 0
    done[name if merged else f"{name}: nothing to do"] += 1


def main(folder: Path, seed: int) -> int:
    """Run the jobs; 1 if one failed."""
    for number, rows in enumerate(make_rows(seed)):
        write_lines(folder / "in", f"{number}.json", rows)
    settings = {
        "spark.master": "local[2]",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.memory": "1g",
        **DELTA_SETTINGS,
    }
    rng, done = random.Random(seed), Counter[str]()
    with session("compacted", settings, ["delta"]) as spark:
        jobs = [JobThread(spark, folder, "rows", ROWS), JobThread(spark, folder, "counts", COUNTS)]
        other = spark.newSession()
        for job in jobs:
            job.start()
        while any(job.is_alive() for job in jobs):
            compact(other, folder / rng.choice(["rows", "counts"]), rng.choice(_COMMANDS), done)
            time.sleep(rng.uniform(0, _PAUSE_SECONDS_MAX))
        for name in ("rows", "counts"):
            compact(other, folder / name, "OPTIMIZE", done)
            compact(other, folder / name, "VACUUM", done)
        shown = {
            "done": done,
            "retries": {job.job.name: job.retries.reasons for job in jobs},
            "tables": {name: read(spark, folder / name) for name in ("rows", "counts")},
        }
    (folder / "shown.json").write_text(json.dumps(shown))
    for job in jobs:
        if job.error is not None:
            print(f"{job.job.name}: {job.error}", file=sys.stderr, flush=True)
    return int(any(job.error for job in jobs))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), int(sys.argv[2])))
