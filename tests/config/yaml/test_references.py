"""References in values: how they are typed, escaped and kept from sight."""

import json
import logging
from pathlib import Path

import pytest

from unskew.config.errors import UsageError
from unskew.config.explain import explain, write_yaml
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.config.types.secrets import Secret, holds_secret, redact, reveal

JOB = """
name: word_count
source:
  type: kafka
  bootstrap_servers: ${env:T_HOST}:${env:T_PORT}
  subscribe: ["${env:T_TOPIC}"]
  records_per_batch: ${env:T_RECORDS:-5000}
  split: ${env:T_SPLIT:-false}
  options:
    kafka.security.protocol: SASL_SSL
    kafka.sasl.mechanism: PLAIN
    kafka.sasl.jaas.config: PlainLoginModule required username="me" password="${env:T_PASSWORD}";
    kafka.ssl.keystore.password: ${file:FOLDER/keystore-password}
    kafka.client.id: ${env:T_CLIENT}
    kafka.retries: 1.10
decode: {type: text}
operator: {type: word_count, text: "concat(value, '$${x}')"}
grouping: {type: key}
sinks:
  - {type: postgres, url: "jdbc:postgresql:///u", table: t, user: me, password: "${env:T_PIN}"}
dead_letters: {type: files, path: "${env:T_FOLDER}/bad"}
metrics: {port: "${env:T_PORT_NAME}", basic_auth: {user: me, password: "${file:FOLDER/pin}"}}
checkpoint: checkpoints/${env:T_TOPIC}
"""
SECRETS = ["correct horse", "battery staple", "0123456", "999888777"]


@pytest.fixture
def job_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    values = {
        "T_HOST": "localhost",
        "T_PORT": "9092",
        "T_TOPIC": "2024",
        "T_PASSWORD": "correct horse",
        "T_PIN": "0123456",
        "T_CLIENT": "1e5",
        "T_FOLDER": "/data/${not a reference}",
        "T_PORT_NAME": "auto",
    }
    for name, value in values.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "keystore-password").write_text("battery staple\n")
    (tmp_path / "pin").write_text("999888777")
    file = tmp_path / "job.yaml"
    file.write_text(JOB.replace("FOLDER/", f"{tmp_path}/"))
    return file


def test_values_take_the_type_that_the_field_wants(job_file: Path) -> None:
    job = load_job(job_file)

    assert job.source.bootstrap_servers == "localhost:9092"
    assert job.source.subscribe == ["2024"]
    assert job.source.records_per_batch == 5000
    assert job.source.split is False
    assert job.metrics.port == "auto"
    assert job.checkpoint == "checkpoints/2024"


def test_options_keep_the_text_that_was_written(job_file: Path) -> None:
    options = reveal(load_job(job_file).source.options)

    assert options == {
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": 'PlainLoginModule required username="me"'
        ' password="correct horse";',
        "kafka.ssl.keystore.password": "battery staple",
        "kafka.client.id": "1e5",
        "kafka.retries": "1.10",
    }


def test_escaped_reference_is_plain_text(job_file: Path) -> None:
    assert load_job(job_file).operator.text == "concat(value, '${x}')"


def test_what_a_reference_brings_is_not_expanded_again(job_file: Path) -> None:
    assert load_job(job_file).dead_letters.path == "/data/${not a reference}/bad"


def test_secrets_are_there_and_hidden(job_file: Path) -> None:
    job = load_job(job_file)
    seen = [repr(job), str(job), job.model_dump_json(), repr(job.model_dump()), f"{job.sinks}"]
    seen += [write_yaml(explain(str(job_file))), json.dumps(explain(str(job_file)))]

    assert job.sinks[0].password.get_secret_value() == "0123456"
    assert job.metrics.basic_auth.password.get_secret_value() == "999888777"
    for text in seen:
        for secret in SECRETS:
            assert secret not in text
    assert '"password":"***"' in job.model_dump_json()


def test_explained_job_is_the_same_job(job_file: Path) -> None:
    explained = job_file.with_name("explained.yaml")

    explained.write_text(write_yaml(explain(str(job_file))))

    assert load_job(explained) == load_job(job_file)
    assert explain(str(explained)) == explain(str(job_file))


def test_explained_job_keeps_references_to_secrets(job_file: Path) -> None:
    job = explain(str(job_file))

    assert job["sinks"][0] | {"password": "${env:T_PIN}"} == job["sinks"][0]
    assert job["source"]["options"]["kafka.sasl.jaas.config"] == (
        'PlainLoginModule required username="me" password="${env:T_PASSWORD}";'
    )
    assert job["operator"]["text"] == "concat(value, '$${x}')"


def test_errors_hide_secrets(job_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = job_file.read_text().replace("T_TOPIC}", "T_PASSWORD}").replace("table: t,", "")
    job_file.write_text(broken + "partitions: ${env:T_PIN}\n")

    with pytest.raises(UsageError) as caught:
        load_job(job_file)

    assert len(caught.value.problems) >= 3
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    for secret in SECRETS:
        assert secret not in str(caught.value)


def test_a_secret_in_a_log_line_is_hidden(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        logging.getLogger("unskew").info("password %s %r", Secret("hunter2"), Secret("hunter2"))

    assert caplog.messages == ["password *** Secret('***')"]


@pytest.mark.parametrize(
    "name",
    [
        "password",
        "kafka.ssl.key.password",
        "kafka.ssl.keystore.key",
        "kafka.sasl.jaas.config",
        "spark.hadoop.fs.s3a.secret.key",
        "spark.hadoop.fs.s3a.access.key",
        "spark.hadoop.fs.s3a.session.token",
        "API_KEY",
        "DB_PASS",
        "client_secret",
        "aws-credentials",
        "spark.some.db.pwd",
        "DB_PWD",
        "spark.redis.auth",
        "spark.hadoop.fs.azure.sas.box.me.blob.core.windows.net",
        "spark.some.passcode",
    ],
)
def test_names_of_secrets(name: str) -> None:
    assert holds_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "kafka.ssl.keystore.location",
        "kafka.ssl.keystore.certificate.chain",
        "kafka.sasl.oauthbearer.token.endpoint.url",
        "spark.hadoop.fs.s3a.aws.credentials.provider",
        "key",
        "key_file",
        "subscribe",
        "compass",
        "spark.io.encryption.keySizeBits",
        "spark.authenticate.secretBitLength",
        "spark.kubernetes.driver.secrets.kafka",
        "spark.kubernetes.executor.secretKeyRef.KAFKA_PASSWORD",
        "spark.kubernetes.authenticate.driver.oauthTokenFile",
        "kafka.sasl.mechanism",
        "max_tokens",
        "tokenizer",
        "hot_key_names",
    ],
)
def test_names_of_no_secrets(name: str) -> None:
    assert not holds_secret(name)


def test_what_a_reference_brings_is_never_shown(
    job_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("T_CLIENT", "a harmless name")
    monkeypatch.setenv("T_RECORDS", "a harmless number")

    with pytest.raises(UsageError, match=r"a whole number \(got \*\*\*\)"):
        load_job(job_file)
    monkeypatch.delenv("T_RECORDS")
    shown = write_yaml(explain(str(job_file)))
    assert "harmless" not in shown
    assert "kafka.client.id: ${env:T_CLIENT}" in shown


def test_redaction_hides_the_longest_first_and_leaves_short_ones() -> None:
    assert redact("abcdefgh abcd ab", ["abcd", "abcdefgh", "ab"]) == "*** *** ab"


def test_topics_may_be_named_after_secrets(job_file: Path) -> None:
    text = job_file.read_text().replace('subscribe: ["${env:T_TOPIC}"]', "assign: {password: [0]}")
    job_file.write_text(text)

    assert load_job(job_file).source.assign == {"password": [0]}


def test_a_job_made_in_python_is_checked_too() -> None:
    values = json.loads(load_job("word_count").model_dump_json())

    with pytest.raises(ValueError, match=r"lateness contradicts window\.type none"):
        Job.model_validate_json(json.dumps(values | {"window": {"type": "none"}}))
