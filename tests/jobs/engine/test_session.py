"""How a job's queries treat the files of their checkpoint."""

from pathlib import Path
from typing import Any

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from unskew import load_job
from unskew.config.errors import ExternalError
from unskew.jobs.checkpoint import lock
from unskew.jobs.checkpoint.lock import check_not_in_use, lock_checkpoint
from unskew.jobs.engine.session import give_head_start, lock_in_jvm, rename_within_jvm

pytestmark = pytest.mark.spark

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"


@pytest.mark.parametrize("location", ["/data/c", "data/c", "file:/data/c", "file:///data/c"])
def test_on_a_local_disk_queries_rename_files_themselves(
    spark: SparkSession, location: str
) -> None:
    with rename_within_jvm(spark, location):
        assert str(spark.conf.get(MANAGER)).endswith("FileSystemBasedCheckpointFileManager")
    assert spark.conf.get(MANAGER, None) is None


@pytest.mark.parametrize("location", ["hdfs://name/c", "s3a://bucket/c", "gs://bucket/c"])
def test_elsewhere_they_do_what_spark_does(spark: SparkSession, location: str) -> None:
    with rename_within_jvm(spark, location):
        assert spark.conf.get(MANAGER, None) is None


def test_the_users_own_choice_stays(spark: SparkSession) -> None:
    spark.conf.set(MANAGER, "my.Manager")
    try:
        with rename_within_jvm(spark, "/data/c"):
            assert spark.conf.get(MANAGER) == "my.Manager"
        assert spark.conf.get(MANAGER) == "my.Manager"
    finally:
        spark.conf.unset(MANAGER)


def test_a_checkpoint_made_the_other_way_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    words, checkpoint, name = tmp_path / "words", tmp_path / "checkpoint", "goes_on"
    words.mkdir()

    def drain() -> dict[str, int]:
        counted = spark.readStream.text(str(words)).groupBy("value").agg(sf.count("*").alias("n"))
        writer = counted.writeStream.outputMode("complete").format("memory").queryName(name)
        query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True)
        query.start().awaitTermination()
        return {row.value: row.n for row in spark.table(name).collect()}

    (words / "1").write_text("a\nb\na\n")
    assert drain() == {"a": 2, "b": 1}
    (words / "2").write_text("a\nc\n")
    with rename_within_jvm(spark, str(checkpoint)):
        assert drain() == {"a": 3, "b": 1, "c": 1}
    (words / "3").write_text("c\n")
    assert drain() == {"a": 3, "b": 1, "c": 2}
    assert list(checkpoint.rglob(".*.crc")), "no checksums beside the files"


def test_the_jvm_holds_a_lock_of_its_own(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "JVM_ENDS_SECONDS", 0.1)
    checkpoint = str(tmp_path / "checkpoint")
    with lock_checkpoint(checkpoint):
        pass  # as a driver that was killed leaves it
    with lock_in_jvm(spark, checkpoint), pytest.raises(ExternalError, match="in use by the JVM"):
        check_not_in_use(checkpoint)
    check_not_in_use(checkpoint)


@pytest.mark.parametrize(("grouping", "jobs"), [("level", 1), ("local", 1), ("none", 0)])
def test_workers_begin_to_start_while_the_query_is_planned(
    spark: SparkSession, grouping: str, jobs: int
) -> None:
    job = load_job("word_count", {"grouping": {"type": grouping}, "checkpoint": "unused"})
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup(None))

    for thread in give_head_start(spark, job):
        thread.join()
    assert len(set(tracker.getJobIdsForGroup(None)) - before) == jobs


def test_what_a_start_calls_is_not_optimized_yet(spark: SparkSession) -> None:
    java: Any = spark._jvm.java.lang
    # The object's own class is hidden from reflection; its interface is not.
    bean = java.Class.forName("java.lang.management.RuntimeMXBean")
    new_array: Any = SparkContext._gateway.new_array
    asked = bean.getMethod("getInputArguments", new_array(java.Class, 0))
    options = list(
        asked.invoke(
            java.management.ManagementFactory.getRuntimeMXBean(), new_array(java.Object, 0)
        )
    )
    assert {"-XX:Tier4InvocationThreshold=50000", "-XX:ReservedCodeCacheSize=512m"} <= {*options}
    # What the job says comes later, and so is valid.
    assert options.index("-XX:Tier4InvocationThreshold=50000") < next(
        at for at, option in enumerate(options) if option.startswith("-Dlog4j2.configurationFile=")
    )
