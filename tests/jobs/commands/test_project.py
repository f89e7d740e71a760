"""A project of one's own: `unskew init` writes it, `unskew test` tries it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fragile_operator import FRAGILE
from unskew.config.lint import lint
from unskew.config.shipped import SCHEMA_FILE
from unskew.jobs.__main__ import main

CONSOLE = [{"type": "console"}]


def write_job(folder: Path, **sections: object) -> str:
    """Write a job with these sections beside those that each has; the file's path."""
    usual = {
        "source": {"type": "files", "path": "${env:NOT_SET_HERE}"},
        "grouping": "level",
        "checkpoint": str(folder / "checkpoint"),
        "dead_letters": {"type": "files", "path": str(folder / "dead")},
    }
    (folder / "job.yaml").write_text(json.dumps(usual | sections))
    return str(folder / "job.yaml")


def unskew(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "unskew", *words], capture_output=True, text=True, check=False
    )


def test_a_new_project_is_clean_and_nothing_is_overwritten(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["init", str(tmp_path / "new")]) == 0
    job = tmp_path / "new" / "job.yaml"
    assert lint([str(job)]) == []
    named = job.read_text().splitlines()[0].partition("# yaml-language-server: $schema=")[2]
    assert (job.parent / named).read_text("utf-8") == SCHEMA_FILE.read_text("utf-8")
    (tmp_path / "new" / "README.md").unlink()
    assert main(["init", str(tmp_path / "new")]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 5
    assert not (tmp_path / "new" / "README.md").exists()


@pytest.mark.spark
@pytest.mark.slow
def test_a_new_project_gives_what_it_expects_and_a_broken_operator_does_not(
    tmp_path: Path,
) -> None:
    assert main(["init", str(tmp_path)]) == 0
    tried = unskew("test", str(tmp_path / "job.yaml"))
    assert tried.returncode == 0, tried.stderr
    assert tried.stdout.splitlines() == [
        "results: 2, as expected 2",
        "rejected: 1 null_key",
        "partial results merge, however the samples are split",
    ]

    code = (tmp_path / "scoring.py").read_text()
    (tmp_path / "scoring.py").write_text(code.replace("sum(score)", "max(score)"))
    broken = unskew("test", str(tmp_path / "job.yaml"))
    assert broken.returncode == 1
    assert "partial results do not merge" in broken.stdout
    assert "  lines 1 | 2: merged {'score': 3000, 'largest': 3000}, at once" in broken.stdout
    assert "'score': 4250" in broken.stdout
    for number, line in enumerate((tmp_path / "samples.jsonl").read_text().splitlines()[:2], 1):
        assert f"    {number}: {line}\n" in broken.stdout


@pytest.mark.spark
@pytest.mark.slow
def test_each_of_several_results_is_compared_by_its_name(tmp_path: Path) -> None:
    console = [{"type": "console", "rows": "${env:NOT_SET_HERE}"}]
    job = write_job(
        tmp_path,
        name="several",
        decode={"type": "json", "schema": "user STRING, page STRING"},
        operators=[
            {"name": "users", "key": "user", "columns": {"n": "count(*)"}, "sinks": console},
            {"name": "pages", "key": "page", "columns": {"n": "count(*)"}, "sinks": console},
        ],
        partitions=2,
        merge={"partitions": 1},
    )
    samples = [{"user": "a", "page": "p"}, {"user": "b", "page": "p"}, {"user": "b"}]
    (tmp_path / "samples.jsonl").write_text("\n".join(map(json.dumps, samples)))
    results = [
        {"result": "users", "user": "a", "n": 1},
        {"result": "users", "user": "b", "n": 2},
        {"result": "pages", "page": "p", "n": 2},
    ]
    (tmp_path / "expected.jsonl").write_text("\n".join(map(json.dumps, results)))
    tried = unskew("test", job)
    assert tried.stdout.splitlines() == [
        "results: 3, as expected 3",
        "rejected: 1 pages_null_key",
        "partial results merge, however the samples are split",
    ], tried.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_samples_on_which_the_operator_raises_are_rejected_as_in_the_job(tmp_path: Path) -> None:
    job = write_job(
        tmp_path,
        name="fragile",
        decode={"type": "json", "schema": "user STRING, text STRING"},
        operator={"type": "python", "file": "fragile.py", "class": "Fragile"},
        on_error="dead_letter",
        sinks=CONSOLE,
    )
    (tmp_path / "fragile.py").write_text(FRAGILE)
    samples = [("u", "one"), ("u", "boom"), ("v", "boom"), ("u", "three"), (None, "x")]
    lines = [json.dumps({"user": user, "text": text}) for user, text in samples]
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    (tmp_path / "expected.jsonl").write_text('{"key": "u", "texts": 2}')
    tried = unskew("test", job)
    assert tried.stdout.splitlines() == [
        "results: 1, as expected 1",
        "rejected: 1 null_key, 2 operator_failed",
        "partial results merge, however the samples are split",
    ], tried.stderr


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("command", ["test", "run"])
def test_every_wrong_type_is_named_with_its_place(tmp_path: Path, command: str) -> None:
    job = write_job(
        tmp_path,
        name="types",
        source={"type": "files", "path": str(tmp_path / "in")},
        decode={"type": "json", "schema": "user STRING, n INT"},
        operator={
            "type": "aggregate",
            "key": "abs(array(user))",
            "columns": {"n": "count(*)", "low": "min(abs(array(n)))"},
        },
        sinks=CONSOLE,
    )
    (tmp_path / "samples.jsonl").write_text('{"user": "u", "n": 1}')
    (tmp_path / "in").mkdir()
    option = {"test": "--write", "run": "--dry-run"}[command]
    tried = unskew(command, job, option)
    fields = [line.partition(": ")[0] for line in tried.stderr.splitlines()]
    assert [field for field in fields if field.startswith("operator")] == [
        "operator.key",
        "operator.columns.low",
    ], tried.stderr
    assert tried.returncode == 2


@pytest.mark.spark
@pytest.mark.slow
def test_samples_have_one_time_in_every_run(tmp_path: Path) -> None:
    job = write_job(
        tmp_path,
        name="by_arrival",
        decode={"type": "text"},
        operator={"type": "word_count"},
        event_time="timestamp",
        window="1 minute",
        lateness="1 minute",
        sinks=CONSOLE,
    )
    (tmp_path / "samples.jsonl").write_text("a b a")
    window = {"window_start": "2026-01-01T00:00:00.000Z", "window_end": "2026-01-01T00:01:00.000Z"}
    rows = [{**window, "key": "a", "count": 2}, {**window, "key": "b", "count": 1}]
    (tmp_path / "expected.jsonl").write_text("\n".join(map(json.dumps, rows)))
    tried = unskew("test", job)
    assert tried.stdout.splitlines()[0] == "results: 2, as expected 2", tried.stdout + tried.stderr


@pytest.mark.spark
@pytest.mark.slow
def test_a_job_of_rows_shows_what_it_would_write(tmp_path: Path) -> None:
    table = {"type": "table", "format": "parquet", "path": str(tmp_path / "table")}
    job = write_job(
        tmp_path,
        name="to_table",
        source={"type": "files", "path": str(tmp_path)},
        decode={"type": "json", "schema": "user STRING, n BIGINT"},
        operator={"type": "rows"},
        grouping="none",
        sinks=[{**table, "partition_by": ["user"]}],
    )
    lines = ['{"user": "b", "n": 1}', '{"user": "a"}', "{", '{"user": "b", "n": 1}']
    (tmp_path / "samples.jsonl").write_text("\n".join(lines))
    rows = ['{"user":"a","n":null}', '{"user":"b","n":1}']
    (tmp_path / "expected.jsonl").write_text("\n".join(rows))
    tried = unskew("test", job)
    assert tried.stdout.splitlines() == [
        '+ {"user":"b","n":1}',
        "results: 3, as expected 2",
        "rejected: 1 not_decoded",
    ], tried.stderr
    assert tried.returncode == 1
