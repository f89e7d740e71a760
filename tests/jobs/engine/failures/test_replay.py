"""What runs twice counts once: retried tasks and killed workers change no total and no route."""

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from tests.support.batches import board_value
from tests.support.oracles import OPERATORS, START, WINDOWS, WindowedKey, expected, records
from tests.support.running.failing_tasks import MOMENTS, STAGES, FailingPipeline, ImpurePipeline
from tests.support.running.in_process import Ran, utc, write_lines
from unskew.config.models.grouping import GROUPING_MODELS, UNROUTED
from unskew.grouping.registry import create
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.query.pipeline import Pipeline

pytestmark = pytest.mark.spark

ROUTED = [name for name in GROUPING_MODELS if name != "none"]
SLOW = ("local", "w_choices")
ROWS = 240
Totals = dict[WindowedKey, dict[str, Any]]


def seen(journal: Journal) -> dict[str, Any]:
    """All that a journal says of routes: by source, and by what each partition got of each key.

    There are so few keys that the reports name them all.
    """
    outcome: dict[str, Any] = {}
    for batch in journal.batches():
        for source, routes in journal.routes(batch).items():
            state = journal.states(batch)[source].checksum()
            outcome[f"{batch} source {source}"] = (routes, state)
        for partition, snapshot in journal.reports(batch).items():
            report = PartitionReport.from_snapshot(snapshot)
            keys = zip(report.heavy_hashes.tolist(), report.heavy_records.tolist(), strict=True)
            outcome[f"{batch} partition {partition}"] = (
                report.records,
                sorted(keys),
                report.sample_hashes.tolist(),
                dict(report.rejected),
            )
            assert report.keys == report.heavy_hashes.size == report.sample_hashes.size
    return outcome


def written(folder: Path) -> Totals:
    """The total of each window and key in a folder of results, which has none twice."""
    files = folder.glob("batch_id=*/*.json")
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    windowed_keys = [(row["window_start"], row["window_end"], row["key"]) for row in rows]
    assert len(set(windowed_keys)) == len(windowed_keys)
    return {
        windowed_key: {"count": row["count"]}
        for windowed_key, row in zip(windowed_keys, rows, strict=True)
    }


class Pair:
    """The same job undisturbed, and with tasks that fail in each of its stages."""

    def __init__(
        self,
        spark: SparkSession,
        folder: Path,
        grouping: str,
        pipeline: type[Pipeline] = FailingPipeline,
    ) -> None:
        rows = [{**row, "text": f"{row['symbol']} {row['user']}"} for row in records(23, ROWS)]
        # So late that they close all other windows. The first comes in the batch before the last:
        # the batch of the last moment has rows, and writes the closed windows too.
        late = [{**row, "at": (START + timedelta(hours=1)).isoformat()} for row in rows[:40]]
        for batch, lines in enumerate((rows[::2], [*rows[1::2], late[0]], late)):
            write_lines(folder / "in", f"{batch}.json", lines)
        self.oracle = {
            (_iso(start), _iso(end), key): total
            for (start, end, key), total in expected(
                rows, "word_count", WINDOWS["tumbling"]
            ).items()
        }
        self.calm, self.calm_totals = self._run(spark, folder, "calm", grouping)
        self.struck, self.struck_totals = self._run(
            spark, folder, "struck", grouping, pipeline=pipeline
        )
        self.strikes = {file.name for file in (folder / "checkpoints" / "struck-struck").iterdir()}

    def _run(
        self, spark: SparkSession, folder: Path, name: str, grouping: str, **more: Any
    ) -> tuple[Ran, Totals]:
        results = folder / f"results-{name}"
        ran = Ran(
            spark,
            folder,
            name,
            # Written by the tasks that merge: those that fail at their end have written all.
            sinks=[{"type": "files", "path": str(results), "format": "json"}],
            operator=OPERATORS["word_count"],
            window=WINDOWS["tumbling"],
            lateness="5 minutes",
            merge={"partitions": 2, "output": "append"},
            grouping={"type": grouping},
            **more,
        )
        return ran, written(results)


def _iso(time: Any) -> str:
    return f"{time.isoformat()}.000Z"


@pytest.fixture(autouse=True)
def _utc() -> Iterator[None]:
    with utc():
        yield


@pytest.mark.parametrize(
    "grouping",
    [
        pytest.param(
            each,
            marks=pytest.mark.slow if each in SLOW else pytest.mark.long,
        )
        for each in ROUTED
    ],
)
def test_failed_tasks_change_no_total_and_no_route(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    pair = Pair(spark, tmp_path, grouping)

    # `auto` begins with `level`, and may change by the time that batches take.
    unrouted = grouping in UNROUTED and grouping != "auto"
    stages = [stage for stage in STAGES if stage != "route" or not unrouted]
    assert pair.strikes == {f"{stage}-{moment}" for stage in stages for moment in MOMENTS}
    assert pair.calm_totals == pair.oracle
    assert pair.struck_totals == pair.oracle
    if unrouted or (grouping != "auto" and not create(grouping, partitions=3).wants_feedback):
        assert seen(pair.struck.journal) == seen(pair.calm.journal)
    _metrics_are_the_journals(pair.struck, pair.calm)


@pytest.mark.long
def test_the_check_of_routes_bites(spark: SparkSession, tmp_path: Path) -> None:
    pair = Pair(spark, tmp_path, "partial_key", ImpurePipeline)

    assert pair.struck_totals == pair.oracle
    assert seen(pair.struck.journal) != seen(pair.calm.journal)


def _metrics_are_the_journals(struck: Ran, calm: Ran) -> None:
    """A task that ran twice is counted once: by records, keys and rejected records."""
    board = _board(struck)
    journal = struck.journal
    reports = [
        {
            number: PartitionReport.from_snapshot(report)
            for number, report in journal.reports(batch).items()
        }
        for batch in journal.batches()
    ]
    for number in range(3):
        mine = [of_batch[number] for of_batch in reports if number in of_batch]
        if not mine:  # under `local`, files of one piece each make one task a batch
            continue
        records = sum(report.records for report in mine)
        assert board_value(board, "partition_records", str(number)) == records
        assert len({report.executor for report in mine}) == 1  # a session has one executor
        busy = sum(report.busy_seconds for report in mine)
        assert board_value(board, "partition_busy_seconds", str(number)) == pytest.approx(busy)
        latencies = board_value(board, "partition_latency_seconds", str(number))
        assert latencies.counts == tuple(np.sum([report.latency_counts for report in mine], axis=0))
        assert sum(latencies.counts) == records
    assert (
        board_value(board, "records")
        == board_value(_board(calm), "records")
        == sum(report.records for of_batch in reports for report in of_batch.values())
    )
    seconds = sum(
        routing.seconds
        for batch in journal.batches()
        for routing in journal.read_routing_stats(batch).values()
    )
    # Where nothing is routed there is no such figure.
    assert (board_value(board, "routing_seconds") or 0.0) == pytest.approx(seconds)


def _board(ran: Ran) -> Board:
    board = Board("totals", Health(60.0))
    for done in ran.batches:
        board.on_batch_done(done)
    return board
