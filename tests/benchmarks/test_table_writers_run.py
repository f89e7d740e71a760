"""The benchmark of table writers: rows are kept one by one, and a run goes on where one stopped."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.kept_rows import KeptRows
from benchmarks.table_writers import BY_HAND, COLUMNS, FORMATS, bytes_by_writer


def row(writing: str, seconds: float) -> dict[str, Any]:
    numbers = {"z": 1.4, "rows": 1000, "batch s": seconds, "files": 7}
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
    assert kept.keys() == {("local disk", 1000, "delta", 1.4, "level")}
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


def test_no_row_is_begun_after_the_time_is_up(tmp_path: Path) -> None:
    rows = iter([row("level", 1.0), row("no shuffle", 1.0)])
    kept = list(KeptRows(tmp_path, COLUMNS).keep(rows, "line", 1e-9))
    assert [each["writing"] for each in kept] == ["level"]


def test_a_writer_without_files_counts_with_no_bytes() -> None:
    files = {Path("a/part-00002-x.parquet"): 5, Path("b/part-00002-y.parquet"): 6}
    assert bytes_by_writer(files, 4) == (0, 0, 11, 0)


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_every_way_writes_on_a_throttled_store(tmp_path: Path) -> None:
    words = "--records 2000 --batches 2 --values 9 --writers 3 --z 1.4 --format parquet"
    program = [sys.executable, "-m", "benchmarks.table_writers", *words.split()]
    program += ["--throttle", "50", "--open-millis", "100", "--resume", "--out", str(tmp_path)]
    subprocess.run(program, check=True, timeout=900)

    rows = json.loads((tmp_path / "tables.json").read_text())["rows"]
    assert [each["writing"] for each in rows] == ["level", *BY_HAND][:-1]
    by_way = {each["writing"]: each for each in rows}
    assert by_way["repartition(col)"]["files"] == 9
    assert 9 <= by_way["level"]["files"] <= 9 + 2 * 8
    # A writer of the hashed table has at least three files, each a round trip.
    assert min(each["batch s"] for each in rows) > 0.3
