"""What a batch read from its source, by Spark's logs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.running.in_process import job_over
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.spark_log import SourceRange, read_source_range

TIME_MS = 1_700_000_000_000


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return job_over({"type": "files", "path": str(tmp_path / "in")}, tmp_path, "logs")


def write_log(job: Job, name: str, *entries: Any, version: str = "v1") -> None:
    """A file of a log as Spark writes it: a version, then JSON, or a dash for nothing."""
    file = Path(job.checkpoint) / name
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [entry if entry == "-" else json.dumps(entry) for entry in entries]
    file.write_text("\n".join([version, *lines]))


def write_offsets(job: Job, *ends: Any) -> None:
    for batch, end in enumerate(ends):
        write_log(job, f"offsets/{batch}", {"batchTimestampMs": TIME_MS + batch}, end)


def write_files(job: Job, name: str, *batches: int) -> None:
    entries = [{"path": f"file:///in/a%20{n}", "timestamp": 1, "batchId": n} for n in batches]
    write_log(job, f"sources/0/{name}", *entries)


def test_of_kafka_it_is_from_the_end_of_the_batch_before(job: Job) -> None:
    first, second = {"t": {"0": 5, "1": 7}}, {"t": {"0": 9, "1": 7}}
    write_log(job, "sources/0/0", {"t": {"0": 3, "1": 0}}, version="\0v1")
    write_offsets(job, first, second, second)
    assert read_source_range(job, 0) == SourceRange(TIME_MS, {"t": {"0": 3, "1": 0}}, first)
    assert read_source_range(job, 1) == SourceRange(TIME_MS + 1, first, second)


def test_a_batch_without_records_read_nothing(job: Job) -> None:
    write_offsets(job, {"t": {"0": 5}}, {"t": {"0": 5}})
    assert read_source_range(job, 1) is None


def test_what_the_log_no_longer_has_is_not_known(job: Job) -> None:
    write_offsets(job, {"t": {"0": 5}}, {"t": {"0": 6}}, {"t": {"0": 7}})
    (Path(job.checkpoint) / "offsets" / "0").unlink()
    assert read_source_range(job, 0) is None
    assert read_source_range(job, 1) is None
    assert read_source_range(job, 2) is not None


def test_a_source_that_had_nothing_yet_begins_where_it_began(job: Job) -> None:
    begin, end = {"t": {"0": 1}}, {"t": {"0": 2}}
    write_log(job, "sources/0/0", begin)
    write_offsets(job, "-", end)
    assert read_source_range(job, 1) == SourceRange(TIME_MS + 1, begin, end)


def test_files_are_those_between_two_entries_of_their_log(job: Job) -> None:
    write_offsets(job, {"logOffset": 0}, {"logOffset": 2})
    write_files(job, "0", 0)
    write_files(job, "1", 1)
    write_files(job, "2", 2)
    assert read_source_range(job, 0) == SourceRange(TIME_MS, {}, {}, ("file:///in/a 0",))
    files = ("file:///in/a 1", "file:///in/a 2")
    assert read_source_range(job, 1) == SourceRange(TIME_MS + 1, {}, {}, files)


@pytest.mark.parametrize("batch", [0, 8, 9, 10])
def test_compacted_entries_have_those_before_them(job: Job, batch: int) -> None:
    write_offsets(job, *({"logOffset": number} for number in range(11)))
    write_files(job, "9.compact", *range(10))
    write_files(job, "10", 10)
    covered = read_source_range(job, batch)
    assert covered is not None
    assert covered.files == (f"file:///in/a {batch}",)
