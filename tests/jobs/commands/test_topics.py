"""`unskew topics`: what jobs name is on the broker afterwards, and nothing else changed."""

import io
import subprocess
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker

SHIPPED = ("word_count", "vwap", "hashtags")


@pytest.fixture(scope="module")
def empty_broker() -> Iterator[Broker]:
    """A broker that has no topics but those of this file."""
    with Broker() as running:
        yield running


def topics(*words: str) -> "subprocess.CompletedProcess[str]":
    """The command, in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        try:
            code = main(["topics", *words])
        except SystemExit as stopped:  # by the parser of the command line
            code = int(stopped.code or 0)
    return subprocess.CompletedProcess(words, code, out.getvalue(), errors.getvalue())


def cleanup_policy(client: AdminClient, topic: str) -> str:
    (answer,) = client.describe_configs([ConfigResource(ResourceType.TOPIC, topic)]).values()
    return str(answer.result(20)["cleanup.policy"].value)


@pytest.mark.e2e
def test_what_the_broker_refuses_is_one_line(
    empty_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", empty_broker.address)
    done = topics("word_count", "--replication", "3")
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert done.stderr.startswith("topics: lines: cannot be made: ")


@pytest.mark.e2e
def test_makes_what_the_jobs_name_and_leaves_what_is_there(
    empty_broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", empty_broker.address)
    empty_broker.create_topics(["lines"], partitions=2)
    done = topics(*SHIPPED, "--partitions", "3")
    # The others are made all the same.
    assert done.returncode == 1
    assert done.stderr == (
        "topics: lines: has 2 partitions, --partitions asks for 3;"
        " add some with Kafka's own kafka-topics.sh, or ask for fewer\n"
    )
    assert done.stdout.splitlines()[0] == "lines: is there, partitions: 2"
    again = topics(*SHIPPED, "--partitions", "2")
    assert (again.returncode, again.stderr) == (0, "")
    assert again.stdout.count(": is there, partitions: ") == 8
    client = AdminClient({"bootstrap.servers": empty_broker.address, "log_level": 0})
    known = client.list_topics(timeout=20).topics
    assert {name: len(known[name].partitions) for name in known if name[0] != "_"} == {
        "lines": 2,
        "word-counts": 3,
        "word-count-dead-letters": 3,
        "trades": 3,
        "vwap": 3,
        "vwap-dead-letters": 3,
        "posts": 3,
        "hashtags": 3,
    }
    assert cleanup_policy(client, "word-counts") == "compact,delete"
    assert cleanup_policy(client, "word-count-dead-letters") == "delete"
    assert cleanup_policy(client, "posts") == "delete"


@pytest.mark.slow
def test_a_broker_that_does_not_answer_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", "127.0.0.1:1")
    done = topics("word_count")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("topics: 127.0.0.1:1: no broker answers within ")
    assert len(done.stderr.splitlines()) == 1


def test_wrong_jobs_and_options_are_told_before_anything_is_asked() -> None:
    done = topics("no_such_job")
    assert (done.returncode, done.stdout) == (2, "")
    done = topics("word_count", "--partitions", "0")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("a whole number from 1 to 10000 (got 0)")


@pytest.mark.parametrize(
    "options",
    [
        "kafka.security.protocol: SSL",
        "kafka.security.protocol: SASL_SSL, kafka.sasl.mechanism: PLAIN",
    ],
)
def test_brokers_with_tls_are_refused_before_they_are_asked(options: str, tmp_path: Path) -> None:
    job = Path("config/jobs/word_count.yaml").read_text()
    start = "  start: earliest\n"
    assert start in job
    (tmp_path / "job.yaml").write_text(job.replace(start, f"{start}  options: {{{options}}}\n"))
    done = topics(str(tmp_path / "job.yaml"))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(
        "topics: word_count: kafka.security.protocol: unskew topics cannot use TLS or SASL"
    )


def test_a_pattern_names_no_topic_that_could_be_made(tmp_path: Path) -> None:
    job = Path("config/jobs/word_count.yaml").read_text()
    for old, new in (
        ("subscribe: [lines]", "pattern: lines-.*"),
        ("- type: kafka\n    topic: word-counts", "- type: console"),
    ):
        assert old in job
        job = job.replace(old, new)
    head, section, _ = job.partition("\ndead_letters:")
    assert section
    rest = (
        f"\ndead_letters: {{type: files, path: {tmp_path / 'bad'}}}\ncheckpoint: {tmp_path}/own\n"
    )
    (tmp_path / "job.yaml").write_text(head + rest)
    done = topics(str(tmp_path / "job.yaml"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "lines-.*: source.pattern names no topics; create its topics by hand\n"


def test_a_job_without_topics_is_named(tmp_path: Path) -> None:
    (tmp_path / "job.yaml").write_text(
        "name: lines_of_files\nsource: {type: files, path: in}\ndecode: {type: text}\n"
        "operator: {type: word_count}\ngrouping: local\nsinks: [{type: console}]\n"
        "dead_letters: {type: files, path: rejected}\ncheckpoint: checkpoint\n"
    )
    done = topics(str(tmp_path / "job.yaml"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "lines_of_files: neither reads nor writes a topic\n"
