"""Delta tables, written by jobs of a process of its own, whose session has the classes of Delta."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROWS = [[f"c{n % 3}", str(n)] for n in range(9)] + [["c0", "100"], ["None", "200"]]


def dec(number: int) -> str:
    """A price or a volume as a table has it."""
    return f"{number}.000000"


def check_merged(shown: dict[str, Any]) -> None:
    """The totals of two batches, of which the second ran twice."""
    assert shown["aggregate"] == [
        ["c0", "4", "109", "100"],
        ["c1", "3", "12", "7"],
        ["c2", "3", "15", "8"],
    ]
    # Key, volume, trades, high and low: prices and volumes are amounts and one.
    assert [[row[0], *row[2:6]] for row in shown["vwap"]] == [
        ["c0", *map(dec, (113,)), "4", *map(dec, (101, 1))],
        ["c1", *map(dec, (15,)), "3", *map(dec, (8, 2))],
        ["c2", *map(dec, (18,)), "3", *map(dec, (9, 3))],
    ]
    # Key, posts and users, of whom there are four.
    assert [row[:3] for row in shown["hashtags"]] == [
        ["all", "11", "4"],
        ["c0", "4", "3"],
        ["c1", "3", "3"],
        ["c2", "3", "3"],
    ]
    assert shown["by_country"] == [["c0", "4"], ["c1", "3"], ["c2", "3"]]
    assert shown["by_parity"] == [["0", "320"], ["1", "16"]]


def check_another_column(shown: dict[str, Any], table: str) -> None:
    """Results with a column that their table lacks, and without one that it has."""
    assert shown["evolved 0"] == [
        f"{table}: has no column least; write schema_changes: merge to add it"
    ]
    wide = [
        ["c0", "4", "109", "100", "0"],
        ["c1", "3", "12", "7", "1"],
        ["c2", "3", "15", "8", "2"],
    ]
    assert shown["evolved 1"] == wide
    assert shown["evolved 2"] == [
        (
            f"{table}: has a column least that the rows lack; write schema_changes: merge to leave"
            " it null"
        )
    ]
    # What is updated keeps the value of the column that the results lack.
    assert shown["evolved 3"] == [*wide, ["c9", "1", "1", "1", "None"]]


@pytest.mark.spark
@pytest.mark.slow
def test_every_row_and_result_is_there_once(root: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.support.running.delta_jobs", str(tmp_path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-4000:]
    shown = json.loads((tmp_path / "shown.json").read_text())

    assert shown["rows"] == sorted(ROWS)
    assert shown["rows after a repeated batch"] == sorted(ROWS)
    assert all(1 <= files <= 3 + 3 * 2 for files in shown["files"])
    # Its batches are counted from 0 again, and none is taken for one of the first checkpoint's.
    assert shown["rows of two checkpoints"] == 2 * len(ROWS)
    assert shown["refused"] == [
        f"{tmp_path}/rows: has no column a; write schema_changes: merge to add it",
        (
            f"{tmp_path}/rows: has a column amount that the rows lack; write schema_changes: merge"
            " to leave it null"
        ),
    ]
    assert shown["rows with a new column"] == len(ROWS)
    assert shown["counts"] == [["c0", "4"], ["c1", "3"], ["c2", "3"]]
    check_merged(shown)
    check_another_column(shown, f"table: {tmp_path}/aggregate")
    # The last windows are still open.
    assert [row[2:] for row in shown["closed"]] == [
        ["c0", "3", "1970-01-01"],
        ["c1", "3", "1970-01-01"],
        ["c2", "3", "1970-01-01"],
    ]
    (rows, files), (streamed, stream_files) = shown["example"]
    assert rows == streamed == 6000
    assert 21 < files <= 21 + 3 * 7
    assert stream_files <= 3 * (21 + 2 * 7)
    if disk := shown.get("disk"):
        assert disk["full"] == [
            (
                "totals: no space left on device: make room; the checkpoint goes on from the last"
                " whole batch"
            )
        ]
        assert len(disk["read-only"]) == 1
        assert "Read-only file system" in disk["read-only"][0]
        assert disk["before"] == disk["room"] == disk["after"] == []
        amounts = [100 * batch + row for batch in range(3) for row in range(30)]
        assert disk["amounts"] == amounts
