"""Quantile sketches whose shuffle files are lost with an executor, once the merge has begun.

Spark runs the lost partials again, and compares the checksums of what they write with those of the
first time: a sketch that depended on chance would end the job there, or be merged with another's
halves.
"""

import json
import random
import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.storm.faults.executors import lose_executor
from tests.storm.harness.counts import Counts
from tests.storm.harness.points import Checkpoint, wait_for_point
from tests.storm.oracle.world import Routing, world_of
from tests.support.running.cluster import Cluster, cluster
from tests.support.running.in_process import write_lines
from tests.support.running.job_process import Running, running

pytestmark = [pytest.mark.spark, pytest.mark.long]

BATCHES = 2
ROWS = 8_000
KEYS = ["hot", "hot", "hot", "warm", "warm", "cold"]
SHARES = [0.5, 0.99]
PARTITIONS = 4
MERGE_PARTITIONS = 2
BOUND = 0.0133 + 1 / 200
"""Of Spark's merge, and of a partial of at most 200 values."""
JOB = """\
name: sketches
source: {{type: files, path: {folder}/in, files_per_batch: 1}}
decode: {{type: json, schema: "who STRING, ms DOUBLE"}}
operator:
  type: aggregate
  key: who
  columns: {{events: count(*), ms: {{quantiles: ms, at: {shares}}}}}
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
"""
KEEP = """\
import json
from pathlib import Path


def write(results, batch_id, folder):
    rows = [row.asDict() for row in results.collect()]
    Path(folder, f"{batch_id}.json").write_text(json.dumps(rows))
"""


def write_job(folder: Path, master: str) -> dict[str, list[float]]:
    """The job, its input, and the values of each key."""
    generator = np.random.default_rng(23)
    values: dict[str, list[float]] = defaultdict(list)
    for batch in range(BATCHES):
        rows = []
        for index, number in enumerate(generator.lognormal(3, 1, ROWS).tolist()):
            who = KEYS[index % len(KEYS)]
            values[who].append(number)
            rows.append({"who": who, "ms": number})
        write_lines(folder / "in", f"{batch}.json", rows)
    (folder / "out").mkdir()
    (folder / "keep_results.py").write_text(KEEP)
    (folder / "job.yaml").write_text(
        JOB.format(
            shares=SHARES,
            partitions=PARTITIONS,
            merge_partitions=MERGE_PARTITIONS,
            folder=folder,
            master=master,
        )
    )
    return values


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
            lose_executor(executors, checkpoint, rng, counts)
            struck = position.batch
        while len(spark.executors()) < 2 and not has_ended():
            time.sleep(0.1)
    return counts


@pytest.mark.timeout(900)
def test_a_retried_stage_neither_aborts_nor_mixes_sketches(tmp_path: Path) -> None:
    with cluster(tmp_path / "spark") as spark:
        values = write_job(tmp_path, spark.url)
        words = ["run", str(tmp_path / "job.yaml")]
        with running(words, tmp_path / "log") as job:
            counts = lose_shuffle_files(job, tmp_path, spark)
            assert job.process.wait(60) == 0, job.text()
    assert counts.times("executor killed with its shuffle files, the merge begun") >= 1, counts
    last = {}
    for batch in range(BATCHES):
        for row in json.loads((tmp_path / "out" / f"{batch}.json").read_text()):
            last[row["who"]] = row
    assert {who: row["events"] for who, row in last.items()} == {
        who: len(numbers) for who, numbers in values.items()
    }
    for who, numbers in values.items():
        ordered = np.sort(numbers)
        ranks = [np.searchsorted(ordered, value) / ordered.size for value in last[who]["ms"]]
        assert np.abs(np.subtract(ranks, SHARES)).max() <= BOUND, who
