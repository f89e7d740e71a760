"""The logs of tables as Spark and Delta write them, read without either."""

import json
import os
import time
from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.config.types.partition_columns import PartitionColumn, partition_column
from unskew.jobs.__main__ import main
from unskew.jobs.sinks.tables.log import (
    find_newest_batch,
    find_other_contents,
    has_batch,
    list_committed_files,
    list_files_of_batch,
    list_files_of_transaction,
)
from unskew.jobs.sinks.tables.orphans import find_orphans


def entry(table: Path, batch: int, writer: int) -> str:
    """A line of Spark's log; the folder's name has a slash, escaped twice."""
    name = f"c=a%252F{batch}/part-{writer:05}-{batch}.c000.snappy.parquet"
    values = {"path": f"file://{table}/{name}", "size": 100 + writer, "action": "add"}
    return json.dumps(values)


def write_log(table: Path, batches: int) -> None:
    """Spark's log of so many batches of two files each, the tenth of which is compact."""
    log = table / "_spark_metadata"
    log.mkdir(parents=True)
    lines = []
    for batch in range(batches):
        own = [entry(table, batch, writer) for writer in (1, 12)]
        lines += own
        compact = batch % 10 == 9
        name = f"{batch}.compact" if compact else str(batch)
        (log / name).write_text("\n".join(["v1", *(lines if compact else own)]))


def test_a_batchs_files_are_told_also_of_a_compact_log(tmp_path: Path) -> None:
    write_log(tmp_path / "t", 21)
    for batch in (0, 8, 9, 10, 19, 20):
        files = list_files_of_batch(str(tmp_path / "t"), batch)
        assert files is not None
        assert [(file.writer, file.size) for file in files] == [(1, 101), (12, 112)]
        assert all(f"c=a%2F{batch}/" in file.path for file in files)
    assert find_newest_batch(str(tmp_path / "t")) == 20
    assert has_batch(str(tmp_path / "t"), 20)
    assert not has_batch(str(tmp_path / "t"), 21)
    assert list_files_of_batch(str(tmp_path / "t"), 21) is None
    assert len(list_committed_files(str(tmp_path / "t"))) == 42
    # Spark removes the files that a compact one has taken up.
    (tmp_path / "t" / "_spark_metadata" / "15").unlink()
    assert list_files_of_batch(str(tmp_path / "t"), 19) is None


def test_a_batch_of_a_delta_table_is_found_by_query_and_number(tmp_path: Path) -> None:
    log = tmp_path / "_delta_log"
    log.mkdir()
    for version, (query, batch) in enumerate([("a", 0), ("b", 0), ("a", 1)]):
        add = {"path": f"c=%25/part-{version:05}-x.parquet", "size": 7}
        actions = [{"txn": {"appId": query, "version": batch}}, {"add": add}]
        (log / f"{version:020}.json").write_text("\n".join(map(json.dumps, actions)))
    (log / f"{3:020}.json").write_text(json.dumps({"commitInfo": {}}))
    files = list_files_of_transaction(str(tmp_path), "a", 0)
    assert files is not None
    assert [(file.path, file.writer) for file in files] == [("c=%/part-00000-x.parquet", 0)]
    assert list_files_of_transaction(str(tmp_path), "b", 1) is None


def test_only_old_files_that_no_batch_has_are_removed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "t"
    write_log(table, 11)
    kept = [table / name for name in list_committed_files(str(table))]
    left, young = table / "c=b" / "part-00003-x.parquet", table / "c=b" / "part-00004-x.parquet"
    for file in (*kept, left, young):
        file.parent.mkdir(exist_ok=True)
        file.write_text("rows")
        os.utime(file, (0, 0))
    os.utime(young, (time.time(), time.time()))
    assert main(["table", "clean", str(table), "--dry-run"]) == 0
    assert left.exists()
    assert main(["table", "clean", str(table)]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "c=b/part-00003-x.parquet",
        "to be removed: files 1, bytes 4",
        "c=b/part-00003-x.parquet",
        "removed: files 1, bytes 4",
    ]
    assert not left.exists()
    assert young.exists()
    assert all(file.exists() for file in kept)
    assert [each.name for each in find_orphans(str(table), 0)] == ["c=b/part-00004-x.parquet"]


def test_no_row_is_removed_whatever_the_folder_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By another path than the log has, no file of a batch was known: all were removed."""
    table = tmp_path / "my 100% table"
    write_log(table, 2)
    kept = {table / name for name in list_committed_files(str(table))}
    for file in kept:
        file.parent.mkdir(exist_ok=True)
        file.write_text("rows")
        os.utime(file, (0, 0))
    (tmp_path / "link").symlink_to(table)
    monkeypatch.chdir(table)
    for folder in (".", "../my 100% table/", f"file:{table}", f"{tmp_path}/x/../{table.name}"):
        assert main(["table", "clean", folder]) == 0
    for folder in ("../link", str(tmp_path / "link")):
        assert main(["table", "clean", folder]) == 1
        assert capsys.readouterr().err.startswith(f"table: {tmp_path}/link: its log names files")
    (tmp_path / "moved").mkdir()
    moved = table.rename(tmp_path / "moved" / table.name)
    assert main(["table", "clean", str(moved)]) == 0
    renamed = moved.rename(tmp_path / "renamed")
    assert main(["table", "clean", str(renamed)]) == 1
    assert len(list(renamed.rglob("part-*"))) == len(kept) == 4


def test_a_folder_that_is_no_such_table_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ExternalError, match="has no _spark_metadata; name the folder of a table"):
        find_orphans(str(tmp_path), 0)
    (tmp_path / "_delta_log").mkdir()
    assert main(["table", "clean", str(tmp_path)]) != 0
    assert capsys.readouterr().err == f"table: {tmp_path}: is a Delta table; use VACUUM\n"


@pytest.mark.parametrize(
    ("there", "wanted", "problem"),
    [
        ("_delta_log", "parquet", "is a Delta table; write format: delta, or name another folder"),
        (
            "_spark_metadata",
            "delta",
            "is a table of Parquet files; write format: parquet, or name another folder",
        ),
        (
            "year=2025",
            "parquet",
            "is no table and has files (year=2025), which readers would lose; name an empty folder",
        ),
        ("_delta_log", "delta", None),
        ("_unskew_table.json", "parquet", None),
        ("_SUCCESS", "delta", None),
        (".", "parquet", None),
    ],
)
def test_a_folder_of_other_contents_is_no_place_for_a_table(
    tmp_path: Path, there: str, wanted: str, problem: str | None
) -> None:
    (tmp_path / there).mkdir(exist_ok=True)
    assert find_other_contents(str(tmp_path), wanted, begun=False) == problem
    assert find_other_contents(str(tmp_path / "not there"), wanted, begun=False) is None


def test_files_without_a_log_are_left_by_a_first_batch_that_was_cut_off(tmp_path: Path) -> None:
    (tmp_path / "c=a").mkdir()
    assert find_other_contents(str(tmp_path), "delta", begun=True) is None
    assert find_other_contents(str(tmp_path), "delta", begun=False) is not None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("country", PartitionColumn("country", None)),
        (" `a_b` ", PartitionColumn("a_b", None)),
        ("m AS copy", PartitionColumn("copy", "m")),
        ("date(ts) AS day", PartitionColumn("day", "date(ts)")),
        ("cast(x AS int)", PartitionColumn("cast_x_as_int", "cast(x AS int)")),
        ("date_format(ts, 'yyyy') as `y`", PartitionColumn("y", "date_format(ts, 'yyyy')")),
    ],
)
def test_an_entry_of_partition_by(text: str, expected: PartitionColumn) -> None:
    assert partition_column(text) == expected
