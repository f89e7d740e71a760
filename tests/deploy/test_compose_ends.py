"""How the dry run of docker-compose.yml ends when something is missing, wrong or gone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compose.compose_file import ROOT, resolved, seconds
from tests.compose.dry import Dry
from tests.support.running.programs import find_program
from unskew.config.errors import ExternalError
from unskew.jobs.local.child_processes import Child


def compose_dry(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.compose.dry", *words],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def edited(old: str, new: str, folder: Path) -> str:
    text = (ROOT / "docker-compose.yml").read_text()
    assert old in text
    (folder / "docker-compose.yml").write_text(text.replace(old, new))
    return str(folder / "docker-compose.yml")


def test_without_prometheus_the_run_fails(tmp_path: Path) -> None:
    done = compose_dry(PATH=str(tmp_path))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith("prometheus: this machine has no program of prom/prometheus:")
    assert line.endswith(" to ask for the data of hashtags, vwap, word-count")


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("retention.time=7d", "retention.time=week", "prometheus: ended with "),
        pytest.param(
            "rules:/etc/prometheus/rules:",
            "rules:/etc/rules:",
            "prometheus: has no rule Unskew",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_a_fault_of_prometheus_is_reported(
    old: str, new: str, expected: str, tmp_path: Path
) -> None:
    find_program("prometheus")
    file = edited(old, new, tmp_path)
    done = compose_dry("--file", file, "prometheus", TMPDIR=str(tmp_path))
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith(expected)
    assert "Traceback" not in done.stderr
    assert list(tmp_path.glob("unskew-*")) == []


@pytest.mark.e2e
@pytest.mark.slow
def test_prometheus_alone_has_its_rules() -> None:
    find_program("prometheus")
    done = compose_dry("prometheus")
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    assert " rules\n" in done.stdout


def test_a_service_that_ends_early_does_not_keep_others_from_their_orderly_stop(
    tmp_path: Path,
) -> None:
    dry = Dry(resolved(ROOT / "docker-compose.yml", "demo"), tmp_path)
    orderly = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    dry.children["kafka"] = Child(["sh", "-c", orderly], tmp_path / "kafka")
    dry.children["kafka"].wait_until(
        lambda: "ready" in (tmp_path / "kafka").read_text(), "kafka", 10
    )
    dry.children["vwap"] = Child(["sh", "-c", "echo no topic; exit 3"], tmp_path / "vwap")
    with pytest.raises(ExternalError, match=r"vwap: ended with 3\nno topic"):
        dry.wait("vwap", "healthy")
    assert dry.stop() == ["vwap: ended with 3", "no topic"]
    assert (tmp_path / "kafka").read_text() == "ready\nbye\n"


def test_a_child_that_is_never_ready_is_stopped_and_its_last_lines_are_kept(tmp_path: Path) -> None:
    child = Child(["sh", "-c", "echo one; echo two; sleep 60"], tmp_path / "log")
    with pytest.raises(ExternalError, match="it: is not ready within 1 s\none\ntwo"):
        child.wait_until(lambda: False, "it", 1.0)
    child.stop()
    assert not child.running
    assert (child.log_tail(), child.log_tail(1)) == (["one", "two"], ["two"])


@pytest.mark.parametrize(
    ("text", "value"), [("1m30s", 90.0), ("500ms", 0.5), ("1h0m0.5s", 3600.5), ("250us", 0.00025)]
)
def test_durations_are_those_of_compose(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["10", "5 s", "3d", "s"])
def test_what_is_no_duration_is_rejected(text: str) -> None:
    with pytest.raises(ExternalError, match="not a duration"):
        seconds(text)
