"""`unskew dead-letters`: each record once in the list, and once in the topic that it came from."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.support.running.topics import topic_records
from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker

TIME = "2026-01-01 00:00:00.25"
MILLIS = 1_767_225_600_250


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, list[str], list[str]]:
    code = main(["dead-letters", *words])
    out, errors = capsys.readouterr()
    return code, out.splitlines(), errors.splitlines()


def in_files(folder: Path) -> list[str]:
    """A job whose dead letters are files, and what names it."""
    row = {"reason": "not_utf8", "key": None, "value": base64.b64encode(b"\xff x").decode()}
    where = {"topic": "lines", "partition": 0, "offset": 3, "timestamp": "2026-01-01T00:00:00.25Z"}
    total = {"reason": "total_not_taken", "value": base64.b64encode(b"{}").decode()}
    for batch in (0, 10, 9):
        path = folder / "dead" / f"batch_id={batch}" / "part-0.json"
        path.parent.mkdir(parents=True)
        lines = [row | where | {"offset": batch}, row | where | {"offset": 1}, total]
        path.write_text("\n".join(map(json.dumps, lines)))
    settings = {
        "dead_letters": f"{{type: files, path: {folder}/dead}}",
        "checkpoint": f"{folder}/checkpoint",
    }
    return [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]


def test_files_are_listed_each_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["word_count", *in_files(tmp_path)]
    code, lines, _ = run(capsys, "list", *words, "--reason", "not_utf8")
    assert code == 0
    assert lines == [f"not_utf8  lines/0/{offset}  \\xff x" for offset in (0, 1, 9, 10)]
    code, lines, _ = run(capsys, "list", *words, "--json", "--limit", "1")
    assert json.loads(lines[0]) == {
        "reason": "not_utf8",
        "topic": "lines",
        "partition": 0,
        "offset": 0,
        "timestamp": "2026-01-01T00:00:00.250000+00:00",
        "key": None,
        "value_base64": "/yB4",
        "replayed": False,
    }


def test_every_wrong_line_of_a_repaired_file_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "repaired"
    file.write_text('{"reason": "x"}\n[]\n{\n')
    words = ["word_count", *in_files(tmp_path), "--from", str(file)]
    code, _, errors = run(capsys, "replay", *words)
    assert code == 2
    assert [line.split(": ")[0] for line in errors] == [f"{file}:{line}" for line in (1, 2, 3)]
    code, _, (line,) = run(capsys, "list", *words)
    assert (code, line) == (2, "dead-letters: --from: belongs to replay")


def test_a_source_that_is_no_topic_takes_no_records(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = ["--set", f"source={{type: files, path: {tmp_path}/in}}"]
    schema = ["--set", "decode={type: json, schema: value STRING}"]
    sinks = ["--set", "sinks=[{type: console}]"]
    words = ["word_count", *in_files(tmp_path), *source, *schema, *sinks]
    code, _, errors = run(capsys, "replay", *words)
    assert code == 2
    assert "only Kafka takes records again" in errors[0]


def test_a_broker_that_is_away_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("unskew.jobs.sinks.stored_dead_letters.ANSWER_SECONDS", 1.0)
    settings = ["--set", "source.bootstrap_servers=127.0.0.1:1"]
    words = ["word_count", "--set", f"checkpoint={tmp_path}", *settings]
    code, _, (line,) = run(capsys, "list", *words)
    assert code == 1
    assert line.startswith("dead_letters.topic: word-count-dead-letters on 127.0.0.1:1: ")


def leave_dead_letters(broker: Broker) -> None:
    """Three of two records, of which a crash delivered one twice; and one of a total."""
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for offset, value, partition in ((5, b"first", 0), (5, b"first", 1), (6, b"second", 1)):
        headers: list[Any] = [
            ("reason", b"not_decoded"),
            ("topic", b"mended"),
            ("partition", b"2"),
            ("offset", str(offset).encode()),
            ("timestamp", TIME.encode()),
        ]
        producer.produce("mended-dead", value, b"k", partition, headers=headers)
        assert producer.flush(30) == 0
    producer.produce("mended-dead", b"{}", b"a total", 0, headers=[("reason", b"total_not_taken")])
    assert producer.flush(30) == 0


@pytest.mark.e2e
@pytest.mark.slow
def test_each_is_replayed_once_with_its_key_time_and_partition(
    broker: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.create_topics(["mended"], partitions=3)
    broker.create_topics(["mended-dead"], partitions=2)
    leave_dead_letters(broker)
    settings = {
        "source.bootstrap_servers": broker.address,
        "source.subscribe": "[mended]",
        "dead_letters.topic": "mended-dead",
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    words = ["word_count"]
    words += [word for path, value in settings.items() for word in ("--set", f"{path}={value}")]

    _, lines, _ = run(capsys, "list", *words, "--json", "--reason", "not_decoded")
    repaired = json.loads(lines[1]) | {"value": "second, repaired"}
    (tmp_path / "repaired").write_text(json.dumps(repaired) + "\n")

    code, lines, _ = run(capsys, "replay", *words, "--from", str(tmp_path / "repaired"))
    assert (code, lines) == (0, ["replayed: 1"])
    code, lines, _ = run(capsys, "replay", *words)
    assert sorted(lines) == [
        "no record of the source: 1",
        "replayed already, or a duplicate: 2",
        "replayed: 1",
    ]
    code, lines, _ = run(capsys, "replay", *words, "--reason", "not_decoded")
    assert (code, lines) == (0, ["replayed already, or a duplicate: 3"])

    records = topic_records(broker, "mended", 3)
    assert [
        (each.partition(), each.key(), each.value(), each.timestamp()[1]) for each in records
    ] == [(2, b"k", b"second, repaired", MILLIS), (2, b"k", b"first", MILLIS)]
    _, lines, _ = run(capsys, "list", *words, "--reason", "not_decoded")
    assert [line.endswith("(replayed)") for line in lines] == [True, True]
