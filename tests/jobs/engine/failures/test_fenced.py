"""A start that was taken over makes no further entry, on a checkpoint without locks."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.running.in_process import Ran, job_over, write_lines
from unskew.config.errors import ExternalError
from unskew.jobs.checkpoint import fenced_logs
from unskew.jobs.checkpoint.files import open_journal_in
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.spark_errors import SPARK_ERRORS, explain_spark_error
from unskew.jobs.observe.batches.batch import Lag
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.terminal import Line, Log

pytestmark = pytest.mark.spark

PLAIN = {"window": {"type": "none"}, "lateness": None, "event_time": "timestamp '2026-01-01'"}
# Another start takes the job over after the batch's last look of ours.
OVERTAKEN = """
from pathlib import Path


def write(results, batch_id):
    Path("{checkpoint}/unskew/owner").write_text("another start")
"""


def list_entries(checkpoint: Path) -> dict[str, list[str]]:
    return {
        log: sorted(path.name for path in (checkpoint / log).glob("[0-9]*"))
        for log in ("offsets", "commits")
    }


def test_the_next_offset_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoints" / "fenced"
    write_lines(folder, "0.json", [{"text": "a"}])
    job = job_over(
        {"type": "files", "path": str(folder)},
        tmp_path,
        "fenced",
        trigger={"type": "interval", "interval": "100 ms"},
        # Spark's own: no code of ours runs in a batch.
        grouping={"type": "none"},
        **PLAIN,
    )
    service = Service(job, spark)
    service._prepare()
    query = service._start()
    try:
        query.processAllAvailable()
        assert list_entries(checkpoint) == {"offsets": ["0"], "commits": ["0"]}
        Service(job, spark).journal.take_over()
        write_lines(folder, "1.json", [{"text": "b"}])
        with pytest.raises(SPARK_ERRORS) as failed:
            query.awaitTermination(30)
    finally:
        query.stop()
    assert "another start of the job took it over" in explain_spark_error(job, failed.value)
    assert list_entries(checkpoint) == {"offsets": ["0"], "commits": ["0"]}


@pytest.mark.parametrize("grouping", ["level", "none"])
def test_the_commit_is_refused(spark: SparkSession, tmp_path: Path, grouping: str) -> None:
    checkpoint = tmp_path / "checkpoints" / grouping
    # Spark sends a file of one name once.
    file = tmp_path / f"overtaken_{grouping}.py"
    file.write_text(OVERTAKEN.format(checkpoint=checkpoint))
    write_lines(tmp_path / "in", "0.json", [{"text": "a"}])
    sink = {"type": "python", "file": str(file), "function": "write"}
    with pytest.raises(ExternalError, match=r"another start of the job took it over"):
        Ran(spark, tmp_path, grouping, grouping={"type": grouping}, sinks=[sink], **PLAIN)
    assert list_entries(checkpoint) == {"offsets": ["0"], "commits": []}
    assert open_journal_in(str(checkpoint)).batches() == ([0] if grouping == "level" else [])


@pytest.mark.parametrize(
    ("name", "other"), [("_FIELD", "files"), ("_LOG", "org.apache.spark.Log"), ("_FILES", "a.B")]
)
def test_a_spark_with_other_logs_is_a_warning_and_the_job_runs(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, other: str
) -> None:
    if name == "_FILES":
        monkeypatch.setattr(fenced_logs._FencedFiles.Java, "implements", (other,))
    else:
        monkeypatch.setattr(fenced_logs, name, other)
    write_lines(tmp_path / "in", "0.json", [{"text": "a"}])
    source = {"type": "files", "path": str(tmp_path / "in")}
    out, shown = io.StringIO(), io.StringIO()
    displays = Log("j", "json", out), Line("j", shown)
    Service(job_over(source, tmp_path, "other", **PLAIN), spark, displays).run()
    events = [json.loads(line) for line in out.getvalue().splitlines()]
    (warning,) = [event for event in events if event["level"] == "warning"]
    assert warning["text"].startswith("Spark 4.2.0 has other logs of offsets and commits")
    assert warning["text"] in shown.getvalue()
    assert [event["event"] for event in events].count("batch") == 1


@pytest.mark.timeout(120)
def test_a_start_that_is_idle_ends_too(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.jobs.engine.service._OWNER_CHECK_SECONDS", 1.0)
    write_lines(tmp_path / "in", "0.json", [{"text": "a"}])
    source = {"type": "files", "path": str(tmp_path / "in")}
    changes: dict[str, Any] = {"trigger": {"type": "interval", "interval": "100 ms"}, **PLAIN}
    job = job_over(source, tmp_path, "idle", **changes)
    other = Service(job, spark).journal

    class TakesOver(Follower):
        def on_idle_poll(self, lag: Lag) -> None:
            other.take_over()

    with pytest.raises(ExternalError, match=r"another start of the job took it over"):
        Service(job, spark, (TakesOver(),)).run()
    checkpoint = tmp_path / "checkpoints" / "idle"
    assert list_entries(checkpoint) == {"offsets": ["0"], "commits": ["0"]}
