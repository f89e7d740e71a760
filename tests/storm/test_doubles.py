"""Broken doubles that the storm must catch: of a sink, of a journal, of the checkpoint's lock."""

import json
import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.storm.faults import queries
from tests.storm.harness.checks import check
from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.in_process import Attempt, Jvm
from tests.storm.harness.services import Services
from tests.storm.harness.stage import Stage
from tests.storm.oracle.expected import expected, millis
from tests.storm.oracle.world import Routing, routing_of, world_of
from unskew import load_job
from unskew.config.errors import ExternalError
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.lock import lock_checkpoint
from unskew.jobs.sinks.base import Batch
from unskew.jobs.sinks.files import FilesSink

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ROW = ("at", "day", "kafka_offset", "kafka_partition", "kind", "price", "symbol", "volume")
"""The columns of a row in the order in which the oracle has them."""


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    files: dict[str, Any] = {"sink": "files", "source": "files", "dead_letters": "files"}
    world = world_of(3, **files, operator="word_count", window="tumbling")
    made = Stage(world, tmp_path / "stage", Services(tmp_path, ExitStack()))
    made.prepare()
    return made


def write(stage: Stage, totals: slice = slice(None), dead_letters: slice = slice(None)) -> None:
    """Write the oracle's outcome as the job's sinks would, or a part of it."""
    results = [
        {
            "window_start": _EPOCH + timedelta(milliseconds=result_key[0]),
            "window_end": _EPOCH + timedelta(milliseconds=result_key[1]),
            "key": result_key[2],
            **columns,
        }
        for result_key, columns in stage.want.totals.items()
    ]
    write_files(stage.results, results[totals])
    write_dead_letters(stage, dead_letters)


def write_dead_letters(stage: Stage, dead_letters: slice = slice(None)) -> None:
    """Write the oracle's dead letters, or a part of them."""
    rejected = [
        {"partition": partition, "offset": offset, "reason": reason}
        for partition, offset, reason in stage.want.dead_letters.elements()
    ]
    write_files(stage.folder / "dead", rejected[dead_letters])


def write_files(folder: Path, rows: list[dict[str, Any]]) -> None:
    """Write rows as the files of a batch."""
    path = folder / "batch_id=0"
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows), path / "part-0.parquet")


def test_a_whole_outcome_passes(stage: Stage) -> None:
    counts = Counts()
    write(stage)
    check(stage, counts)
    assert len(stage.want.totals) > 10
    assert stage.want.dead_letters.total() > 10
    assert counts.outcomes == {"exact": 1}


def test_a_job_that_died_between_listing_a_file_and_its_batch_reads_two_files_in_one(
    stage: Stage,
) -> None:
    before = stage.want
    offsets = stage.checkpoint / "offsets"
    offsets.mkdir(parents=True)
    for batch, last in enumerate((0, 2, 3)):
        (offsets / str(batch)).write_text(f'v1\n{{}}\n{{"logOffset":{last}}}')
    first, second, third, *rest = stage.batches
    assert stage.want == expected(stage.world, [first, [*second, *third], *rest])
    assert stage.want != before


def test_a_batch_that_moved_no_watermark_is_one_that_the_table_had(stage: Stage) -> None:
    world = replace(stage.world, sink="table", table_format="parquet", lateness_seconds=0)
    table = replace(stage, world=world)
    table.batches[3] = table.batches[0]  # late, or not, by what the second batch moved
    commits = table.checkpoint / "commits"
    commits.mkdir(parents=True)
    newest = max(millis(each.at) for each in table.batches[0] if not each.reason)
    watermark = max(0, newest - world.lateness_seconds * 1000)
    for batch in range(2):
        (commits / str(batch)).write_text(f'v1\n{{"nextBatchWatermarkMs":{watermark}}}')
    assert table.want == expected(world, table.batches, {1})
    assert table.want != expected(world, table.batches)


def test_a_sink_that_loses_one_row_is_caught(stage: Stage) -> None:
    write(stage, totals=slice(1, None))
    with pytest.raises(StormError, match="1 totals missing"):
        check(stage, Counts())


def test_a_second_sink_that_loses_one_row_is_caught(stage: Stage) -> None:
    write(stage)
    stage.world = replace(stage.world, second_sink=True)
    whole = next(stage.results.glob("batch_id=*/*.parquet"))
    rows = pq.read_table(whole)
    (stage.also / "batch_id=0").mkdir(parents=True)
    for kept, wrong in ((rows, None), (rows.slice(1), "second sink: 1 totals missing")):
        pq.write_table(kept, stage.also / "batch_id=0" / "part-0.parquet")
        with pytest.raises(StormError, match=wrong) if wrong else nullcontext():
            check(stage, Counts())


def test_a_journal_that_forgets_one_rejected_record_is_caught(stage: Stage) -> None:
    write(stage, dead_letters=slice(1, None))
    with pytest.raises(StormError, match="1 dead letters missing"):
        check(stage, Counts())


def test_a_batch_that_is_written_twice_is_caught(stage: Stage) -> None:
    write(stage)
    path = stage.folder / "results" / "batch_id=1"
    path.mkdir()
    whole = stage.folder / "results" / "batch_id=0" / "part-0.parquet"
    (path / "part-0.parquet").write_bytes(whole.read_bytes())
    with pytest.raises(StormError, match="more than once"):
        check(stage, Counts())


def write_table(stage: Stage, names: list[str], listed: slice) -> None:
    """Write the oracle's rows as a job's table has them, a file each of these; list some only."""
    rows = [dict(zip(ROW, row, strict=True)) for row in stage.want.totals]
    paths = []
    for number, name in enumerate(names):
        for kind in sorted({row["kind"] for row in rows}):
            held = [row for row in rows[number :: len(names)] if row["kind"] == kind]
            path = stage.results / f"kind={kind}" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            at = [_EPOCH + timedelta(milliseconds=row["at"]) for row in held]
            data = {column: [row[column] for row in held] for column in ROW if column != "kind"}
            pq.write_table(pa.table({**data, "at": at}), path)
            paths.append(path)
    entries = [json.dumps({"action": "add", "path": path.as_uri()}) for path in paths]
    log = stage.results / "_spark_metadata" / "0"
    log.parent.mkdir()
    log.write_text("\n".join(["v1", *entries[listed]]))


@pytest.mark.parametrize(
    ("listed", "wrong"), [(slice(None), None), (slice(1, None), r"\d+ totals missing")]
)
def test_a_table_that_loses_a_file_is_caught(
    tmp_path: Path, listed: slice, wrong: str | None
) -> None:
    files: dict[str, Any] = {"sink": "table", "source": "files", "dead_letters": "files"}
    world = world_of(3, **files, operator="rows", table_format="parquet", keys="zipf")
    stage = Stage(world, tmp_path / "stage", Services(tmp_path, ExitStack()))
    stage.prepare()
    write_dead_letters(stage)
    write_table(stage, ["part-0.parquet", "part-1.parquet"], listed)
    with pytest.raises(StormError, match=wrong) if wrong else nullcontext():
        check(stage, Counts())


def lose_total(patch: pytest.MonkeyPatch) -> None:
    """Let the sink of files lose a row of one batch."""
    write, lost = FilesSink.write, list[int]()

    def write_less(sink: FilesSink, results: DataFrame, batch: Batch) -> None:
        rows = results.collect()
        if rows and not lost:
            lost.append(batch.id)
            results = batch.session.createDataFrame(rows[1:], results.schema)
        write(sink, results, batch)

    patch.setattr(FilesSink, "write", write_less)


def lose_dead_letter(patch: pytest.MonkeyPatch) -> None:
    """Let the journal forget a rejected record of one batch."""
    read, lost = Journal.rejected, list[int]()

    def read_less(journal: Journal, batch: int) -> Iterator[pa.Table]:
        for number, piece in enumerate(read(journal, batch)):
            if not lost:
                lost.append(batch)
            yield piece.slice(1) if (batch, number) == (lost[0], 0) else piece

    patch.setattr(Journal, "rejected", read_less)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("lose", "wrong"),
    [
        (None, None),
        (lose_total, "1 totals missing"),
        (lose_dead_letter, "1 dead letters missing"),
    ],
)
def test_what_a_running_job_loses_is_caught(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lose: Callable[[pytest.MonkeyPatch], None] | None,
    wrong: str | None,
) -> None:
    files: dict[str, Any] = {"sink": "files", "source": "files", "dead_letters": "files"}
    small: dict[str, Any] = {"batches": 3, "rows": 60, "merge_partitions": 1, "native": False}
    world = world_of(3, **files, **small, operator="word_count", window="tumbling")
    stage = Stage(world, tmp_path / "stage", Services(tmp_path, ExitStack()))
    stage.prepare()
    if lose:
        lose(monkeypatch)
    shuffled = spark.conf.get("spark.sql.shuffle.partitions")
    try:
        attempt = Attempt(Jvm(spark), stage.job_file(Routing("level", 2, 0, 1000)))
        assert attempt.finish() is None
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", shuffled or "2")
    with pytest.raises(StormError, match=wrong) if wrong else nullcontext():
        check(stage, Counts())


class LockOnly:
    """A start that takes the checkpoint's lock and does nothing else, and one that still runs."""

    lock: Any = staticmethod(lock_checkpoint)

    def __init__(self, jvm: Any, job_file: Path) -> None:
        self._checkpoint = load_job(job_file).checkpoint

    def finish(self) -> ExternalError | None:
        try:
            with self.lock(self._checkpoint):
                return None
        except ExternalError as error:
            return error

    def ended(self) -> bool:
        return False


def test_a_second_start_beside_a_lock_is_counted_and_beside_none_caught(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "Attempt", LockOnly)
    routing = routing_of(stage.world, random.Random(1))
    first: Any = LockOnly(None, stage.job_file(routing))
    jvm: Any = None
    with lock_checkpoint(str(stage.checkpoint)):
        assert queries._second_start(stage, jvm, routing, first) == 1
        monkeypatch.setattr(LockOnly, "lock", nullcontext)
        with pytest.raises(StormError, match="a second start on a checkpoint in use"):
            queries._second_start(stage, jvm, routing, first)
