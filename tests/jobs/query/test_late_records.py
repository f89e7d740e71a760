"""Late records are counted as Spark drops them, and a batch without rows hides no other."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.support.batches import board_value
from tests.support.oracles import EPOCH, OPERATORS, START, WINDOWS, keys_of, windows_of
from tests.support.running.in_process import Ran, utc, write_lines
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.inspection import inspect

pytestmark = [pytest.mark.spark, pytest.mark.slow]

LATENESS = timedelta(seconds=10)
FILES = 6


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


def file_of(number: int) -> list[dict[str, Any]]:
    """Records back to the very first, each file with some that are a minute newer."""
    generator = np.random.default_rng(number)
    seconds = generator.integers(0, 60 * (number + 1), 80).tolist()
    words = ["one", "two", "three", "four five"]
    return [
        {"text": str(generator.choice(words)), "at": (START + timedelta(seconds=at)).isoformat()}
        for at in seconds
    ]


def expected(
    batches: list[list[dict[str, Any]]], window: dict[str, Any], before: int
) -> list[tuple[int, int]]:
    """Late records, and late pairs of window and key, of each batch; by the watermark of the batch
    itself or of one before.
    """
    watermarks, seen, counts = [], EPOCH, []
    for number, rows in enumerate(batches):
        watermarks.append(seen)
        late = watermarks[number - before] if number >= before else EPOCH
        records, pairs = 0, set()
        for row in rows:
            at = datetime.fromisoformat(row["at"])
            windows = list(windows_of(at, window))
            over = {bounds for bounds in windows if bounds[1] <= late}
            words = keys_of(row, "word_count")
            records += len(words) * (len(over) == len(windows))
            pairs |= {(bounds, word) for bounds in over for word in words}
            seen = max(seen, at - LATENESS)
        counts.append((records, len(pairs)))
    return counts


def batches_of(done: list[BatchDone]) -> list[list[dict[str, Any]]]:
    """The rows of each batch: a file each, where there were any."""
    files = iter(range(FILES))
    return [file_of(next(files)) if each.source_records else [] for each in done]


@pytest.mark.parametrize("kind", ["tumbling", "sliding"])
def test_late_records_are_those_that_spark_drops(
    spark: SparkSession, tmp_path: Path, kind: str
) -> None:
    done: list[BatchDone] = []
    for half in (range(FILES // 2), range(FILES // 2, FILES)):
        for number in half:
            write_lines(tmp_path / "in", f"{number}.json", file_of(number))
        ran = Ran(
            spark,
            tmp_path,
            "late",
            operator=OPERATORS["word_count"],
            window=WINDOWS[kind],
            lateness="10 s",
            grouping={"type": "shuffle"},
        )
        done += ran.batches

    batches = batches_of(done)
    oracle = expected(batches, WINDOWS[kind], before=1)
    assert [each.batch for each in done] == list(range(len(done)))
    assert sum(map(bool, batches)) == FILES < len(batches)
    assert [each.late_partials for each in done] == [pairs for _, pairs in oracle]
    assert [each.late_records for each in done] == [
        records if rows else None for (records, _), rows in zip(oracle, batches, strict=True)
    ]
    assert sum(records for records, _ in oracle) > 50
    # The watermark that a batch's progress tells is another: by it more would be late.
    assert oracle != expected(batches, WINDOWS[kind], before=0)
    # The first batch after the restart has late records by what the checkpoint remembers.
    first = next(each for each in done[FILES // 2 + 1 :] if each.source_records)
    assert first.late_records

    batches = inspect(ran.job.checkpoint).data()["batches"]
    assert [(each["batch"], each["late_records"]) for each in batches] == [
        (each.batch, each.late_records) for each in done if each.source_records
    ]


def windowed(spark: SparkSession, folder: Path, files: int, grouping: str) -> tuple[Ran, Board]:
    """A job with tumbling windows over so many files, and its board at the end."""
    for number in range(files):
        write_lines(folder / "in", f"{number}.json", file_of(number))
    ran = Ran(
        spark,
        folder,
        "windowed",
        operator=OPERATORS["word_count"],
        window=WINDOWS["tumbling"],
        lateness="10 s",
        grouping={"type": grouping},
    )
    board = Board("windowed", Health(10.0))
    for done in ran.batches:
        board.on_batch_done(done)
    return ran, board


def test_the_board_shows_what_inspect_does_after_a_batch_without_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    ran, board = windowed(spark, tmp_path, 2, "level")

    assert [bool(done.source_records) for done in ran.batches] == [True, True, False]
    data = inspect(ran.job.checkpoint).data()
    last = data["batches"][-1]
    assert board_value(board, "batches") == 3
    assert board_value(board, "batch_source_records") == len(file_of(1))
    assert board_value(board, "source_records") == len(file_of(0)) + len(file_of(1))
    assert board_value(board, "last_batch_number") == last["batch"] == 1
    assert board_value(board, "batch_records") == last["records"] > len(file_of(1))
    assert board_value(board, "records") == data["records"]
    assert board_value(board, "max_over_mean_ratio") == last["max_over_mean"]
    assert board_value(board, "batch_routing_seconds") == last["routing_seconds"]
    assert sum(board_value(board, "batch_seconds").counts) == 2
    for partition in data["partitions"]:
        label, newest = str(partition["partition"]), partition["last_batch"]
        assert board_value(board, "partition_batch_records", label) == newest["records"]
        assert board_value(board, "partition_state_keys", label) == newest["state_keys"]
        assert board_value(board, "partition_records", label) == partition["records"]


def test_where_spark_computes_the_operator_no_late_records_are_told(
    spark: SparkSession, tmp_path: Path
) -> None:
    _, board = windowed(spark, tmp_path, 3, "none")

    assert board_value(board, "late_partials") > 0
    assert board_value(board, "late_records") is None
