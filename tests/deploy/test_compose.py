"""docker-compose.yml agrees with the code, and the real Compose reads it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.compose.compose_file import ROOT, Native, in_order, resolved
from tests.support.deploy.compose_checks import CHECKS, Compose, texts_of_the_checkout
from tests.support.deploy.compose_doubles import BROKEN, broken
from tests.support.running.programs import find_program
from unskew.jobs.kafka.broker import Broker

Check = Callable[[Compose], list[str]]
BESIDE = {"kafka", "topics", "alertmanager", "prometheus", "grafana"}
JOBS = {"word-count", "vwap", "hashtags"}


@pytest.fixture(scope="module")
def compose(tmp_path_factory: pytest.TempPathFactory) -> Compose:
    return Compose.read(texts_of_the_checkout(), tmp_path_factory.mktemp("compose"))


def config(*words: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    program = Path(sys.executable).with_name("docker-compose")
    return subprocess.run(
        [program, *words, "config", "--services"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], **environment},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_it_agrees(check: Check, compose: Compose) -> None:
    assert check(compose) == []


@pytest.mark.parametrize(
    ("check", "which", "old", "new"),
    BROKEN,
    ids=[f"{check.__name__}: {new or old}" for check, _, old, new in BROKEN],
)
def test_a_broken_double_is_rejected(
    check: Check, which: str, old: str, new: str, tmp_path: Path
) -> None:
    assert check(broken(which, old, new, tmp_path)) != []


def test_every_check_has_a_double() -> None:
    assert {check for check, *_ in BROKEN} == set(CHECKS)


@pytest.mark.parametrize(
    ("profile", "services"),
    [
        ("", BESIDE),
        ("job", BESIDE | JOBS),
        ("demo", BESIDE | JOBS | {"generate-lines", "generate-trades", "generate-posts"}),
    ],
)
def test_a_profile_has_its_services(profile: str, services: set[str]) -> None:
    passwords = {"GRAFANA_ADMIN_USER": "a", "GRAFANA_ADMIN_PASSWORD": "b"}
    done = config(COMPOSE_PROFILES=profile, **passwords)
    assert (done.returncode, set(done.stdout.split())) == (0, services), done.stderr


def test_without_a_password_nothing_starts_and_with_the_example_all_does() -> None:
    done = config("--env-file", ".env.example")
    assert done.returncode != 0
    assert "GRAFANA_ADMIN_PASSWORD" in done.stderr
    done = config("--env-file", ".env.example", GRAFANA_ADMIN_PASSWORD="b")  # noqa: S106
    assert len(done.stdout.split()) == 11, done.stderr


def test_order_follows_what_is_depended_on(compose: Compose) -> None:
    assert in_order(compose.services, ["vwap"]) == ["kafka", "topics", "vwap"]
    order = in_order(compose.services, [])
    assert order.index("alertmanager") < order.index("prometheus") < order.index("grafana")


def test_addresses_and_paths_of_containers_are_replaced(tmp_path: Path) -> None:
    services = resolved(ROOT / "docker-compose.yml", "demo")
    native = Native(services, tmp_path)
    kafka, prometheus = native.port("kafka", 29092), native.port("prometheus", 9090)
    assert kafka != prometheus
    assert native.environment("vwap")["KAFKA_BOOTSTRAP_SERVERS"] == f"127.0.0.1:{kafka}"
    assert native.environment("vwap")["METRICS_PORT"] == str(native.port("vwap", 9095))
    assert (
        native.text("prometheus", "http://127.0.0.1:9090/x") == f"http://127.0.0.1:{prometheus}/x"
    )
    folder = tmp_path / "prometheus"
    text = "--a=/prometheus --b=/etc/prometheus/prometheus.yml"
    assert native.text("prometheus", text) == (
        f"--a={folder}/prometheus --b={folder}/etc/prometheus/prometheus.yml"
    )


@pytest.mark.parametrize(
    ("old", "new", "code"), [("", "", 0), ("interval: 5s", "interval: 5 s", 1)]
)
def test_promtool_accepts_the_settings_and_rules_as_mounted(
    old: str, new: str, code: int, tmp_path: Path
) -> None:
    native = Native(resolved(ROOT / "docker-compose.yml", "demo"), tmp_path)
    native.mount("prometheus")
    file = native.path_of("prometheus", "/etc/prometheus/prometheus.yml")
    file.write_text(file.read_text().replace(old, new))
    command = [find_program("promtool"), "check", "config", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert code or "2 rule files found" in done.stdout


@pytest.mark.parametrize(
    ("old", "new", "code"), [("", "", 0), ("receiver: page", "receiver: x", 1)]
)
def test_amtool_accepts_the_settings(old: str, new: str, code: int, tmp_path: Path) -> None:
    text = (ROOT / "deploy" / "compose" / "alertmanager.yml").read_text()
    (tmp_path / "a.yml").write_text(text.replace(old, new))
    command = [
        find_program("amtool", "prometheus-alertmanager"),
        "check-config",
        tmp_path / "a.yml",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr


@pytest.mark.e2e
def test_the_broker_knows_every_setting(broker: Broker, compose: Compose) -> None:
    from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    (answer,) = client.describe_configs([ConfigResource(ResourceType.BROKER, "1")]).values()
    known = set(answer.result(20))
    environment = compose.services["kafka"]["environment"]
    settings = {
        name.removeprefix("KAFKA_").lower().replace("_", ".")
        for name in environment
        if name != "KAFKA_HEAP_OPTS"
    }
    assert settings - known == set()
    assert "log.retention.hour" not in known
