"""After `warm_up` there is nothing left to compile."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from unskew.grouping.spark.route import route
from unskew.grouping.spark.warm_up import start_workers

# As a query's tasks do it: batch by batch, with a journal, and with reports from the second on.
TASKS = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa
from unskew.grouping.spark.journal import Journal
from unskew.grouping.registry import create
from unskew.grouping.spark.warm_up import warm_up
from unskew.grouping.spark.report import PartitionReport
from unskew.grouping.spark.router import Router

name, cache, folder = sys.argv[1:]
warm_up(create(name, partitions=4, seed=1))
compiled = sorted(Path(cache).rglob("*.nbc"))
assert compiled
journal = Journal(folder)
router = Router(name, 4, 1, 2, {}, journal)
for batch in range(4):
    for source in range(2):
        grouping = router.restore_grouping(batch, source)
        keys = pa.array(np.random.default_rng(batch).zipf(1.5, 20_000).astype(np.uint64)).to_numpy()
        times = pa.array(np.arange(20_000) + batch).to_numpy()
        for _ in grouping.route_chunks([(keys, times), (keys[:0], times[:0]), (keys, times)]):
            pass
        journal.write_state(batch, source, grouping.snapshot())
    for number in range(4):
        hashes = np.arange(9, dtype=np.uint64)
        report = PartitionReport(
            records=number + 1, keys=9, busy_seconds=0.5,
            heavy_hashes=hashes, heavy_records=np.arange(9), heavy_seconds=np.arange(9.0),
        )
        journal.write_report(batch, number, report.to_snapshot(4))
if name == "level":
    # Flat keys over six sources: they agree on a plan, and follow it.
    rng, flat = np.random.default_rng(1), Journal(folder + "-flat")
    router = Router(name, 64, 1, 6, {"slack": 0.2}, flat)
    for batch in range(3):
        for source in range(6):
            grouping = router.restore_grouping(batch, source)
            grouping.route(rng.integers(0, 3000, 20_000).astype(np.uint64))
            flat.write_state(batch, source, grouping.snapshot())
    assert grouping.state["plan_used"][0] == 1
    # A lone source whose keys would cost too many pairs at their homes.
    alone, keys = create(name, partitions=72), np.random.default_rng(1).zipf(1.6, 50_000)
    keys = keys.astype(np.uint64)
    alone.route(keys)
    exact = create(name, partitions=72, chunk_records=keys.size)
    exact.route(keys)
    assert alone.signals()["extra_pairs"] < exact.signals()["extra_pairs"]
late = [path.name for path in sorted(Path(cache).rglob("*.nbc")) if path not in compiled]
assert not late, late
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fish", "level", "posg"])
def test_tasks_find_all_machine_code_in_the_cache(name: str, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    words = [sys.executable, "-c", TASKS, name, str(cache), str(tmp_path / "journal")]
    done = subprocess.run(
        words,
        # Which code is compiled is looked at, not how fast it is.
        env={"NUMBA_CACHE_DIR": str(cache), "NUMBA_OPT": "0", "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.spark
def test_each_slot_has_a_worker_that_has_loaded_before_the_first_batch(
    spark: SparkSession, tmp_path: Path
) -> None:
    slots = spark.sparkContext.defaultParallelism

    def load() -> None:
        (tmp_path / str(os.getpid())).touch()
        time.sleep(1)  # so that each task needs a worker of its own

    def tell(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"pid": [os.getpid()]})

    start_workers(spark, load).join()
    started = {int(file.name) for file in tmp_path.iterdir()}
    assert len(started) == slots
    batch = spark.range(slots, numPartitions=slots).mapInArrow(tell, "pid BIGINT").collect()
    assert {row["pid"] for row in batch} <= started


@pytest.mark.spark
def test_a_stream_is_planned_while_its_workers_start(spark: SparkSession, tmp_path: Path) -> None:
    slots = spark.sparkContext.defaultParallelism
    entered, released = tmp_path / "entered", tmp_path / "released"
    entered.mkdir()

    def occupy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        (entered / str(os.getpid())).touch()
        until = time.monotonic() + 60
        while not released.exists() and time.monotonic() < until:
            time.sleep(0.05)
        yield from batches

    busy = spark.range(slots, numPartitions=slots).mapInArrow(occupy, "id BIGINT")
    slots_in_use = threading.Thread(target=busy.collect)
    slots_in_use.start()
    while len(list(entered.iterdir())) < slots:
        time.sleep(0.05)
    routed = route(spark.readStream.format("rate").load(), key="value", partitions=2)
    waited = not slots_in_use.is_alive()
    released.touch()
    slots_in_use.join()
    assert "partition_key" in routed.columns
    assert not waited, "route waited for its workers, and they for slots"
