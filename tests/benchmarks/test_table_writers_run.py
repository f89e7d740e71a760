"""The benchmark of table writers: rows are kept one by one, and a run goes on where one stopped."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.table_writers import (
    COLUMNS,
    FORMATS,
    JOBS,
    RESULTS,
    Cells,
    Size,
    rotated,
)
from benchmarks.writers.kept_rows import KeptRows
from benchmarks.writers.rivals import BY_HAND
from benchmarks.writers.written_files import Written, by_writer, written


def row(writing: str, seconds: float) -> dict[str, Any]:
    numbers = {"z": 1.4, "rows": 1000, "batch s": seconds, "files": 7}
    numbers |= {"values": 10, "writers": 4, "batches": 3}
    return {**dict.fromkeys(FORMATS, 1.0), **numbers, "writing": writing, "meets": "-"} | {
        "store": "local disk",
        "format": "delta",
    }


def test_rows_are_kept_at_once_and_replaced_when_measured_again(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield row("level", 2.0)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        list(KeptRows(tmp_path, COLUMNS).keep(broken(), "line", None))
    kept = KeptRows(tmp_path, COLUMNS)
    assert kept.keys() == {("local disk", 1000, 10, 4, 3, "delta", 1.4, "level")}
    rows = [row("level", 3.0), row("no shuffle", 4.0)]
    assert list(kept.keep(iter(rows), "line", None)) == rows
    kept.write(FORMATS)

    there = json.loads((tmp_path / "tables.json").read_text())["rows"]
    assert [(each["writing"], each["batch s"]) for each in there] == [
        ("level", 3.0),
        ("no shuffle", 4.0),
    ]
    page = (tmp_path / "tables.md").read_text()
    assert "## local disk\n\nline\n" in page
    assert page.count("| level ") == 1


def test_published_rows_are_known_by_every_column_of_their_size() -> None:
    rows = json.loads((RESULTS / "tables.json").read_text())["rows"]
    assert len(KeptRows(RESULTS, COLUMNS).keys()) == len(rows)
    assert all(row.keys() >= FORMATS.keys() for row in rows)


def test_no_row_is_begun_after_the_time_is_up(tmp_path: Path) -> None:
    rows = iter([row("level", 1.0), row("no shuffle", 1.0)])
    kept = list(KeptRows(tmp_path, COLUMNS).keep(rows, "line", 1e-9))
    assert [each["writing"] for each in kept] == ["level"]


def test_a_writer_without_files_counts_with_no_bytes() -> None:
    files = {Path("a/part-00002-x.parquet"): 5, Path("b/part-00002-y.parquet"): 6}
    assert by_writer(files, 4) == (0, 0, 11, 0)


def test_a_run_goes_on_with_what_was_not_measured_at_its_own_size() -> None:
    size, done = Size(1000, 3, 10, 4, 2), {("local disk", 1000, 10, 4, 3, "delta", 1.4, "level")}
    ways = ["level", "no shuffle"]
    assert Cells([1.4], ["delta"], ways, done).left(size, "delta", 1.4) == ["no shuffle"]
    for other in (replace(size, values=11), replace(size, writers=5), replace(size, batches=4)):
        assert Cells([1.4], ["delta"], ways, done).left(other, "delta", 1.4) == ways


def test_every_stream_begins_with_another_way() -> None:
    assert [rotated("abc", number)[0] for number in range(4)] == ["a", "b", "c", "a"]
    assert rotated("abc", 2) == ["c", "a", "b"]
    assert rotated([], 2) == []


def test_files_are_of_the_batch_in_which_they_were_closed(tmp_path: Path) -> None:
    for number, (writer, rows) in enumerate([(0, 3), (1, 5), (1, 2)]):
        file = tmp_path / f"country=w{number}" / f"part-0000{writer}-x.parquet"
        file.parent.mkdir()
        pq.write_table(pa.table({"n": list(range(rows))}), file)
        os.utime(file, ns=(0, 10 * number))
    first, second = written(tmp_path, [[1.0, 2.0, 1.0], [1.0, 1.0]], [0, 20, 30])
    assert (first.files, first.rows) == ((1, 1, 0), (3, 5, 0))
    assert second == Written((1.0, 1.0), (0, 1), second.bytes, (0, 2))


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_every_way_writes_on_a_throttled_store(tmp_path: Path) -> None:
    words = "--records 2000 --batches 2 --values 9 --writers 3 --z 1.4 --format parquet"
    program = [sys.executable, "-m", "benchmarks.table_writers", *words.split()]
    program += ["--throttle", "50", "--open-millis", "100", "--resume", "--out", str(tmp_path)]
    subprocess.run(program, check=True, timeout=900)

    rows = json.loads((tmp_path / "tables.json").read_text())["rows"]
    assert [each["writing"] for each in rows] == [*JOBS, *BY_HAND][:-1]
    by_way = {each["writing"]: each for each in rows}
    assert by_way["repartition(col)"]["files"] == 9
    assert 9 <= by_way["level"]["files"] <= 9 + 2 * 8
    # A writer of the hashed table has at least three files, each a round trip.
    assert min(each["batch s"] for each in rows) > 0.3
