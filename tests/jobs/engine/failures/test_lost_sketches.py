"""Sketches whose shuffle files are lost with an executor, once the merge has begun.

Spark runs the lost partials again, and compares the checksums of what they write with those of the
first time: a sketch that depended on chance would end the job there, or be merged with another's
halves.
"""

import json
import random
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.storm.faults.executors import lose_executors
from tests.storm.harness.counts import Counts
from tests.storm.harness.points import Checkpoint, wait_for_point
from tests.storm.oracle.world import Routing, world_of
from tests.support.running.cluster import Cluster, cluster
from tests.support.running.in_process import write_lines
from tests.support.running.job_process import Running, running

pytestmark = [pytest.mark.spark, pytest.mark.long]

BATCHES = 2
ROWS = 8_000
USERS = 3_000
KEYS = ["hot", "hot", "hot", "warm", "warm", "cold"]
SHARES = [0.5, 0.99]
PARTITIONS = 4
MERGE_PARTITIONS = 2
QUANTILE_BOUND = 0.0133 + 1 / 200
"""Of Spark's merge, and of a partial of at most 200 values."""
USERS_BOUND = 0.05
"""Three times the standard error of HyperLogLog with 2^12 registers."""
OPERATORS = {
    "quantiles": {
        "type": "aggregate",
        "key": {"key": "who"},
        "columns": {"records": "count(*)", "ms": {"quantiles": "ms", "at": SHARES}},
    },
    "hashtags": {"type": "hashtags", "hashtags": "array(who)"},
}
LOST = "executor killed with its shuffle files, the merge begun"
JOB = """\
name: sketches
source: {{type: files, path: {folder}/in, files_per_batch: 1}}
decode: {{type: json, schema: "who STRING, user STRING, ms DOUBLE, at TIMESTAMP"}}
event_time: at
window: none
operator: {operator}
grouping: level
partitions: {partitions}
merge: {{partitions: {merge_partitions}, output: update}}
trigger: available_now
sinks:
  - type: python
    file: {folder}/keep_results.py
    function: write
    options: {{folder: {folder}/out}}
dead_letters: {{type: files, path: {folder}/dead}}
checkpoint: {folder}/checkpoint
spark:
  spark.master: {master}
  spark.executor.memory: 512m
  spark.scheduler.minRegisteredResourcesRatio: "1.0"
  spark.shuffle.io.connectionTimeout: 15s
  spark.shuffle.io.retryWait: 1s
  # Both executors get partials: by default a task waits for the one that has its rows.
  spark.locality.wait: 0s
  spark.eventLog.enabled: "true"
  spark.eventLog.rolling.enabled: "false"
  spark.eventLog.compress: "false"
  spark.eventLog.dir: file:{folder}/events
"""
KEEP = """\
import json
from pathlib import Path


def write(results, batch_id, folder):
    rows = [row.asDict() for row in results.collect()]
    Path(folder, f"{batch_id}.json").write_text(json.dumps(rows, default=str))
"""


@dataclass
class Written:
    """What was written of each key."""

    values: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    @property
    def records(self) -> dict[str, int]:
        return {who: len(values) for who, values in self.values.items()}


@pytest.fixture(scope="module")
def spark_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("spark") / "cluster") as started:
        yield started


def write_input(folder: Path) -> Written:
    generator = np.random.default_rng(23)
    written = Written()
    for batch in range(BATCHES):
        rows = []
        for index, number in enumerate(generator.lognormal(3, 1, ROWS).tolist()):
            who, user = KEYS[index % len(KEYS)], f"u{generator.integers(0, USERS)}"
            written.values[who].append(number)
            written.users[who].add(user)
            rows.append({"who": who, "user": user, "ms": number, "at": "2026-03-01T12:00:00Z"})
        write_lines(folder / "in", f"{batch}.json", rows)
    return written


def write_job(folder: Path, operator: str, master: str) -> Path:
    for name in ("out", "events"):
        (folder / name).mkdir()
    (folder / "keep_results.py").write_text(KEEP)
    text = JOB.format(
        operator=json.dumps(OPERATORS[operator]),
        partitions=PARTITIONS,
        merge_partitions=MERGE_PARTITIONS,
        folder=folder,
        master=master,
    )
    (folder / "job.yaml").write_text(text)
    return folder / "job.yaml"


def lose_shuffle_files(job: Running, folder: Path, spark: Cluster) -> Counts:
    """Kill an executor in the merge of each batch, once, until the job ends."""
    world = replace(world_of(1), merge_partitions=MERGE_PARTITIONS)
    checkpoint = Checkpoint(folder / "checkpoint", world, Routing("level", PARTITIONS, 0, 1))
    counts, rng = Counts(), random.Random(5)

    def has_ended() -> bool:
        return job.process.poll() is not None

    struck = -1
    while not has_ended():
        # A batch is struck once: run again, it is at the same point at once.
        if checkpoint.committed() < struck:
            time.sleep(0.1)
            continue
        position = wait_for_point(checkpoint, "in the merge", has_ended, 300)
        if position is None:
            break
        if executors := spark.executors():
            lose_executors(executors, checkpoint, rng, counts, with_shuffle_files=True)
            struck = position.batch
        while len(spark.executors()) < 2 and not has_ended():
            time.sleep(0.1)
    return counts


def count_retried_partials(events: Path) -> int:
    """How many stages that make partials were run again to their end, as Spark recorded it."""
    (log,) = events.glob("app-*")
    stages = [
        event["Stage Info"]
        for event in map(json.loads, log.read_text().splitlines())
        if event["Event"] == "SparkListenerStageCompleted"
    ]
    return sum(
        stage["Stage Attempt ID"] > 0
        and "Failure Reason" not in stage
        and any("MapInArrow" in rdd.get("Scope", "") for rdd in stage["RDD Info"])
        for stage in stages
    )


def read_last_results(folder: Path) -> dict[str, dict[str, Any]]:
    last = {}
    for batch in range(BATCHES):
        for row in json.loads((folder / f"{batch}.json").read_text()):
            last[row["key"]] = row
    return last


def assert_quantiles(results: dict[str, dict[str, Any]], written: Written) -> None:
    assert {who: row["records"] for who, row in results.items()} == written.records
    for who, numbers in written.values.items():
        ordered = np.sort(numbers)
        ranks = [np.searchsorted(ordered, value) / ordered.size for value in results[who]["ms"]]
        assert np.abs(np.subtract(ranks, SHARES)).max() <= QUANTILE_BOUND, who


def assert_hashtags(results: dict[str, dict[str, Any]], written: Written) -> None:
    assert {who: row["posts"] for who, row in results.items()} == written.records
    for who, users in written.users.items():
        assert results[who]["users"] == pytest.approx(len(users), rel=USERS_BOUND), who


CHECKS = {"quantiles": assert_quantiles, "hashtags": assert_hashtags}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("operator", OPERATORS)
def test_a_retried_stage_neither_aborts_nor_mixes_sketches(
    spark_cluster: Cluster, tmp_path: Path, operator: str
) -> None:
    written = write_input(tmp_path)
    job_file = write_job(tmp_path, operator, spark_cluster.url)
    with running(["run", str(job_file)], tmp_path / "log") as job:
        counts = lose_shuffle_files(job, tmp_path, spark_cluster)
        assert job.process.wait(60) == 0, job.text()
    assert counts.times(LOST) >= 1, counts
    assert count_retried_partials(tmp_path / "events") >= 1
    CHECKS[operator](read_last_results(tmp_path / "out"), written)
