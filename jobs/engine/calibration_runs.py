"""Measures the cost model's constants: real jobs without work, on a local Kafka and Spark.

Each run is there for a constant or two: next to no records for what a batch costs at all, few keys
for reading, routing and moving, as many keys as records for what is kept of a key, some keys in
every partition for merging, large partials for their bytes. The first batch of a run, where all is
cold, does not count.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.grouping.base import Int64s
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.fit_constants import Measured, fit_constants
from unskew.grouping.simulation.loads import HASHED, LOCAL, KeyBatch, Work, spread
from unskew.grouping.simulation.streams.key_files import hash_lines
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import session
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower

PARTITIONS = 8
_RECORDS = 200_000
_FEW_KEYS, _KEYS = 1_000, 10_000
_BATCHES = 4
_FLUSH_SECONDS = 60.0
_KAFKA_PARTITIONS = 4


@dataclass(frozen=True)
class Run:
    """A job to measure."""

    way: str
    records: int
    keys: int
    partial_bytes: int = 0

    @property
    def topic(self) -> str:
        """The topic with the run's records."""
        return f"calibrate-{self.records}-{self.keys}"

    @property
    def work(self) -> Work:
        """The operator's work: none."""
        return Work(0.0, partial_bytes=self.partial_bytes)


RUNS = (
    Run("level", _RECORDS, _FEW_KEYS),
    Run(LOCAL, 100, 10),
    Run("level", 100, 10),
    Run(HASHED, 100, 10),
    Run(LOCAL, _RECORDS, _FEW_KEYS),
    Run(HASHED, _RECORDS, _FEW_KEYS),
    Run(LOCAL, _RECORDS, _RECORDS),
    Run("level", _RECORDS, _RECORDS),
    Run(LOCAL, _RECORDS, _KEYS),
    Run(LOCAL, _RECORDS, _FEW_KEYS, 4096),
    Run(HASHED, _RECORDS, _KEYS, 4096),
)


def measure_constants(report: Callable[[str], None]) -> Constants:
    """Run all jobs and fit the constants; takes most of a minute."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="unskew-calibrate-")))
        broker = stack.enter_context(Broker())
        report("Kafka is up")
        for run in {run.topic: run for run in RUNS}.values():
            _fill(broker, run)
        settings = {
            # As many slots as partitions, so that none waits.
            "spark.master": f"local[{PARTITIONS}]",
            "spark.sql.shuffle.partitions": str(PARTITIONS),
        }
        spark = stack.enter_context(session("calibrate", settings))
        report("Spark is up")
        # Warm up: the JVM's compilation and the workers' start are no cost of each batch.
        list(_measure(spark, broker, folder / "warm-up", RUNS[0]))
        batches: list[Measured] = []
        for number, run in enumerate(RUNS):
            batches += _measure(spark, broker, folder / str(number), run)
            report(f"{number + 1} of {len(RUNS)} runs")
        return fit_constants(batches)


def _draw_keys(run: Run) -> Int64s:
    """The numbers of the keys of all batches."""
    draws: Int64s = np.random.default_rng(1).integers(0, run.keys, run.records * _BATCHES)
    return draws


def _fill(broker: Broker, run: Run) -> None:
    broker.create_topics([run.topic], partitions=_KAFKA_PARTITIONS)
    producer = Producer(
        {
            "bootstrap.servers": broker.address,
            "linger.ms": 20,
            "queue.buffering.max.messages": run.records * _BATCHES + 1,
            "log_level": 0,
        }
    )
    for number, key in enumerate(_draw_keys(run).tolist()):
        producer.produce(run.topic, b"w%d" % key, partition=number % _KAFKA_PARTITIONS)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(_FLUSH_SECONDS):
        raise ExternalError("calibrate: the local broker did not take all records")


def _measure(spark: SparkSession, broker: Broker, folder: Path, run: Run) -> Iterator[Measured]:
    durations = _Durations()
    Service(_make_job(broker, folder, run), spark, (durations,)).run()
    hashes = hash_lines("".join(f"w{number}\n" for number in range(run.keys)).encode())
    batches = np.split(hashes[_draw_keys(run)], _BATCHES)
    loads = spread(
        run.way, [KeyBatch.from_hashes(b) for b in batches], PARTITIONS, PARTITIONS, run.work
    )
    for each, seconds in list(zip(loads, durations.seconds, strict=False))[1:]:
        yield Measured(run.way, each, run.work, PARTITIONS, seconds)


def _make_job(broker: Broker, folder: Path, run: Run) -> Job:
    name = f"{run.topic}-{folder.name}"
    broker.create_topics([f"{name}-out", f"{name}-dead"])
    operator: dict[str, Any] = {"type": "paced", "key": "value", "cost": "0 s"}
    return load_job(
        "word_count",
        {
            "source.bootstrap_servers": broker.address,
            "source.subscribe": [run.topic],
            # Spark rounds a batch's share of each Kafka partition down.
            "source.records_per_batch": run.records + _KAFKA_PARTITIONS,
            "operator": {**operator, "partial_bytes": run.partial_bytes},
            "grouping": {"type": run.way},
            "partitions": PARTITIONS,
            "window": {"type": "none"},
            "lateness": None,
            "trigger": {"type": "available_now"},
            "sinks": [{"type": "kafka", "topic": f"{name}-out"}],
            "dead_letters": {"type": "kafka", "topic": f"{name}-dead"},
            "checkpoint": str(folder),
        },
    )


class _Durations(Follower):
    """Keeps how long each batch with rows took."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def on_batch_done(self, done: BatchDone) -> None:
        if done.has_rows:
            self.seconds.append(done.seconds)
