"""Tables on a disk that is full or read-only, or whose job ends between two commits: nothing is
lost, and what is wrong is one clear line.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.jobs.sinks.tables.test_table import events, expected, rows_of, run
from tests.storm.faults.outages import NotPossibleHereError, fill, small_disk
from tests.support.running.disks import read_only
from tests.support.running.in_process import write_lines
from unskew.config.errors import ExternalError
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.engine.preflight import check
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.sinks.tables.orphans import find_orphans, remove


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk, on which the table is."""
    try:
        with small_disk(tmp_path / "table"):
            yield tmp_path / "table"
    except NotPossibleHereError as error:
        pytest.skip(str(error))


@pytest.mark.slow
def test_a_full_or_read_only_disk_stops_the_job_with_a_line_and_loses_no_row(
    spark: SparkSession, tmp_path: Path, disk: Path
) -> None:
    records = [events(seed, 100) for seed in range(3)]
    for number, batch in enumerate(records):
        write_lines(tmp_path / "in", f"{number}.json", batch)
        if number == 0:
            ran = run(spark, tmp_path)
        elif number == 1:  # first: a disk with files that a failed write left open stays writable
            with read_only(disk):
                with pytest.raises(ExternalError) as before:
                    check(Pipeline(ran.job, open_journal(ran.job)))
                assert str(before.value) == (
                    f"sinks[0].path: {disk}: cannot be written: Read-only file system; check the"
                    " path and its owner"
                )
                with pytest.raises(ExternalError) as meanwhile:
                    run(spark, tmp_path)
                assert len(str(meanwhile.value).splitlines()) == 1
                assert "Read-only file system" in str(meanwhile.value)
            run(spark, tmp_path)
            fill(disk / "_filler", 4000)
        else:
            with pytest.raises(ExternalError) as full:
                run(spark, tmp_path)
            assert str(full.value) == (
                "totals: no space left on device: make room; the checkpoint goes on from the last"
                " whole batch"
            )
            (disk / "_filler").unlink()
            run(spark, tmp_path)
    remove(str(disk), find_orphans(str(disk), 0))
    assert rows_of(spark, disk) == sum(map(expected, records), start=expected([]))


def test_a_crash_after_the_tables_commit_loses_no_dead_letter(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Spark's writer skips a batch that the table has, with all tasks that would reject records."""
    rows = events(1, 60)
    write_lines(tmp_path / "in", "0.json", [*rows, "no object", "nor this"])
    in_the_way = tmp_path / "bad"
    in_the_way.touch()
    with pytest.raises(ExternalError, match="not a directory"):
        run(spark, tmp_path)
    in_the_way.unlink()
    for name in ("0", ".0.crc"):
        (tmp_path / "checkpoints" / "job" / "commits" / name).unlink()

    ran = run(spark, tmp_path, grouping={"type": "shuffle"}, partitions=2)

    assert rows_of(spark, tmp_path / "table") == expected(rows)
    files = (tmp_path / "bad").rglob("*.json")
    lines = [line for file in files for line in file.read_text().splitlines()]
    assert [json.loads(line)["reason"] for line in lines] == ["not_decoded", "not_decoded"]
    assert ran.rejected == {"not_decoded": 2}
