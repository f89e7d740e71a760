"""deploy/Dockerfile: what hadolint says, what it must agree on, and its commands carried out."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.compose_file import dockerfile_health_check
from tests.support.deploy.dockerfile import (
    DOCKERFILE,
    ROOT,
    Image,
    copied,
    in_context,
    instructions,
    variables,
)
from unskew.config.models.metrics import Metrics
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.web.server import MetricsServer

INSTRUCTIONS = instructions(DOCKERFILE.read_text())


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", ""),
        ("python:3.11.17-slim-bookworm\n", "python:latest\n", "DL3007"),
        ("WORKDIR /var/lib/unskew", "WORKDIR lib", "DL3000"),
        ("USER 10001:10001", "USER root", "DL3002"),
    ],
)
def test_hadolint_has_no_complaint_but_of_doubles(old: str, new: str, expected: str) -> None:
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), "-"],
        input=DOCKERFILE.read_text().replace(old, new) if old else DOCKERFILE.read_text(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == bool(expected), done.stdout
    assert expected in done.stdout


def test_both_stages_are_the_same_python_of_a_version_that_is_supported() -> None:
    bases = {each.text.split()[0] for each in INSTRUCTIONS if each.name == "FROM"}
    (base,) = bases
    version = re.fullmatch(r"python:(3\.\d+)\.\d+-slim-bookworm(?:@sha256:[0-9a-f]{64})?", base)
    assert version, base
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert f"Programming Language :: Python :: {version[1]}" in project["classifiers"]
    assert f"/python{version[1]}/" in variables(INSTRUCTIONS, 1)["SPARK_HOME"]


def test_the_container_is_nobody_and_its_page_is_exposed() -> None:
    last = {each.name: each.text for each in INSTRUCTIONS if each.stage == 1}
    assert last["USER"] == "10001:10001"
    assert last["EXPOSE"] == variables(INSTRUCTIONS, 1)["METRICS_PORT"]
    assert variables(INSTRUCTIONS, 1)["METRICS_HOST"] == "0.0.0.0"  # noqa: S104 - in a container
    assert json.loads(last["ENTRYPOINT"]) == ["/opt/entrypoint.sh"]
    assert os.access(ROOT / "deploy" / "entrypoint.sh", os.X_OK)


def test_the_builder_is_sent_what_is_copied_and_nothing_else() -> None:
    ignore = (ROOT / ".dockerignore").read_text()
    sources = [
        word for stage in (0, 1) for words, _ in copied(INSTRUCTIONS, stage) for word in words
    ]
    assert [path for path in sources if not in_context(path, ignore)] == []
    assert [path for path in sources if not (ROOT / path).exists()] == []
    lines = [line[1:] for line in ignore.splitlines() if line.startswith("!")]
    assert sorted(lines) == sorted(sources)
    for path in (
        ".env",
        ".git/config",
        ".venv/bin/python",
        "tests/conftest.py",
        "deploy/Dockerfile",
    ):
        assert not in_context(path, ignore), path
    assert not in_context("jobs/__pycache__/demo.cpython-311.pyc", ignore)


@pytest.mark.parametrize(("state", "code"), [("running", 0), ("failed", 1)])
def test_the_health_check_tells_a_job_that_is_well(state: str, code: int) -> None:
    health = Health(60.0)
    health.on_state_changed(state)
    board = Board("job", health)
    with MetricsServer(Metrics(), board, health) as server:
        port = server.url.split(":")[2].partition("/")[0]
        _, *words = dockerfile_health_check()
        done = subprocess.run(
            [sys.executable, *words],
            env={**os.environ, "METRICS_PORT": port},
            capture_output=True,
            check=False,
        )
    assert done.returncode == code, done.stderr


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    """The image's folder, built by its own commands; afterwards nothing in it can be written."""
    folder = Path(tempfile.mkdtemp(prefix="unskew-image-"))
    try:
        made = Image(folder)
        made.build()
        subprocess.run(["chmod", "-R", "a-w", folder / "opt"], check=True)
        yield made
    finally:
        subprocess.run(["chmod", "-R", "u+w", folder], check=True)
        shutil.rmtree(folder)


def in_image(image: Image, *words: str, **variables: str) -> "subprocess.Popen[str]":
    """Start a container's command: the image's environment alone, and no right to write into it."""
    command = [image.native("/opt/entrypoint.sh"), *words]
    if os.getuid() == 0:  # root without capabilities is bound by the files' modes as others are
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", *command]
    return subprocess.Popen(
        command,
        cwd=image.native("/var/lib/unskew"),
        env={**image.environment, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def finished(image: Image, *words: str, **variables: str) -> tuple[int, str]:
    process = in_image(image, *words, **variables)
    try:
        output = process.communicate(timeout=300)[0]
    except BaseException:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output


@pytest.fixture(scope="module")
def broker_with_lines() -> Iterator[Broker]:
    from confluent_kafka import Producer

    with Broker() as broker:
        broker.create_topics(["lines", "word-counts", "word-count-dead-letters"])
        producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
        for _ in range(100):
            producer.produce("lines", b"to be or not to be")
        assert producer.flush(30) == 0
        yield broker


def of_a_job(broker: Broker, folder: Path, port: str = "auto") -> dict[str, str]:
    """The variables that tell a container of a job where everything is."""
    return {
        "KAFKA_BOOTSTRAP_SERVERS": broker.address,
        "UNSKEW_CHECKPOINTS": str(folder),
        "METRICS_PORT": port,
        "SPARK_MASTER": "local[1]",
        "NUMBA_CACHE_DIR": str(folder / "numba"),
    }


SLOW = [pytest.mark.spark, pytest.mark.e2e, pytest.mark.long, pytest.mark.timeout(1800)]
JOB = ("run", "word_count", "--available-now", "--log", "json", "--set", "partitions=2")


class TestImage:
    """The commands of the Dockerfile carried out; Java, packages and jars are the image's own."""

    pytestmark = SLOW

    def test_nothing_that_only_builds_is_in_it(self, image: Image) -> None:
        site = next(image.folder.glob("opt/unskew/venv/lib/python*/site-packages"))
        assert not [name for name in ("pip", "hatchling", "setuptools") if (site / name).exists()]
        assert (site / "jobs" / "data" / "ivy.xml").exists()

    def test_every_user_may_read_it(self, image: Image) -> None:
        closed = [
            path
            for path in (image.folder / "opt").rglob("*")
            if not path.is_symlink() and (path.stat().st_mode & 0o005) < (5 if path.is_dir() else 4)
        ]
        assert closed == []
        java = image.folder / "opt/unskew/jre/bin/java"
        assert java.stat().st_mode & 0o001

    def test_it_writes_nothing_and_fetches_nothing(self, image: Image) -> None:
        # A registry could only be reached through this.
        blocked = {"http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1"}
        code, output = finished(image, "jars", "spark", **blocked)
        assert code == 0, output
        assert all(line.startswith(str(image.folder)) for line in output.splitlines())
        code, output = finished(image, "lint", "word_count", "vwap", "hashtags")
        assert (code, output.count(": job ")) == (0, 3), output

    def test_a_job_runs_with_the_java_of_the_image(
        self, image: Image, broker_with_lines: Broker, tmp_path: Path
    ) -> None:
        code, output = finished(
            image,
            *JOB,
            **of_a_job(broker_with_lines, tmp_path),
        )
        assert code == 0, output
        assert '"records": 600' in output, output

    def test_a_driver_that_spark_submit_starts_runs_the_job(
        self, image: Image, broker_with_lines: Broker, tmp_path: Path
    ) -> None:
        properties = tmp_path / "spark.properties"
        properties.write_text("spark.master local[1]\nspark.driver.memory 512m\n")
        main = f"local://{image.native('/opt/unskew')}/main.py"
        code, output = finished(
            image,
            *("driver", "--properties-file", str(properties)),
            *("--class", "org.apache.spark.deploy.PythonRunner", main, *JOB),
            SPARK_DRIVER_BIND_ADDRESS="127.0.0.1",
            **of_a_job(broker_with_lines, tmp_path),
        )
        assert code == 0, output
        assert '"records": 600' in output, output

    def test_a_container_is_asked_for_its_health_and_ends_when_stopped(
        self, image: Image, broker_with_lines: Broker, tmp_path: Path
    ) -> None:
        from unskew.jobs.local.child_processes import find_free_ports

        (port,) = find_free_ports(1)
        process = in_image(
            image,
            *("run", "word_count", "--log", "json", "--set", "partitions=2"),
            **of_a_job(broker_with_lines, tmp_path, str(port)),
        )
        try:
            check = [image.native("/opt/unskew/venv/bin/python"), *dockerfile_health_check()[1:]]
            environment = {**image.environment, "METRICS_PORT": str(port)}
            deadline = time.monotonic() + 120
            while subprocess.run(
                check, env=environment, capture_output=True, check=False
            ).returncode:
                assert process.poll() is None
                assert time.monotonic() < deadline
                time.sleep(0.5)
            process.terminate()
            output = process.communicate(timeout=60)[0]
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
        assert process.returncode == 0, output
