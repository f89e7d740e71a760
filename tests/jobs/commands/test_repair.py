"""`unskew repair` on a checkpoint whose watermark a record moved into the future."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.support.oracles import START, WINDOWS
from tests.support.running.in_process import Ran, write_lines
from unskew.jobs.__main__ import main
from unskew.jobs.checkpoint.lock import lock_checkpoint
from unskew.jobs.checkpoint.spark_log import read_watermark
from unskew.jobs.observe.inspection import inspect

POISON = datetime(9000, 1, 1, tzinfo=UTC)


def run(spark: SparkSession, folder: Path, texts: dict[str, datetime]) -> Ran:
    """One more file through the job, which lets event times of the future in."""
    rows = [{"text": text, "at": at.isoformat()} for text, at in texts.items()]
    write_lines(folder / "in", f"{len(list(folder.glob('in/*')))}.json", rows)
    return Ran(
        spark,
        folder,
        "job",
        operator={"type": "word_count", "text": "text"},
        window=WINDOWS["tumbling"],
        lateness="10 s",
        max_future="off",
    )


def keys(ran: Ran) -> set[str]:
    return {key for _, _, key in ran.last}


@pytest.mark.slow
@pytest.mark.spark
def test_records_count_again_after_the_watermark_is_set_back(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").mkdir()
    run(spark, tmp_path, {"first": START})
    run(spark, tmp_path, {"second": START + timedelta(minutes=1)})
    run(spark, tmp_path, {"poison": POISON})
    lost = run(spark, tmp_path, {"lost": START + timedelta(minutes=2)})
    assert "lost" not in keys(lost)
    checkpoint = lost.job.checkpoint
    newest = inspect(checkpoint).data()["batches"][-1]
    assert newest["watermark"] > datetime(8999, 1, 1, tzinfo=UTC).timestamp()
    assert newest["watermark_behind_seconds"] < 0

    assert main(["repair", checkpoint]) == 0
    before = START + timedelta(minutes=1) - timedelta(seconds=10)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (f"watermark 8999-12-31T23:59:50Z: set back to {before.isoformat()[:19]}Z")
    assert lines[1] == "not brought back:"
    assert lines[2].startswith("- records of batches ")
    assert len(lines) == 5

    again = run(spark, tmp_path, {"counts": START + timedelta(minutes=3), "late": START})
    assert "counts" in keys(again)
    # The job goes on with the watermark that was set: what is late by it is late.
    assert "late" not in keys(again)
    newest_batch = max(done.batch for done in again.batches)
    moved = read_watermark(checkpoint, newest_batch)
    assert moved == int((START + timedelta(minutes=3, seconds=-10)).timestamp() * 1e6)

    assert main(["repair", checkpoint]) == 0
    assert capsys.readouterr().out.endswith("nothing was changed\n")


def checkpoint_with(folder: Path, watermark: int) -> Path:
    """Logs of one batch as Spark writes them, with Hadoop's checksum beside one."""
    for log, field in (("offsets", "batchWatermarkMs"), ("commits", "nextBatchWatermarkMs")):
        (folder / log).mkdir(parents=True)
        text = json.dumps({field: watermark, "conf": {"spark.x": "1"}}, separators=(",", ":"))
        end = "\n{}" if log == "offsets" else ""
        (folder / log / "0").write_text(f"v1\n{text}{end}")
    (folder / "commits" / ".0.crc").write_bytes(b"crc")
    return folder


def test_only_the_watermark_changes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    checkpoint = checkpoint_with(tmp_path, 10**15)
    assert main(["repair", str(checkpoint), "--watermark", "2026-01-01T01:00:00+01:00"]) == 0
    assert capsys.readouterr().out.startswith("watermark 1000000000000000 ms after 1970: set back")
    set_to = 1_767_225_600_000
    assert (checkpoint / "offsets" / "0").read_text() == (
        f'v1\n{{"batchWatermarkMs":{set_to},"conf":{{"spark.x":"1"}}}}\n{{}}'
    )
    assert (checkpoint / "commits" / "0").read_text() == (
        f'v1\n{{"nextBatchWatermarkMs":{set_to},"conf":{{"spark.x":"1"}}}}'
    )
    assert not (checkpoint / "commits" / ".0.crc").exists()


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        ([], 2, "has no watermark earlier than now; name one with --watermark"),
        (["--watermark", "2026-01-01"], 2, "--watermark: a time with its zone"),
        (["--watermark", "soon"], 2, "--watermark: a time with its zone"),
    ],
)
def test_what_it_needs_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, says: str
) -> None:
    checkpoint = checkpoint_with(tmp_path, 10**14)
    assert main(["repair", str(checkpoint), *words]) == code
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


def test_a_folder_without_batches_and_a_damaged_log_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["repair", str(tmp_path)]) == 1
    assert "has no batches" in capsys.readouterr().err
    checkpoint_with(tmp_path, 5)
    (tmp_path / "offsets" / "0").write_text("v1\n-")
    assert main(["repair", str(tmp_path)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"repair: {tmp_path}/offsets/0: has no watermark that can be read")


def test_a_job_that_runs_keeps_its_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = checkpoint_with(tmp_path, 10**14)
    with lock_checkpoint(str(checkpoint)):
        assert main(["repair", str(checkpoint), "--watermark", "2026-01-01T00:00:00Z"]) == 1
    assert "in use by process" in capsys.readouterr().err
    assert "100000000000000" in (checkpoint / "offsets" / "0").read_text()
