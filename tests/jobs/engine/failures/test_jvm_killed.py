"""A job whose JVM is killed, and one that is stopped, in mid-batch: one line, or none."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.running.in_process import write_lines
from tests.support.running.job_process import Running, running
from tests.support.running.processes import children_named

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(240)]

PACED = '{type: paced, key: "text", cost: 50 ms}'
SINKS = {
    "console": "[{type: console}]",
    "several": "[{type: console}, {type: memory, table: totals}]",
}

# Says that it was called, and fails once there is a file `fail`.
FAILING_SINK = """
import time
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent


def write(results, batch_id):
    (FOLDER / "called").touch()
    while not (FOLDER / "fail").exists():
        time.sleep(0.05)
    raise ValueError("the table is closed")
"""


def words(folder: Path, sinks: str, records: int = 1000, broken: int = 0) -> list[str]:
    """A job of one batch that takes half of its records times 50 ms."""
    write_lines(folder / "in", "1.json", [{"text": f"w{number}"} for number in range(records)])
    with (folder / "in" / "1.json").open("a") as file:
        file.write("{\n" * broken)
    settings = {
        "source": f"{{type: files, path: {folder}/in}}",
        "decode": "{type: json, schema: text STRING}",
        "operator": PACED,
        "event_time": "timestamp '2026-01-01'",
        "window": "{type: none}",
        "lateness": "null",
        "partitions": 2,
        "merge.partitions": 1,
        "sinks": SINKS.get(sinks, sinks),
        "dead_letters": f"{{type: files, path: {folder}/dead}}",
        "checkpoint": folder / "checkpoint",
        "metrics.port": "auto",
        "spark.spark.master": "local[2]",
    }
    options = [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]
    return ["run", "word_count", *options]


def wait_for_batch(job: Running, folder: Path) -> psutil.Process:
    """The JVM, once its first batch is under way."""
    job.wait((folder / "checkpoint" / "offsets" / "0").exists)
    time.sleep(3)
    return children_named("java", job.process.pid)[0]


def remarks(job: Running) -> list[str]:
    """Its lines but the log's own, and a remark that every JVM makes."""
    lines = job.text().splitlines()
    return [line for line in lines if line[:1] != "{" and "jdk.incubator" not in line]


@pytest.mark.parametrize("sinks", ["several", pytest.param("console", marks=pytest.mark.long)])
def test_a_killed_jvm_is_one_line(tmp_path: Path, sinks: str) -> None:
    with running(words(tmp_path, sinks), tmp_path / "log") as job:
        wait_for_batch(job, tmp_path).kill()
        assert job.process.wait(60) == 1
        assert remarks(job) == []
        (problem,) = job.events()[-1]["problems"]
        assert problem.startswith("word_count: the JVM ended (killed?)")


def test_a_jvm_that_is_killed_at_the_start_is_one_line(tmp_path: Path) -> None:
    with running(words(tmp_path, "console", records=2), tmp_path / "log") as job:
        job.wait(lambda: bool(children_named("java", job.process.pid)))
        (jvm,) = children_named("java", job.process.pid)
        job.wait((tmp_path / "checkpoint").exists)
        jvm.kill()
        assert not (tmp_path / "checkpoint" / "offsets" / "0").exists()
        assert job.process.wait(60) == 1
        assert remarks(job) == []
        (problem,) = job.events()[-1]["problems"]
        assert problem.startswith("word_count: the JVM ended (killed?)")


@pytest.mark.parametrize("sinks", ["several", "console"])
def test_sigterm_to_the_group_ends_it_without_a_trace(tmp_path: Path, sinks: str) -> None:
    with running(words(tmp_path, sinks), tmp_path / "log") as job:
        wait_for_batch(job, tmp_path)
        os.killpg(job.process.pid, signal.SIGTERM)
        assert job.process.wait(60) == 0
        assert remarks(job) == []


def test_a_job_with_several_sinks_is_stopped_in_mid_batch_without_a_trace(tmp_path: Path) -> None:
    with running(words(tmp_path, "several"), tmp_path / "log") as job:
        wait_for_batch(job, tmp_path)
        os.kill(job.process.pid, signal.SIGTERM)
        assert job.process.wait(60) == 0
        assert remarks(job) == []


def test_a_failure_after_sigterm_is_told(tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING_SINK)
    sink = f"[{{type: python, file: {tmp_path}/failing.py, function: write}}]"
    with running(words(tmp_path, sink, records=2), tmp_path / "log") as job:
        job.wait((tmp_path / "called").exists)
        os.kill(job.process.pid, signal.SIGTERM)
        time.sleep(1)
        (tmp_path / "fail").touch()
        assert job.process.wait(60) == 1
        (problem,) = job.events()[-1]["problems"]
        assert "ValueError: the table is closed" in problem


# Takes seconds for each record, and says so by a column of it: Spark would compute it beforehand.
SLOW = (
    "aggregate(sequence(1, 3000 + length(text)), 0L,"
    " (a, x) -> a + aggregate(sequence(1, 10000), 0L, (b, y) -> b + y)) > 0"
)
SLOW_JOB = """\
name: slow
source: {{type: files, path: {folder}/in}}
decode: {{type: json, schema: text STRING}}
where: "{slow}"
operator: {{type: word_count, text: text}}
event_time: timestamp '2026-01-01'
window: none
grouping: level
partitions: 2
merge: {{partitions: 1, output: update}}
sinks: [{{type: console}}]
dead_letters: {{type: files, path: {folder}/dead}}
checkpoint: {folder}/checkpoint
spark: {{spark.master: "local[2]", spark.local.dir: {folder}/local}}
"""


@pytest.mark.parametrize(
    "words",
    [
        ["run", "JOB", "--dry-run"],
        ["test", "JOB", "--samples", "SAMPLES", "--expected", "EXPECTED", "--write"],
        ["compare", "JOB"],
    ],
    ids=["dry-run", "test", "compare"],
)
def test_a_jvm_that_is_killed_under_another_command_is_one_line(
    tmp_path: Path, words: list[str]
) -> None:
    write_lines(tmp_path / "in", "1.json", [{"text": f"w{number}"} for number in range(500)])
    (tmp_path / "job.yaml").write_text(SLOW_JOB.format(folder=tmp_path, slow=SLOW))
    paths = {"JOB": "job.yaml", "SAMPLES": "in/1.json", "EXPECTED": "expected.jsonl"}
    command = [sys.executable, "-m", "unskew"]
    command += [str(tmp_path / paths[word]) if word in paths else word for word in words]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            deadline = time.monotonic() + 120
            while not list(tmp_path.glob("local/**/blockmgr-*")):
                assert process.poll() is None, process.communicate()
                assert time.monotonic() < deadline
                time.sleep(0.1)
            time.sleep(3)
            children_named("java", process.pid)[0].kill()
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    expected = ("jdk.incubator", "compare: starting Spark")
    (line,) = [line for line in errors.splitlines() if not any(each in line for each in expected)]
    assert line.startswith("slow: the JVM ended (killed?)")
    assert process.returncode == 1


def test_a_jvm_that_is_killed_when_dead_letters_are_published_is_one_line(tmp_path: Path) -> None:
    with running(words(tmp_path, "console", records=2, broken=500), tmp_path / "log") as job:
        job.wait(lambda: bool(children_named("java", job.process.pid)))
        (jvm,) = children_named("java", job.process.pid)
        # A batch's dead letters are published once it is committed.
        while not (tmp_path / "checkpoint" / "commits" / "0").exists():
            assert job.process.poll() is None, job.text()
            time.sleep(0.01)
        jvm.kill()
        assert job.process.wait(60) == 1
        assert remarks(job) == []
        (problem,) = job.events()[-1]["problems"]
        assert problem.startswith("word_count: the JVM ended (killed?)")
