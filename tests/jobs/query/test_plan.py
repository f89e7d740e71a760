"""Filters on a routed stream, and a job beside `route`: each row is routed once, and alike.

What Spark makes of whole jobs is in `tests/jobs/engine/test_matrix.py`, which runs them.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from tests.support.oracles import OPERATORS, SCHEMA, WINDOWS, records
from tests.support.running.in_process import Ran, write_lines
from tests.support.running.plans import CountingRouter, read_evaluated
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.route import route
from unskew.grouping.spark.router import PARTITION_KEY, Router, route_hashes
from unskew.jobs.observe.batches.batch import BatchDone

pytestmark = pytest.mark.spark


def hashes_of(spark: SparkSession, keys: list[str]) -> list[int]:
    """Spark's own hashes of keys, sorted."""
    rows = spark.createDataFrame([(key,) for key in keys], "key string")
    return sorted(row[0] for row in rows.select(sf.xxhash64("key")).collect())


def _unmarked(frame: DataFrame, router: Router) -> DataFrame:
    """`route_hashes` without its mark: what the tests below must see."""
    udf: Any = arrow_udf(router.route_keys, returnType="int")  # type: ignore[call-overload]
    routed = frame.withColumn(PARTITION_KEY, udf(sf.col("hash")))
    return routed.repartitionById(router.partitions, sf.col(PARTITION_KEY))


@pytest.mark.parametrize("marked", [True, False])
def test_a_filter_on_the_partition_routes_no_row_twice(
    spark: SparkSession, tmp_path: Path, marked: bool
) -> None:
    router = CountingRouter("partial_key", 4, folder=str(tmp_path))
    frame = spark.range(1000, numPartitions=2).select(sf.col("id").alias("hash"))
    made = route_hashes(frame, sf.col("hash"), router) if marked else _unmarked(frame, router)

    kept = made.where("partition_key in (1, 2) and hash % 2 = 0").collect()

    partitions = {row.partition_key for row in kept}
    if marked:
        assert read_evaluated(tmp_path) == list(range(1000))
        assert partitions == {1, 2}
    else:  # the check bites; what was filtered by is not what is seen
        assert len(read_evaluated(tmp_path)) > len(set(read_evaluated(tmp_path)))
        assert partitions == {0, 1, 2, 3}


def test_a_filter_in_a_stream_routes_no_row_twice(spark: SparkSession, tmp_path: Path) -> None:
    rows = records(4, 100)
    for batch in range(2):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::2])
    (tmp_path / "evaluated").mkdir()
    router = CountingRouter("w_choices", 3, folder=str(tmp_path / "evaluated"))
    lines = spark.readStream.option("maxFilesPerTrigger", "1").text(str(tmp_path / "in"))
    routed = route_hashes(lines, sf.xxhash64("value"), router)
    query = (
        routed.where(f"{PARTITION_KEY} <> 1")
        .select("value", PARTITION_KEY, sf.spark_partition_id().alias("actual"))
        .writeStream.format("memory")
        .queryName("filtered")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    rows_kept = spark.table("filtered").collect()
    assert 0 < len(rows_kept) < 100
    assert all(row.actual == row.partition_key != 1 for row in rows_kept)
    texts = [json.dumps(row) for row in rows]
    assert read_evaluated(tmp_path / "evaluated") == hashes_of(spark, texts)


def test_a_job_routes_as_route_does(spark: SparkSession, tmp_path: Path) -> None:
    rows = records(5, 200)
    for batch in range(2):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::2])
    job = Ran(
        spark, tmp_path, "job", operator=OPERATORS["vwap"], grouping={"type": "w_choices"}, seed=7
    )
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", "1")
    journal = Journal(str(tmp_path / "own" / "unskew"))
    routed = route(
        frame.json(str(tmp_path / "in")),
        key="symbol",
        grouping="w_choices",
        partitions=3,
        journal=journal,
        seed=7,
    )
    sink = routed.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "own"))
    sink.trigger(availableNow=True).start().awaitTermination()

    for batch in range(2):
        assert journal.routes(batch) == job.journal.routes(batch)
        (mine,), (its,) = journal.states(batch).values(), job.journal.states(batch).values()
        assert mine.checksum() == its.checksum()
        assert journal.routes(batch)[0].records == 100


class _CountsCompilations(Ran):
    """After each batch: how much code Spark had compiled until then."""

    def __init__(self, spark: SparkSession, *given: Any, **changes: Any) -> None:
        metrics: Any = spark._jvm.org.apache.spark.metrics.source.CodegenMetrics  # type: ignore[union-attr]
        self._count = metrics.METRIC_COMPILATION_TIME().getCount
        self.compiled: list[int] = []
        super().__init__(spark, *given, **changes)

    def on_batch_done(self, done: BatchDone) -> None:
        super().on_batch_done(done)
        self.compiled.append(self._count())


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_no_batch_compiles_what_those_before_it_did(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    rows = records(7, 40)
    for batch in range(4):
        write_lines(tmp_path / "in", f"{batch}.json", rows[batch::4])

    ran = _CountsCompilations(
        spark,
        tmp_path,
        grouping,
        operator=OPERATORS["word_count"],
        grouping={"type": grouping},
        window=WINDOWS["none"],
        lateness=None,
        # Not a table in memory: its rows have the batch's number, which Spark compiles.
        sinks=[{"type": "console"}],
    )

    assert len(ran.compiled) == 4
    assert ran.compiled[2] == ran.compiled[3]


def test_what_a_partial_of_paced_carries_reaches_the_merge(
    spark: SparkSession, tmp_path: Path
) -> None:
    write_lines(tmp_path / "in", "0.json", records(5, 10))

    ran = Ran(
        spark,
        tmp_path,
        "carried",
        operator={"type": "paced", "key": "symbol", "cost": "0 s", "partial_bytes": 16},
        grouping={"type": "level"},
        window=WINDOWS["none"],
        lateness=None,
    )

    # Spark leaves out of a merge what no result is made of, and out of what is sent to it.
    assert {total["ballast_bytes"] for total in ran.last.values()} == {16}
    plan = ran.query._jsq.streamingQuery().lastExecution().executedPlan().toString()
    assert "max(ballast" in plan
    # The pane of a row follows from its event time, so rows do not bring it along.
    (crossing,) = [line for line in plan.splitlines() if "MapInArrow" in line]
    assert "event_time" in crossing
    assert "pane" not in crossing
