"""When a batch's stages ran, as Spark itself tells it."""

import time

import pytest
from pyspark.sql import SparkSession

from unskew.config.loader import load_job
from unskew.jobs.engine.stage_times import StageTimes

pytestmark = pytest.mark.spark


def test_stages_of_a_run_are_read_once_with_their_times(spark: SparkSession) -> None:
    job = load_job("word_count")
    times = StageTimes(job, spark)
    spark.range(10).collect()  # of nobody's run
    began = time.time()
    spark.sparkContext.setJobGroup("a-run", "a batch")
    try:
        spark.range(1000, numPartitions=2).repartition(2).groupBy("id").count().collect()
    finally:
        spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    deadline = time.monotonic() + 10
    read = times.read("a-run", job.grouping)
    while read is None and time.monotonic() < deadline:
        time.sleep(0.1)
        read = times.read("a-run", job.grouping)
    assert read is not None
    assert (read.shuffled, read.merges) == (True, True)
    assert read.slots == spark.sparkContext.defaultParallelism
    assert [stage.reads_shuffle for stage in read.stages[:2]] == [False, True]
    assert read.work == 1
    for stage in read.stages:
        assert began - 1 < stage.started <= stage.ended < time.time() + 1
    assert times.read("a-run", job.grouping) is None
