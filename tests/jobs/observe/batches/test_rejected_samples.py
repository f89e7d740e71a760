"""A few rejected records of a batch as displays may show them."""

from pathlib import Path

import pyarrow as pa
import pytest

from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.hash_key import make_hash_key
from unskew.jobs.observe.batches.rejected_samples import (
    SAMPLES,
    RejectedSample,
    make_samples,
    read_rejected_rows,
)


def rejected(values: list[bytes | None]) -> pa.Table:
    count = len(values)
    return pa.table(
        {
            "reason": ["not_utf8"] * count,
            "key": pa.nulls(count, pa.binary()),
            "topic": ["lines"] * count,
            "partition": pa.array([2] * count, pa.int32()),
            "offset": pa.array(range(count), pa.int64()),
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.nulls(count, pa.timestamp("us", "UTC")),
        }
    )


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    journal = Journal(str(tmp_path / "unskew"))
    for partition in range(2):
        journal.write_rejected(0, partition, rejected([b"secret", b"x" * 999, None, b"caf\xe9"]))
    return journal


def test_the_first_few_are_shown_by_hashes_that_need_the_checkpoints_key(
    tmp_path: Path, journal: Journal
) -> None:
    rows = read_rejected_rows(journal, 0)
    assert len(rows) == SAMPLES < 8
    checkpoints = [str(tmp_path / name) for name in ("one", "other")]
    for checkpoint in checkpoints:
        Path(checkpoint).mkdir()
        make_hash_key(checkpoint)
    own, other = (make_samples(checkpoint, rows, values=False) for checkpoint in checkpoints)
    assert own == make_samples(checkpoints[0], rows, values=False)
    assert (own[0].topic, own[0].partition, own[0].offset) == ("lines", 2, 0)
    assert not {each.value for each in own} & {each.value for each in other}
    assert all(len(each.value) == 16 and "secret" not in each.value for each in own)


def test_values_are_shown_where_the_job_allows_them(journal: Journal, tmp_path: Path) -> None:
    shown = make_samples(str(tmp_path), read_rejected_rows(journal, 0), values=True)
    assert shown[0] == RejectedSample("not_utf8", "lines", 2, 0, "secret")
    assert [each.value for each in shown[1:4]] == ["x" * 120, "", "caf\N{REPLACEMENT CHARACTER}"]


def test_a_damaged_file_shows_none(journal: Journal, tmp_path: Path) -> None:
    (file, _) = sorted((tmp_path / "unskew" / f"{0:012d}").iterdir())
    file.write_bytes(file.read_bytes()[:-20])
    assert read_rejected_rows(journal, 0) == []
    assert make_samples(str(tmp_path / "none"), [], values=False) == ()
