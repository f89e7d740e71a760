"""Whose table is in a folder, and with which columns: by the file that is beside Spark's log."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import pytest

from tests.jobs.sinks.tables.test_log import write_log
from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.engine.preflight import check
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.sinks.tables.layout import (
    OWNER_FILE,
    Layout,
    check_layout,
    read_owner,
    take_table,
)
from unskew.jobs.sinks.tables.log import list_damaged_files

FIRST = Layout({"country": "string", "amount": "int"}, ["country"])
MORE = Layout({"country": "string", "amount": "int", "at": "date"}, ["country"])
OTHER = Layout({"country": "string", "city": "string"}, ["city"])


def job(folder: Path, checkpoint: str = "checkpoint", sink: Mapping[str, Any] | None = None) -> Job:
    sink = {"type": "table", "format": "parquet", "path": str(folder / "t"), **(sink or {})}
    rows = {"operator": {"type": "rows"}, "decode": {"type": "text"}, "sinks": [sink]}
    where = {"checkpoint": str(folder / checkpoint)}
    return load_job("events_to_delta", {"name": "rows", **rows, **where})


def begin(running: Job, batch: int) -> None:
    log = Path(running.checkpoint, "offsets")
    log.mkdir(parents=True)
    (log / str(batch)).touch()


def test_a_layout_of_which_no_batch_was_written_binds_nobody(tmp_path: Path) -> None:
    running, path = job(tmp_path), str(tmp_path / "t")
    take = {"job": running, "merges_columns": False}
    assert take_table(path, OTHER, **take) is None
    assert take_table(path, FIRST, **take) is None
    write_log(tmp_path / "t", 1)
    with pytest.raises(ExternalError, match="has no column at; write schema_changes: merge"):
        take_table(path, MORE, **take)
    assert take_table(path, MORE, running, merges_columns=True) == FIRST
    # The start that would have added the column wrote nothing.
    assert take_table(path, FIRST, **take) == FIRST
    assert take_table(path, MORE, running, merges_columns=True) == FIRST
    (tmp_path / "t" / "_spark_metadata" / "1").touch()
    with pytest.raises(ExternalError, match="has a column at that the rows lack"):
        take_table(path, FIRST, **take)
    assert take_table(path, MORE, **take) == MORE


def test_columns_are_told_apart_without_their_case() -> None:
    spelled = Layout({"COUNTRY": "string", "Amount": "int"}, ["Country"])
    check_layout("t", FIRST, spelled, merges_columns=False)
    assert FIRST.add_new_columns(spelled) == FIRST
    with pytest.raises(ExternalError, match="column Amount is INT there and BIGINT in the rows"):
        check_layout(
            "t",
            FIRST,
            Layout({**spelled.columns, "Amount": "bigint"}, ["country"]),
            merges_columns=False,
        )


def test_folders_are_named_in_one_time_zone(tmp_path: Path) -> None:
    """Readers take such a name in their session's zone: rows of two would differ by hours."""
    there = Layout({"at": "timestamp", "n": "int"}, ["at"], "UTC")
    elsewhere = Layout(there.columns, ["at"], "Europe/Berlin")
    older = Layout(there.columns, ["at"])
    running, path = job(tmp_path), str(tmp_path / "t")
    take_table(path, there, running, merges_columns=False)
    write_log(tmp_path / "t", 1)
    with pytest.raises(ExternalError) as error:
        take_table(path, elsewhere, running, merges_columns=True)
    assert str(error.value) == (
        f"table: {path}: has timestamps in its folders' names, in the time zone UTC, and the job's"
        " is Europe/Berlin; write spark: {spark.sql.session.timeZone: UTC}, or name another folder"
    )
    check_layout(path, older, elsewhere, merges_columns=False)
    assert older.add_new_columns(elsewhere) == elsewhere


def test_a_table_is_of_one_query(tmp_path: Path) -> None:
    first, other = job(tmp_path), job(tmp_path, "other")
    take_table(str(tmp_path / "t"), FIRST, first, merges_columns=False)
    take_table(str(tmp_path / "elsewhere"), FIRST, other, merges_columns=False)
    sink: Any = first.sinks[0]
    assert list(sink.problems(other)) == []  # nothing is written yet
    write_log(tmp_path / "t", 2)
    for running in (first, other):
        begin(running, 5)

    assert list(sink.problems(first)) == []
    assert list(sink.problems(other)) == [
        (
            f"table: {tmp_path}/t: is written from the checkpoint {tmp_path}/checkpoint, and"
            f" {tmp_path}/other is no copy of that; name another folder, or write format: delta"
        )
    ]
    # The checkpoint may be moved.
    Path(first.checkpoint).rename(tmp_path / "moved")
    assert list(sink.problems(job(tmp_path, "moved"))) == []


def test_of_jobs_that_start_at_once_one_takes_the_table(tmp_path: Path) -> None:
    jobs = [job(tmp_path, f"c{n}").model_copy(update={"name": f"rows{n}"}) for n in range(8)]
    at_once, said = Barrier(len(jobs)), []

    def start(running: Job) -> None:
        at_once.wait()
        try:
            take_table(str(tmp_path / "t"), FIRST, running, merges_columns=False)
        except ExternalError as error:
            said.append(str(error))

    threads = [Thread(target=start, args=(running,)) for running in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    owner = read_owner(str(tmp_path / "t"))
    assert owner is not None
    assert said == [
        (
            f'table: {tmp_path}/t: belongs to the job "{owner.job}", and Parquet files take the'
            " batches of one job only; name another folder, or write format: delta"
        )
    ] * (len(jobs) - 1)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("FILE", ["cannot be written: "]),
        ("FILE/table", ["cannot be written: "]),
        ("nosuch://bucket/t", ["cannot be read: nosuch: is not a scheme that can be opened"]),
    ],
)
def test_a_path_that_is_no_folder_is_one_line(tmp_path: Path, path: str, said: list[str]) -> None:
    (tmp_path / "file").write_text("mine")
    there = path.replace("FILE", str(tmp_path / "file"))
    running = job(tmp_path, sink={"path": there})
    with pytest.raises(ExternalError) as error:
        check(Pipeline(running, open_journal(running)))
    lines = [line for line in str(error.value).splitlines() if "sinks[0]" in line]
    assert [there in line and text in line for line, text in zip(lines, said, strict=True)] == [
        True
    ]
    assert (tmp_path / "file").read_text() == "mine"


def test_a_log_that_has_lost_batches_is_told_before_the_start(tmp_path: Path) -> None:
    running = job(tmp_path)
    take_table(str(tmp_path / "t"), FIRST, running, merges_columns=False)
    sink: Any = running.sinks[0]
    begin(running, 3)
    commits = Path(running.checkpoint, "commits")
    commits.mkdir()
    (commits / "2").touch()
    lost = [
        (
            f"table: {tmp_path}/t: its log _spark_metadata lacks batches until 2, which"
            f" {tmp_path}/checkpoint has committed: Spark reads no table whose log lacks any;"
            " restore it, or take a new checkpoint and folder, or write format: delta"
        )
    ]
    assert list(sink.problems(running)) == lost  # until now the job wrote elsewhere
    write_log(tmp_path / "t", 3)
    (tmp_path / "t" / "c=a").mkdir()
    assert list(sink.problems(running)) == []

    assert list_damaged_files(str(tmp_path / "t")) == []
    (tmp_path / "t" / "_spark_metadata" / "2").unlink()
    assert list(sink.problems(running)) == lost
    cut = tmp_path / "t" / "_spark_metadata" / "1"
    cut.write_text(cut.read_text()[:-9])
    assert list_damaged_files(str(tmp_path / "t")) == [str(cut)]
    shutil.rmtree(tmp_path / "t" / "_spark_metadata")
    assert list(sink.problems(running)) == lost


def test_a_delta_log_that_is_gone_is_told_before_the_start(tmp_path: Path) -> None:
    sink = {"type": "table", "format": "delta", "path": str(tmp_path / "t")}
    running = load_job("events_to_delta", {"sinks": [sink], "checkpoint": str(tmp_path / "cp")})
    log = tmp_path / "t" / "_delta_log"
    log.mkdir(parents=True)
    begin(running, 1)
    said = [
        (
            f"table: {tmp_path}/t: its log _delta_log lacks batches until 1, which {tmp_path}/cp"
            " has committed: readers go by it and would lose rows; restore it, or name another"
            " folder"
        )
    ]

    def problems() -> list[str]:
        return list(running.sinks[0].problems(running))

    assert problems() == []  # an empty folder
    (tmp_path / "t" / "part-0.parquet").touch()
    assert problems() == []  # of a first batch that was cut off
    commits = Path(running.checkpoint, "commits")
    commits.mkdir()
    (commits / "1").touch()
    assert problems() == said
    (log / f"{0:020}.crc").touch()
    assert problems() == said
    (log / f"{10:020}.checkpoint.parquet").touch()
    assert problems() == []
    (log / f"{11:020}.json").write_text('{"add": ')
    assert list_damaged_files(str(tmp_path / "t")) == [str(log / f"{11:020}.json")]


def test_the_file_of_an_older_version_can_be_read(tmp_path: Path) -> None:
    write_log(tmp_path / "t", 1)
    layout = {"columns": FIRST.columns, "partition_by": FIRST.partition_by}
    older = {"version": 1, "job": "rows", "layout": layout}
    (tmp_path / "t" / OWNER_FILE).write_text(json.dumps(older))
    running = job(tmp_path)
    begin(running, 0)
    sink: Any = running.sinks[0]
    assert list(sink.problems(running)) == []
    assert take_table(str(tmp_path / "t"), FIRST, running, merges_columns=False) == FIRST
    named = json.loads((tmp_path / "t" / OWNER_FILE).read_text())
    assert named["query"] == json.loads(Path(running.checkpoint, "metadata").read_text())["id"]
