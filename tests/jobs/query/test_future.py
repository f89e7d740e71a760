"""Event times in the future: rejected by the batch's own time, by a rerun as by the first run."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from tests.support.dead_letters import dead_letters_in
from tests.support.oracles import START, WINDOWS
from tests.support.running.in_process import Ran, job_over, write_lines
from unskew.config.models.source import KafkaSource
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query import source
from unskew.jobs.query.decode import decode
from unskew.jobs.query.prepare import REJECTED, prepare

pytestmark = pytest.mark.spark

FUTURE = "event_time_in_the_future"
WORD_COUNT = {"type": "word_count", "text": "text"}


def line(text: str, at: datetime) -> dict[str, Any]:
    return {"text": text, "at": at.isoformat()}


def run(spark: SparkSession, folder: Path, grouping: str, **changes: Any) -> Ran:
    return Ran(
        spark,
        folder,
        grouping,
        operator=WORD_COUNT,
        grouping={"type": grouping},
        window=WINDOWS["tumbling"],
        **{"lateness": "10 s", **changes},
    )


def dead_letters(folder: Path) -> list[tuple[str, str]]:
    """The reason and the text of each, in order."""
    return sorted((row["reason"], row["value"]) for row in dead_letters_in(folder / "bad"))


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_one_record_of_the_year_9000_makes_no_other_late(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    now = datetime.now(UTC)
    write_lines(
        tmp_path / "in",
        "0.json",
        [line("early", START), line("poison", START + timedelta(days=365 * 6974))],
    )
    write_lines(tmp_path / "in", "1.json", [line("early", START), line("soon", now)])
    ran = run(spark, tmp_path, grouping, lateness="3000 days")

    assert {key: total["count"] for (_, _, key), total in ran.last.items()} == {
        "early": 2,
        "soon": 1,
    }
    assert [reason for reason, _ in dead_letters(tmp_path)] == [FUTURE]
    assert sum(done.late_partials for done in ran.batches) == 0
    if grouping != "none":
        assert ran.rejected == {FUTURE: 1}


def forget_commit(checkpoint: Path, batch: int, began: datetime) -> None:
    """As if the driver had died in the batch, which began at that time."""
    for file in (checkpoint / "commits").iterdir():
        if file.name.strip(".").split(".")[0] == str(batch):
            file.unlink()
    log = checkpoint / "offsets" / str(batch)
    version, metadata, *offsets = log.read_text().splitlines()
    metadata = json.dumps(
        {**json.loads(metadata), "batchTimestampMs": int(began.timestamp() * 1000)}
    )
    log.write_text("\n".join([version, metadata, *offsets]))
    (checkpoint / "offsets" / f".{batch}.crc").unlink()


@pytest.mark.parametrize("grouping", ["level", pytest.param("none", marks=pytest.mark.slow)])
def test_a_rerun_judges_by_the_time_of_the_first_run(
    spark: SparkSession, tmp_path: Path, grouping: str
) -> None:
    rows = [line("near", START + timedelta(minutes=59)), line("far", START + timedelta(minutes=61))]
    write_lines(tmp_path / "in", "0.json", rows)
    first = run(spark, tmp_path, grouping)
    assert sorted(key for _, _, key in first.last) == ["far", "near"]

    checkpoint = Path(first.job.checkpoint)
    for batch in sorted(int(file.name) for file in (checkpoint / "commits").glob("[0-9]*"))[1:]:
        (checkpoint / "offsets" / str(batch)).unlink()
        (checkpoint / "commits" / str(batch)).unlink()
    forget_commit(checkpoint, 0, START)
    spark.catalog.dropTempView("totals")
    again = run(spark, tmp_path, grouping)
    assert sorted(key for _, _, key in again.last) == ["near"]
    assert [(reason, json.loads(value)["text"]) for reason, value in dead_letters(tmp_path)] == [
        (FUTURE, "far")
    ]


def judged(
    spark: SparkSession,
    folder: Path,
    records: list[tuple[datetime, datetime, bool]],
    **changes: Any,
) -> list[str | None]:
    """Why each is rejected, None if it is not: when it arrived, its event time, and whether the
    broker stamps.
    """
    raw: DataFrame = spark.createDataFrame(
        [
            (None, json.dumps(line("word", at)).encode(), "t", 0, number, arrived, stamped)
            for number, (arrived, at, stamped) in enumerate(records)
        ],
        "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT,"
        f" timestamp TIMESTAMP, {source.STAMPED_ON_ARRIVAL} BOOLEAN",
    )
    files = {"type": "files", "path": str(folder / "in")}
    job = job_over(files, folder, "judged", operator=WORD_COUNT, **changes)
    decoded = decode(raw, job.decode, source.COLUMNS)
    rows, _ = prepare(decoded, make_operator(job.operator), job)
    return [row["reason"] for row in rows.select(f"{REJECTED}.reason").collect()]


def test_the_brokers_own_time_of_arrival_is_a_limit_too_and_none_may_be_wanted(
    spark: SparkSession, tmp_path: Path
) -> None:
    hour, second = timedelta(hours=1), timedelta(seconds=1)
    next_year = datetime.now(UTC) + timedelta(days=400)
    records = [
        (START, START + hour + second, True),
        (START, START + hour + second, False),
        (START, START + hour, True),
        (START, next_year, False),
    ]
    assert judged(spark, tmp_path, records) == [FUTURE, None, None, FUTURE]
    assert judged(spark, tmp_path, records, max_future="off") == [None] * 4


@pytest.mark.e2e
def test_kafka_says_whose_time_a_topic_has(
    spark: SparkSession, broker: Broker, tmp_path: Path
) -> None:
    broker.create_topics(["stamped"], message_timestamp_type="LogAppendTime")
    broker.create_topics(["unstamped"])
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    for topic in ("stamped", "unstamped"):
        producer.produce(topic, b"x")
    assert producer.flush(30) == 0
    kafka = KafkaSource.model_validate(
        {
            "type": "kafka",
            "bootstrap_servers": broker.address,
            "subscribe": ["stamped", "unstamped"],
            "options": {},
        }
    )
    query = (
        source.read(spark, kafka)
        .writeStream.format("memory")
        .queryName("stamps")
        .option("checkpointLocation", str(tmp_path))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    rows = spark.table("stamps").select("topic", source.STAMPED_ON_ARRIVAL).collect()
    assert dict(map(tuple, rows)) == {"stamped": True, "unstamped": False}
