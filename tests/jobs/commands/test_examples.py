"""The examples of the documentation run, and show what they say."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from pyspark.sql import SparkSession

from unskew.grouping.spark.journal import KEPT_BATCHES, Journal
from unskew.grouping.spark.route import route

pytestmark = pytest.mark.spark


def example(root: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, root / "docs" / "examples" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_a_users_own_operator_behind_route(
    root: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # As in its own session of eight slots: a task a file.
    spark.conf.set("spark.sql.files.minPartitionNum", "8")
    try:
        example(root, "route_before_your_own_operator").main(spark, tmp_path)
    finally:
        spark.conf.unset("spark.sql.files.minPartitionNum")

    lines = capsys.readouterr().out.splitlines()
    shows = [re.findall(r"(\d+) rows, (\d+) profiles", line) for line in lines[:3]]
    (source, hashed, routed) = ([int(number) for number in each[0]] for each in shows)
    assert hashed[0] > 12_000
    assert routed[0] <= 24_000 / 8 + 8
    # A profile a user and task, against one a user and a few more of the busy one.
    assert source[1] > 4 * 2001
    assert hashed[1] == 2001 <= routed[1] <= 2001 + 8 * 8
    assert lines[3].startswith("the busiest user: {'user': 'busy', 'risk': ")
    assert lines[3].endswith("'events': 12000}")
    assert lines[4] == "batch and stream agree: True"


@pytest.mark.slow
def test_steps_whose_records_must_move(
    root: Path, spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    example(root, "where_records_must_move").main(spark)

    lines = capsys.readouterr().out.splitlines()
    figures = [[int(each) for each in re.findall(r"\d+", line)] for line in lines]
    read, joined, routed = (line[0] for line in figures[:3])
    assert read == 12_000 / 8
    assert joined > 6000
    assert routed <= 12_000 / 8 + 8
    one_task, round_robin, hashed, routed_users = figures[3:7]
    assert one_task == [12_000, 1001]
    assert round_robin[0] <= routed_users[0] + 8 <= 12_000 / 8 + 16
    assert hashed[0] >= 6000
    assert routed_users[1] < round_robin[1] / 3
    for at_source, hashed, moved in (figures[7:10], figures[10:13]):
        assert moved[0] < at_source[0] / 3
        # As many as `route`, but for half of all rows in one partition.
        assert hashed[0] <= at_source[0] / 3
        assert hashed[-1] >= 6000
        assert moved[-1] <= 12_000 / 8 + 8
    assert figures[7][0] == 8 * 751
    assert figures[9][0] >= 1001
    assert figures[10][0] == 751
    assert [line[0] for line in figures[13:]] == [6, 1]


@pytest.mark.slow
def test_a_users_own_table_behind_route(
    root: Path, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    example(root, "route_before_a_table").main(spark, tmp_path)

    lines = capsys.readouterr().out.splitlines()
    hashed, routed = (eval(line.partition(":")[2]) for line in lines[1:3])  # noqa: S307 - ours
    assert sum(hashed) == sum(routed) == 6000
    assert max(hashed) > 3000
    assert max(routed) - min(routed) <= 3
    in_batch, in_stream = (int(count) for count in lines[3].split()[1:])
    # 21 countries, and for each source's share at most a pair less than there are writers.
    assert 21 < in_batch <= 21 + 3 * 7
    assert in_stream <= 3 * (21 + 2 * 7)
    assert lines[4:] == ["batch 6000 3000", "stream 6000 3000"]


@pytest.mark.slow
def test_route_keeps_the_newest_batches_of_its_journal(spark: SparkSession, tmp_path: Path) -> None:
    batches = KEPT_BATCHES + 4
    (tmp_path / "in").mkdir()
    for batch in range(batches):
        (tmp_path / "in" / f"{batch:02}").write_text(f"{batch}\n")
    lines = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
    journal = Journal(str(tmp_path / "checkpoint" / "unskew"))
    routed = route(lines, key="value", grouping="shuffle", partitions=2, journal=journal)
    query = (
        routed.writeStream.format("memory")
        .queryName("kept")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()

    assert spark.table("kept").count() == batches
    assert journal.batches() == list(range(batches - KEPT_BATCHES - 1, batches))
