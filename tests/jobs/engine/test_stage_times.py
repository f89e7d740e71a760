"""When a batch's stages ran and what its writers took, as Spark itself tells it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from unskew.config.loader import load_job
from unskew.jobs.engine.stage_times import SparkJobs, StageTimes, read_writer_seconds
from unskew.jobs.engine.table_writers import sum_by_writer

RUN = "a-run"


@contextmanager
def batch_of_run(spark: SparkSession, batch: int) -> Iterator[None]:
    """Jobs of a query, described as Spark's micro-batches describe theirs."""
    spark.sparkContext.setJobGroup(RUN, f"a name<br/>runId = {RUN}<br/>batch = {batch}")
    try:
        yield
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
        spark.sparkContext.setLocalProperty("spark.job.description", None)


@pytest.mark.spark
def test_a_batchs_stages_are_read_once_also_when_the_next_has_begun(spark: SparkSession) -> None:
    job = load_job("word_count")
    jobs = SparkJobs(spark)
    spark.range(10).collect()  # of nobody's run
    began = time.time()
    with batch_of_run(spark, 0):
        spark.range(1000, numPartitions=2).repartition(2).groupBy("id").count().collect()
    with batch_of_run(spark, 1):
        spark.range(10, numPartitions=1).collect()
    stages = jobs.read_stages(RUN, 0)
    plain = load_job("word_count", {"grouping": "none"})
    by_spark = StageTimes(plain, spark).read_batch(stages, plain)
    assert by_spark is not None
    assert (by_spark.native, by_spark.work, by_spark.merge) == (True, None, 1)
    read = StageTimes(job, spark).read_batch(stages, job)
    assert read is not None
    assert (read.shuffled, read.merges) == (True, True)
    assert read.slots == spark.sparkContext.defaultParallelism
    assert [stage.reads_shuffle for stage in read.stages[:2]] == [False, True]
    assert read.work == 1
    for stage in read.stages:
        assert began - 1 < stage.started <= stage.ended < time.time() + 1
    assert jobs.read_stages(RUN, 0) == []
    assert StageTimes(job, spark).read_batch([], job) is None
    assert len(jobs.read_stages(RUN, 1)) == 1


@pytest.mark.spark
def test_a_batchs_seconds_are_those_of_the_tasks_that_wrote_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    jobs = SparkJobs(spark)
    with batch_of_run(spark, 0):
        spark.range(30, numPartitions=3).write.parquet(str(tmp_path / "rows"))
        spark.range(9, numPartitions=1).write.parquet(str(tmp_path / "checkpoint of a log"))
    with batch_of_run(spark, 1):
        spark.range(20, numPartitions=2).write.parquet(str(tmp_path / "rows of the next batch"))
    first, second = (read_writer_seconds(jobs, jobs.read_stages(RUN, n)) for n in range(2))
    assert [sorted(each) for each in (first, second)] == [[0, 1, 2], [0, 1]]
    assert all(taken > 0 for taken in [*first.values(), *second.values()])


def test_seconds_that_are_not_known_are_none_and_not_zero() -> None:
    files = [(0, 10), (2, 5), (2, 6)]
    known = sum_by_writer(files, {0: 0.5, 1: 0.25, 2: 1.0}, 4)
    assert known.files.tolist() == [1, 0, 2, 0]
    assert known.bytes.tolist() == [10, 0, 11, 0]
    assert known.seconds is not None
    assert known.seconds.tolist() == [0.5, 0.25, 1.0, 0.0]
    for seconds in ({}, {0: 0.5, 1: 0.25}):
        assert sum_by_writer(files, seconds, 4).seconds is None
