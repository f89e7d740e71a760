"""`unskew run --dry-run`: what the first records become, and nothing is written."""

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from tests.support.running.in_process import job_over
from tests.support.running.job_process import finished, job_words, make_topics
from tests.support.running.topics import topic_records
from unskew.jobs.__main__ import main
from unskew.jobs.engine.samples.dry_run import describe_rows, prepare_first_rows
from unskew.jobs.kafka.broker import Broker


@pytest.mark.spark
def test_each_row_says_its_record_key_and_inputs_or_why_it_is_rejected(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [
        b'{"at": "2026-01-01T00:00:00Z", "text": "to be"}',
        b"{",
        b'{"at": null, "text": "or"}',
        b'{"at": "2026-01-01T00:00:01Z", "text": "beyond the limit"}',
    ]
    (folder / "1.json").write_bytes(b"\n".join(lines))
    job = job_over(
        {"type": "files", "path": str(folder)},
        tmp_path,
        "dry",
        operator={"type": "word_count", "text": "text"},
        decode={"type": "json", "schema": "text STRING, at TIMESTAMP"},
        event_time="at",
    )
    rows = [json.loads(line) for line in describe_rows(prepare_first_rows(spark, job, 3))]
    assert all(row["topic"].endswith("1.json") and row["offset"] == 0 for row in rows)
    assert [(row["key"], row["event_time"][:10]) for row in rows if "rejected" not in row] == [
        ("to", "2026-01-01"),
        ("be", "2026-01-01"),
    ]
    rejected = [(row["rejected"], row["value"]) for row in rows if "rejected" in row]
    assert rejected == [
        ("not_decoded", "{"),
        ("no_event_time", '{"at": null, "text": "or"}'),
    ]
    assert not Path(job.checkpoint).exists()


@pytest.mark.slow
@pytest.mark.e2e
def test_the_command_prints_what_the_first_records_of_a_topic_become(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, "dry")
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for value in (b"to be", b"\xff", b"not to be"):
        producer.produce("dry", value, partition=0)
    assert producer.flush(30) == 0
    words = job_words(broker.address, tmp_path, "dry")
    code, out, errors = finished([*words, "--dry-run", "--rows", "2"])
    assert (code, errors) == (0, "")
    rows = [json.loads(line) for line in out.splitlines()]
    assert [(row["offset"], row.get("key"), row.get("rejected")) for row in rows] == [
        (0, "to", None),
        (0, "be", None),
        (1, None, "not_utf8"),
    ]
    assert not (tmp_path / "dry").exists()
    assert topic_records(broker, "dry-counts") == topic_records(broker, "dry-dead") == []


def test_rows_belong_to_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "word_count", "--rows", "3"]) == 2
    assert capsys.readouterr().err == "run: --rows: belongs to --dry-run\n"
