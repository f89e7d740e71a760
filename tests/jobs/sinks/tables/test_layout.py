"""Whose table is in a folder, and with which columns: by the file that is beside Spark's log."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.sinks.tables.test_log import write_log
from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.sinks.tables.layout import OWNER_FILE, Layout, check_layout, take_table

FIRST = Layout({"country": "string", "amount": "int"}, ["country"])
MORE = Layout({"country": "string", "amount": "int", "at": "date"}, ["country"])
OTHER = Layout({"country": "string", "city": "string"}, ["city"])


def job(folder: Path, checkpoint: str = "checkpoint") -> Job:
    sink = {"type": "table", "format": "parquet", "path": str(folder / "t")}
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
