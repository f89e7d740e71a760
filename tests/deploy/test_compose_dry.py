"""What docker-compose.yml says is what runs: its commands, natively, in its order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.compose.compose_file import ROOT, resolved
from tests.support.running.programs import find_program

pytestmark = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1200)]
JOBS = {"word-count": "word_count", "vwap": "vwap", "hashtags": "hashtags"}


def compose_dry(*words: str, tmp: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "tests.compose.dry", *words],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_data_of_every_job_reaches_prometheus(tmp_path: Path) -> None:
    find_program("prometheus")
    find_program("prometheus-alertmanager")
    done = compose_dry(tmp=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr
    for service, job in JOBS.items():
        assert f"{service}: Prometheus has " in done.stdout
        assert f" records of {job}\n" in done.stdout
    assert "prometheus: sends its alerts to alertmanager\n" in done.stdout
    assert re.search(r"prometheus: has \d{2} rules\n", done.stdout)
    started = {line.split(": ")[1] for line in done.stdout.splitlines() if ": started (" in line}
    assert started >= set(resolved(ROOT / "docker-compose.yml", "demo")) - {"grafana"}
    assert list(tmp_path.glob("unskew-*")) == []


@pytest.mark.parametrize(
    ("old", "new", "services", "expected"),
    [
        ("word_count, vwap, hashtags,", "word_count, hashtags,", ["vwap"], "no such topic"),
        ("kafka:29092\n", "kafka:29093\n", ["topics"], "no broker answers"),
        ("PROCESS_ROLES: broker,c", "PROCESS_ROLES: broken,c", ["kafka"], "process.roles"),
    ],
)
def test_a_broken_double_ends_with_the_reason(
    old: str, new: str, services: list[str], expected: str, tmp_path: Path
) -> None:
    text = (ROOT / "docker-compose.yml").read_text()
    assert old in text
    file = tmp_path / "docker-compose.yml"
    # A job that fails need not be seen here.
    file.write_text(
        text.replace(old, new).replace("hold_after_failure=60 s", "hold_after_failure=1 s")
    )
    done = compose_dry("--file", str(file), *services, tmp=tmp_path)
    assert done.returncode == 1, done.stdout
    assert expected in done.stderr
    assert "Traceback" not in done.stderr


def test_a_prometheus_without_alertmanager_is_rejected(tmp_path: Path) -> None:
    find_program("prometheus")
    find_program("prometheus-alertmanager")
    settings = yaml.safe_load((ROOT / "deploy" / "compose" / "prometheus.yml").read_text())
    del settings["alerting"]
    (tmp_path / "prometheus.yml").write_text(yaml.safe_dump(settings))
    text = (ROOT / "docker-compose.yml").read_text()
    mounted = "./deploy/compose/prometheus.yml"
    assert mounted in text
    file = tmp_path / "docker-compose.yml"
    file.write_text(text.replace(mounted, str(tmp_path / "prometheus.yml")))
    done = compose_dry("--file", str(file), "prometheus", tmp=tmp_path)
    assert done.returncode == 1, done.stdout
    assert done.stderr.startswith(
        "prometheus: sends its alerts to no Alertmanager, not to 127.0.0.1:"
    )


def test_a_stop_leaves_no_process(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tests.compose.dry", "topics"],
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith("compose-dry: kafka: started (apache/kafka:")
        process.terminate()
        assert process.stderr.read() == "compose-dry: interrupted\n"
    assert process.returncode == 130
    assert list(tmp_path.glob("unskew-*")) == []
