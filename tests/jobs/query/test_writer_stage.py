"""The stage that counts rows beside their writer, without Spark."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.query import writer_stage
from unskew.jobs.query.writer_stage import WriterStage


def chunk(hashes: list[int], reasons: list[str | None], *names: list[str]) -> tuple[pa.Array, ...]:
    """Rows as Spark sends them: those that are not rejected have no record."""
    # Bytes are in base 64, times in microseconds.
    records = [
        None if reason is None else json.dumps({"reason": reason, "value": "eA==", "timestamp": 7})
        for reason in reasons
    ]
    arrived = pa.array([1_000_000] * len(hashes), pa.timestamp("us", "UTC"))
    texts = [pa.array(each) for each in names]
    return pa.array(hashes, pa.int64()), arrived, pa.array(records, pa.string()), *texts


def run(stage: WriterStage, *chunks: Any) -> list[list[bool]]:
    body: Any = stage.count_named if stage.name_keys else stage.count
    return [array.to_pylist() for array in body(iter(chunks))]


def report_of(journal: Journal) -> PartitionReport:
    return PartitionReport.from_snapshot(journal.reports(0)[0])


def test_rows_are_counted_and_rejected_ones_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_stage, "CHUNK_ROWS", 3)  # several countings
    journal = Journal(str(tmp_path))
    stage = WriterStage(4, journal)
    written = run(
        stage,
        chunk([7, 7, 8], [None, "not_decoded", None]),
        chunk([], []),
        chunk([7, 9, -1], [None, None, "no_value"]),
    )

    assert written == [[True, False, True], [], [True, True, False]]
    report = report_of(journal)
    assert (report.records, report.keys, report.state_bytes) == (4, 3, 0)
    assert report.rejected == {"not_decoded": 1, "no_value": 1}
    assert dict(zip(report.heavy_hashes.tolist(), report.heavy_records.tolist(), strict=True)) == {
        7: 2,
        8: 1,
        9: 1,
    }
    (kept,) = journal.rejected(0)
    assert kept.column("reason").to_pylist() == ["not_decoded", "no_value"]
    assert kept.column("value").to_pylist() == [b"x", b"x"]
    assert kept.column("timestamp").cast(pa.int64()).to_pylist() == [7, 7]
    assert kept.column("key").null_count == 2


def test_names_are_in_the_report_where_the_job_shows_them(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    run(WriterStage(4, journal, name_keys=True), chunk([7, 8, 7], [None] * 3, ["a", "b", "a"]))

    report = report_of(journal)
    assert report.heavy_names[0] == "a"
    assert int(report.heavy_records[0]) == 2


def test_a_partition_without_rows_reports_too(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path))
    assert run(WriterStage(4, journal)) == []
    assert report_of(journal).records == 0
    assert np.sum(report_of(journal).latency_counts) == 0
