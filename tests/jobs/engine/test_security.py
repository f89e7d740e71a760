"""The secured job of docs/operating.md, as it stands there, against a broker with TLS and SCRAM."""

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.support.blocks import blocks
from tests.support.running.job_process import finished, produce, totals
from tests.support.running.topics import topic_records
from unskew.config.explain import explain, write_yaml
from unskew.config.lint import lint
from unskew.config.loader import load_job
from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker, Identity

HEADING = "Kafka with TLS and SCRAM"
PASSWORD = 'pa55-of-the-job-"with\\quotes'  # noqa: S105 - of this test


def openssl(folder: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)


def authority(folder: Path, name: str) -> Path:
    """A certificate authority of one's own."""
    openssl(
        folder,
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.pem"),
    )
    return folder / f"{name}.pem"


def identity(folder: Path, ca: Path, address: str = "127.0.0.1") -> Identity:
    """A broker's certificate and key, signed by the authority."""
    (folder / "names").write_text(f"subjectAltName=IP:{address}")
    openssl(
        folder,
        *("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"),
        *("-subj", "/CN=broker", "-keyout", "broker.key", "-out", "broker.csr"),
    )
    openssl(
        folder,
        *("x509", "-req", "-in", "broker.csr", "-CA", str(ca), "-CAkey", f"{ca.stem}.key"),
        *("-CAcreateserial", "-extfile", "names", "-out", "broker.pem"),
    )
    return Identity(folder / "broker.pem", folder / "broker.key")


def permit(broker: Broker, user: str, topic: str, *operations: AclOperation) -> None:
    client = AdminClient({"bootstrap.servers": broker.address, "log_level": 0})
    rules = [
        AclBinding(
            ResourceType.TOPIC,
            topic,
            ResourcePatternType.LITERAL,
            f"User:{user}",
            "*",
            operation,
            AclPermissionType.ALLOW,
        )
        for operation in operations
    ]
    for answer in client.create_acls(rules).values():
        answer.result(timeout=30)


@dataclass(frozen=True)
class Secured:
    """The broker, its authority's certificate, and what the job must count."""

    broker: Broker
    ca: Path
    counts: dict[str, int]


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    ca = authority(folder, "ca")
    with Broker(identity=identity(folder, ca)) as broker:
        broker.create_topics(["lines", "forbidden", "word-counts", "word-count-dead-letters"])
        broker.add_user("unskew", PASSWORD)
        permit(broker, "unskew", "lines", AclOperation.DESCRIBE, AclOperation.READ)
        for topic in ("word-counts", "word-count-dead-letters"):
            permit(broker, "unskew", topic, AclOperation.DESCRIBE, AclOperation.WRITE)
        yield Secured(broker, ca, produce(broker, "lines", 500, seed=1))


@pytest.fixture
def job(root: Path, tmp_path: Path, secured: Secured, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The page's own job, unchanged: what differs from machine to machine is in the environment."""
    (block,) = blocks(root / "docs" / "operating.md", "yaml", HEADING)
    (tmp_path / "job.yaml").write_text(block.text)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", secured.broker.secure_address)
    monkeypatch.setenv("KAFKA_CA_FILE", str(secured.ca))
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    monkeypatch.setenv("UNSKEW_CHECKPOINTS", str(tmp_path / "checkpoints"))
    return [str(tmp_path / "job.yaml")]


def run(job: list[str], *more: str) -> tuple[int, str, str]:
    small = ("--set", "spark.spark.master=local[2]", "--set", "merge.partitions=2")
    return finished(["run", *job, "--available-now", *small], *more)


def secret_free(*texts: str) -> None:
    for text in texts:
        assert PASSWORD not in text


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.slow
def test_the_job_of_the_page_counts_and_leaves_its_secret_nowhere(
    job: list[str], secured: Secured, tmp_path: Path
) -> None:
    code, output, errors = run(job, "--debug", "--spark-log", "info")
    assert code == 0, errors
    secret_free(output, errors)
    assert totals(secured.broker, "word-counts") == secured.counts
    for path in (tmp_path / "checkpoints").rglob("*"):
        if path.is_file():
            secret_free(path.read_bytes().decode("latin-1"))


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "line"),
    [
        ("password", "Kafka refuses user or password"),
        ("authority", "Kafka's certificate is not trusted"),
        ("read", "Kafka does not permit this user"),
        pytest.param("host", "Kafka's certificate is not trusted", marks=pytest.mark.long),
        pytest.param("write", "Kafka does not permit this user", marks=pytest.mark.long),
    ],
)
def test_what_goes_wrong_is_one_line_without_the_secret(
    fault: str, line: str, job: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = Path(job[0])
    # Spark asks three times, ten seconds apart, before it believes a broker's no.
    soon = file.read_text().replace("options:", "options:\n    fetchOffset.retryIntervalMs: 10")
    file.write_text(soon)
    more: list[str] = []
    if fault == "password":
        monkeypatch.setenv("KAFKA_PASSWORD", "not-the-password")
    elif fault == "authority":
        monkeypatch.setenv("KAFKA_CA_FILE", str(authority(tmp_path, "another")))
    elif fault == "host":
        server = os.environ["KAFKA_BOOTSTRAP_SERVERS"]
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", server.replace("127.0.0.1", "localhost"))
    elif fault == "read":
        more = ["--set", "source.subscribe=[forbidden]"]
    else:
        more = ["--set", "sinks=[{type: kafka, topic: forbidden}]"]
    code, output, errors = run(job, *more)
    assert code == 1
    (message,) = [text for text in errors.splitlines() if " info " not in text]
    assert message.startswith(f"word_count_secured: {line}: ")
    secret_free(output, errors)


@pytest.mark.e2e
@pytest.mark.slow
def test_dead_letters_are_replayed_with_the_log_in_of_the_job(
    job: list[str],
    secured: Secured,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broker = secured.broker
    broker.create_topics(["mended", "mended-dead"])
    read, write = AclOperation.READ, AclOperation.WRITE
    permit(broker, "unskew", "mended-dead", AclOperation.DESCRIBE, read)
    permit(broker, "unskew", "mended", AclOperation.DESCRIBE, write)
    coordinates = {"topic": "mended", "partition": "0", "offset": "7", "reason": "not_utf8"}
    headers: Any = [(name, value.encode()) for name, value in coordinates.items()]
    headers.append(("timestamp", b"2026-01-01 00:00:00"))
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    producer.produce("mended-dead", b"value", headers=headers)
    assert producer.flush(30) == 0
    changes = ("--set", "source.subscribe=[mended]", "--set", "dead_letters.topic=mended-dead")

    assert main(["dead-letters", "replay", *job, *changes]) == 0
    (record,) = topic_records(broker, "mended", 1)
    assert record.value() == b"value"
    monkeypatch.setenv("KAFKA_PASSWORD", "not-the-password")
    assert main(["dead-letters", "list", *job, *changes]) == 1
    output, errors = capsys.readouterr()
    assert output == "replayed: 1\n"
    assert "uthentication failed" in errors
    secret_free(output, errors)


@pytest.mark.e2e
@pytest.mark.slow
def test_a_topic_that_this_user_may_not_read_is_not_compared(
    secured: Secured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanisms": "SCRAM-SHA-512",
        "sasl.username": "unskew",
        "sasl.password": PASSWORD,
        "ssl.ca.location": str(secured.ca),
    }
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in options.items()))
    topic = ["--topic", "forbidden", "--bootstrap-servers", secured.broker.secure_address]

    asked = ["--partitions", "4", "--cost", "10us", "--client-config", str(config)]
    code = main(["compare", *topic, *asked])

    output, errors = capsys.readouterr()
    assert (code, output) == (1, "")
    (line,) = errors.splitlines()
    assert line.startswith("compare: forbidden on ")
    assert "does not permit this user to read it" in line
    secret_free(line)


def test_explain_shows_the_reference_and_lint_refuses_a_secret_in_the_file(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (block,) = blocks(root / "docs" / "operating.md", "yaml", HEADING)
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:9092")
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    (tmp_path / "job.yaml").write_text(block.text)
    (tmp_path / "password").write_text(PASSWORD)
    file = block.text.replace("${env:KAFKA_PASSWORD}", f"${{file:{tmp_path}/password}}")
    (tmp_path / "by_file.yaml").write_text(file)
    for name, reference in (("job", "${env:KAFKA_PASSWORD}"), ("by_file", f"${{file:{tmp_path}")):
        shown = write_yaml(explain(str(tmp_path / f"{name}.yaml")))
        assert reference in shown
        secret_free(shown)
    clear = block.text.replace("${env:KAFKA_PASSWORD}", "in-the-clear")
    (tmp_path / "clear.yaml").write_text(clear)
    (line,) = lint([str(tmp_path / "clear.yaml")])
    assert (
        'source.options["kafka.sasl.jaas.config"]: a secret may not be written into the file'
        in line
    )
    assert "in-the-clear" not in line


def test_the_metrics_section_of_the_page_is_clean(root: Path, tmp_path: Path) -> None:
    (block,) = blocks(root / "docs" / "operating.md", "yaml", "The metrics page")
    secret = tmp_path / "password"
    secret.write_text("s3cret")
    section = yaml.safe_load(block.text.replace("/run/secrets/metrics", str(secret)))
    overrides = {f"metrics.{name}": value for name, value in section["metrics"].items()}
    job = load_job("word_count", overrides)
    assert job.metrics.basic_auth is not None
    assert job.metrics.tls is not None
