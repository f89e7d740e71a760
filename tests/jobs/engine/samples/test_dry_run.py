"""`unskew run --dry-run`: what the first records become, and nothing is written."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.running.in_process import job_over
from unskew.jobs.__main__ import main
from unskew.jobs.engine.samples.dry_run import describe_rows, prepare_first_rows


@pytest.mark.spark
def test_each_row_says_its_record_key_and_inputs_or_why_it_is_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [
        b'{"at": "2026-01-01T00:00:00Z", "text": "to be"}',
        b"{",
        b'{"at": null, "text": "or"}',
        b'{"at": "2026-01-01T00:00:01Z", "text": "beyond the limit"}',
    ]
    (folder / "1.json").write_bytes(b"\n".join(lines))
    job = job_over(
        {"type": "files", "path": str(folder)},
        tmp_path,
        "dry",
        operator={"type": "word_count", "text": "text"},
        decode={"type": "json", "schema": "text STRING, at TIMESTAMP"},
        event_time="at",
    )
    rows = [json.loads(line) for line in describe_rows(prepare_first_rows(spark, job, 3))]
    assert all(row["topic"].endswith("1.json") and row["offset"] == 0 for row in rows)
    assert [(row["key"], row["event_time"][:10]) for row in rows if "rejected" not in row] == [
        ("to", "2026-01-01"),
        ("be", "2026-01-01"),
    ]
    rejected = [(row["rejected"], row["value"]) for row in rows if "rejected" in row]
    assert rejected == [
        ("not_decoded", "{"),
        ("no_event_time", '{"at": null, "text": "or"}'),
    ]
    assert not Path(job.checkpoint).exists()


def test_rows_belong_to_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "word_count", "--rows", "3"]) == 2
    assert capsys.readouterr().err == "run: --rows: belongs to --dry-run\n"
