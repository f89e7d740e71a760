from pathlib import Path

from tests.support.checkpoints import REPORTS_OF_VERSION_3, copy_checkpoint
from tests.support.running.in_process import job_over
from unskew.jobs.checkpoint.spark_log import (
    list_damaged_logs,
    read_last_commit,
    read_late_watermark,
)


def test_the_newest_commit_is_the_greatest_number(tmp_path: Path) -> None:
    job = job_over({"type": "files", "path": str(tmp_path / "in")}, tmp_path, "log")
    assert read_last_commit(job) == -1
    commits = Path(job.checkpoint) / "commits"
    commits.mkdir(parents=True)
    for name in ("9", "10", ".10.crc"):
        (commits / name).touch()
    assert read_last_commit(job) == 10


def test_the_watermark_is_of_the_batch_before_as_the_log_has_it(tmp_path: Path) -> None:
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "0").write_text('v1\n{"batchWatermarkMs":7,"conf":{}}\n{"logOffset":0}')
    (offsets / "1").write_text('v1\n{"batchWatermarkMs":9,"conf":{}}\n{"logOffset":1}')
    (offsets / "2").write_text("v1\n-\n-")
    (offsets / "4").mkdir()
    # Damaged, as a disk or a power cut leaves it: what only displays need ends no job.
    (offsets / "5").write_bytes(b'v1\n{"batchWatermarkMs":9,"conf":{"a":"\xff"}}\n{}')
    (offsets / "6").write_text('v1\n{"batchWatermark')
    (offsets / "7").write_text('v1\n{"batchWatermarkMs":{}}\n{}')
    (offsets / "8").write_text("")
    watermarks = [read_late_watermark(str(tmp_path), batch) for batch in range(10)]
    assert watermarks == [0, 7000, 9000, *[None] * 7]


def test_damaged_files_of_sparks_logs_are_named(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    copy_checkpoint(REPORTS_OF_VERSION_3, checkpoint, tmp_path / "in")
    zero = checkpoint / "sources" / "0" / "0"
    zero.write_bytes(b"\0" + zero.read_bytes())
    assert list_damaged_logs(str(checkpoint)) == []
    (checkpoint / "offsets" / "2").write_text("v1\n{")
    (checkpoint / "offsets" / "1").write_text("v1")
    (checkpoint / "commits" / "2").write_text("")
    (checkpoint / "metadata").write_text("{")
    assert list_damaged_logs(str(checkpoint)) == [
        f"{checkpoint}/{name}" for name in ("offsets/2", "offsets/1", "commits/2", "metadata")
    ]
