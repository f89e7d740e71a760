"""A world on disk, in Kafka and in PostgreSQL: its input, its job file, and what the job wrote."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import yaml
from confluent_kafka import Producer
from psycopg import sql

from tests.storm.harness.points import Checkpoint
from tests.storm.harness.services import Services
from tests.storm.oracle.expected import Outcome, expected, millis
from tests.storm.oracle.outcome import postgres_columns
from tests.storm.oracle.records import SCHEMA, TOPIC, Record, batches_of
from tests.storm.oracle.world import AUTO, WINDOWS, Routing, World

OPERATORS: dict[str, dict[str, Any]] = {
    "word_count": {"type": "word_count", "text": "text"},
    "vwap": {"type": "vwap"},
    "hashtags": {"type": "hashtags", "hashtags": "tags"},
    "aggregate": {
        "type": "aggregate",
        "key": {"key": "symbol"},
        "columns": {
            "trades": "count(*)",
            "volume": "sum(volume)",
            "lowest": "min(price)",
            "first_user": "first(user)",
            "users": {"distinct": "user"},
        },
    },
    "rows": {
        "type": "rows",
        "columns": {
            "symbol": "symbol",
            "price": "price",
            "volume": "volume",
            "at": "at",
            "kafka_partition": "partition",
            "kafka_offset": "offset",
        },
        "where": "volume % 7 <> 0",
    },
}
_PARTITION_BY = ["left(symbol, 2) AS kind", "date(at) AS day"]
# Choosing by a sample, the first start of `auto` may take plain Spark, which is final.
_GROUPING_OPTIONS: dict[str, dict[str, Any]] = {AUTO: {"sample_records": 0, "gain_min": 0.01}}
_TIMESTAMP = pa.timestamp("us", "UTC")


@dataclass
class Stage:
    """The folder, topics and tables of one case."""

    world: World
    folder: Path
    services: Services
    name: str = "storm"
    input: Path | None = None
    """Where the records are, if not in the stage's own folder."""
    input_topic: str = ""
    """The topic with the records, if not the stage's own."""
    checkpoint: Path = field(init=False)
    batches: list[list[Record]] = field(init=False)

    def __post_init__(self) -> None:
        self.checkpoint = self.folder / "checkpoint"
        self.input = self.input or self.folder / "in"
        self.input_topic = self.input_topic or self.topic("in")
        self.batches = batches_of(self.world)

    @property
    def want(self) -> Outcome:
        """What the job must give, of batches as it has made them."""
        made = list(self._made_batches())
        batches = [records for _, records in made]
        return expected(self.world, batches, self._find_skipped(made))

    def _made_batches(self) -> Iterator[tuple[int, list[Record]]]:
        """Number and records of a batch for each file; but a job that died after Spark had listed a
        file, and before it logged the batch, reads that file and the next as a single batch. So
        what is late, which is judged by batch, follows from Spark's offset log.
        """
        log = self.checkpoint / "offsets"
        read = number = 0
        if self.world.source == "files" and log.exists():
            for path in sorted(
                (path for path in log.iterdir() if path.name.isdecimal()), key=_number
            ):
                number = _number(path) + 1
                last = json.loads(path.read_text().splitlines()[-1])["logOffset"] + 1
                if read < last:
                    yield number - 1, [each for batch in self.batches[read:last] for each in batch]
                    read = last
        yield from enumerate(self.batches[read:], number)

    def _find_skipped(self, made: list[tuple[int, list[Record]]]) -> set[int]:
        """Which of the batches a table had when they were to run again: by Spark's log of commits
        their records moved no watermark.
        """
        skipped: set[int] = set()
        newest = 0
        for position, (number, records) in enumerate(made):
            own = max((millis(each.at) for each in records if not each.reason), default=0)
            moved = max(newest, own) - self.world.lateness_seconds * 1000
            if self.world.sink == "table" and self._watermark_after(number) < moved:
                skipped.add(position)
            else:
                newest = max(newest, own)
        return skipped

    def _watermark_after(self, number: int) -> float:
        """A batch's watermark for the next, in milliseconds; infinite for one that is not done."""
        commit = self.checkpoint / "commits" / str(number)
        if not (self.world.windowed and commit.exists()):
            return math.inf
        return float(json.loads(commit.read_text().splitlines()[1])["nextBatchWatermarkMs"])

    def topic(self, kind: str) -> str:
        """The topic for records, totals or dead letters."""
        return f"{self.name}-{kind}"

    def prepare(self) -> None:
        """Make topics and tables, and write all records but nothing of the job."""
        self.folder.mkdir(parents=True, exist_ok=True)
        if self.world.source == "kafka":
            broker = self.services.broker
            # The records' own times are long past, and topics forget what is a week old.
            broker.create_topics(
                [self.input_topic], partitions=self.world.kafka_partitions, retention_ms="-1"
            )
            self._produce()
        else:
            self._write_files()
        for kind, where in (("out", self.world.sink), ("dead", self.world.dead_letters)):
            if where == "kafka":
                self.services.broker.create_topics([self.topic(kind)])
        if self.world.sink == "postgres":
            columns = postgres_columns(self.world)
            with self.services.postgres.connect() as connection:
                statement = sql.SQL("CREATE TABLE {} " + f"({columns})")
                connection.execute(statement.format(sql.Identifier(self.table)))

    def watched(self, routing: Routing) -> Checkpoint:
        """The checkpoint, to be looked at while a job of this routing runs."""
        results = self.results if self.world.sink in {"files", "table"} else None
        return Checkpoint(self.checkpoint, self.world, routing, results)

    @property
    def results(self) -> Path:
        """Where files, or a table of them, have the results."""
        return self.folder / "results"

    @property
    def also(self) -> Path:
        """Where a second sink has them."""
        return self.folder / "also"

    @property
    def table(self) -> str:
        """The table for totals."""
        return self.name.replace("-", "_")

    def copy(self, suffix: str) -> "Stage":
        """The same world in a folder and a table of its own, but with the same input."""
        copy = Stage(
            self.world,
            self.folder / suffix,
            self.services,
            f"{self.name}-{suffix}",
            self.input,
            self.input_topic,
        )
        copy.folder.mkdir()
        return copy

    def job_file(self, routing: Routing, **changes: Any) -> Path:
        """Write the job as it is for one start."""
        path = self.folder / "job.yaml"
        path.write_text(yaml.safe_dump({**self._job(routing), **changes}, sort_keys=False))
        return path

    def _job(self, routing: Routing) -> dict[str, Any]:
        options = _GROUPING_OPTIONS.get(routing.grouping, {})
        return {
            "name": "storm",
            "source": self._source(routing),
            "decode": {"type": "json", "schema": SCHEMA},
            "operator": OPERATORS[self.world.operator],
            "grouping": {"type": routing.grouping, **options},
            "partitions": routing.partitions,
            "seed": routing.seed,
            **(self._merging() if self.world.merges else {}),
            "sinks": [self._sink(), *self._second_sink()],
            "dead_letters": self._dead_letters(),
            "trigger": {"type": "available_now"},
            "checkpoint": str(self.checkpoint),
            "spark": SPARK,
        }

    def _merging(self) -> dict[str, Any]:
        """What only jobs with totals have."""
        world = self.world
        lateness = f"{world.lateness_seconds} s" if world.windowed else None
        return {
            "event_time": "at",
            "window": WINDOWS[world.window],
            **({"lateness": lateness} if lateness else {}),
            "merge": {"partitions": world.merge_partitions, "output": world.output},
        }

    def _source(self, routing: Routing) -> dict[str, Any]:
        if self.world.source == "files":
            path = str(self.input)
            return {"type": "files", "path": path, "format": "parquet", "files_per_batch": 1}
        return {
            "type": "kafka",
            "bootstrap_servers": self.services.broker.address,
            "subscribe": [self.input_topic],
            "records_per_batch": self.world.rows,
            "records_per_task": routing.records_per_task,
        }

    def _sink(self) -> dict[str, Any]:
        if self.world.sink == "files":
            return {"type": "files", "path": str(self.results)}
        if self.world.sink == "table":
            partition_by = {} if self.world.merges else {"partition_by": _PARTITION_BY}
            how = self.world.table_format
            return {"type": "table", "format": how, "path": str(self.results), **partition_by}
        if self.world.sink == "kafka":
            return self._to_topic("out")
        url = self.services.postgres.url
        return {"type": "postgres", "url": url, "table": self.table, "user": "me"}

    def _second_sink(self) -> list[dict[str, Any]]:
        return [{"type": "files", "path": str(self.also)}] if self.world.second_sink else []

    def _dead_letters(self) -> dict[str, Any]:
        if self.world.dead_letters == "files":
            return {"type": "files", "path": str(self.folder / "dead"), "format": "parquet"}
        return self._to_topic("dead")

    def _to_topic(self, kind: str) -> dict[str, Any]:
        servers = self.services.broker.address
        return {"type": "kafka", "topic": self.topic(kind), "bootstrap_servers": servers}

    def _write_files(self) -> None:
        assert self.input is not None
        self.input.mkdir()
        for number, batch in enumerate(self.batches):
            path = self.input / f"{number:04d}.parquet"
            pq.write_table(_table(batch), path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))

    def _produce(self) -> None:
        # Idempotent: where a send is tried again, others could come before it, or it twice.
        servers = {"bootstrap.servers": self.services.broker.address, "log_level": 0}
        producer = Producer({**servers, "enable.idempotence": True})
        for record in (record for batch in self.batches for record in batch):
            producer.produce(
                self.input_topic,
                record.value,
                partition=record.partition,
                timestamp=millis(record.arrived),
            )
            producer.poll(0)
        assert producer.flush(60) == 0


SPARK = {
    "spark.master": "local[2,4]",
    "spark.driver.memory": "768m",
    # Snapshots after few batches, so that a case of few batches has some.
    "spark.sql.streaming.stateStore.minDeltasForSnapshot": "2",
    "spark.sql.streaming.stateStore.maintenanceInterval": "1s",
}


def _number(path: Path) -> int:
    return int(path.name)


def _table(batch: list[Record]) -> pa.Table:
    columns = {
        "key": pa.nulls(len(batch), pa.binary()),
        "value": pa.array([record.value for record in batch], pa.binary()),
        "topic": pa.array([TOPIC] * len(batch), pa.string()),
        "partition": pa.array([record.partition for record in batch], pa.int32()),
        "offset": pa.array([record.offset for record in batch], pa.int64()),
        "timestamp": pa.array([record.arrived for record in batch], _TIMESTAMP),
    }
    return pa.table(columns)
