"""Measuring a streaming query: a real Kafka, a real Spark, each batch's time and CPU.

The CPU is that of this process, of its JVM and of the JVM's Python workers: everything that a
batch costs but the broker, which would be another machine's.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.grouping.base import Int64s
from unskew.jobs.engine.session import session
from unskew.jobs.kafka.broker import Broker

KEYS = 10_000
_SAMPLE_SECONDS = 1.0
_EVENTS_SECONDS = 60.0
_WHOLE = 0.8
# The connector rounds a batch's share of each Kafka partition down.
_ROUNDING = 16


@dataclass(frozen=True)
class Batch:
    """One finished batch."""

    number: int
    records: int
    seconds: float
    parts: Mapping[str, float]
    cpu_end: float
    """CPU seconds of all processes since the measuring began, when this batch had ended."""


def is_whole(records: int, most: int) -> bool:
    """Is a batch complete, beside one of `most` records?"""
    return records > _WHOLE * most


@dataclass
class Run:
    """One query from its start to its end; its first, cold batch is in no figure."""

    batches: list[Batch] = field(default_factory=list)
    skip: int = 1

    @property
    def whole(self) -> list[Batch]:
        """All batches but an incomplete last one."""
        most = max((batch.records for batch in self.batches), default=0)
        return [batch for batch in self.batches if is_whole(batch.records, most)]

    @property
    def warm(self) -> list[Batch]:
        """The batches that count."""
        return self.whole[self.skip :]

    @property
    def seconds(self) -> list[float]:
        """How long each batch that counts took."""
        return [batch.seconds for batch in self.warm]

    @property
    def records(self) -> int:
        """Records of the batches that count."""
        return sum(batch.records for batch in self.warm)

    @property
    def cpu_seconds(self) -> float:
        """CPU of the batches that count."""
        return self.whole[-1].cpu_end - self.whole[self.skip - 1].cpu_end

    @property
    def records_per_second(self) -> float:
        """Records a second over the batches that count."""
        return self.records / sum(self.seconds)

    def cpu_us_a_record(self) -> float:
        """Microseconds of CPU a record."""
        return self.cpu_seconds / self.records * 1e6

    def wall_us_a_record(self) -> float:
        """Microseconds of wall time a record."""
        return 1e6 / self.records_per_second


class Meter(StreamingQueryListener):
    """Sees every batch end."""

    def __init__(self, processes: "Processes") -> None:
        self._processes = processes
        self._lock = threading.Condition()
        self._run = Run()
        self._running = 0

    def wait_for_ends(self, seconds: float) -> None:
        """Return when the last event of every query has come."""
        with self._lock:
            if not self._lock.wait_for(lambda: self._running == 0, seconds):
                raise RuntimeError(f"{self._running} queries did not end within {seconds} s")

    def taken(self) -> Run:
        """The batches since the last call."""
        with self._lock:
            run, self._run = self._run, Run()
        return run

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Note a query."""
        with self._lock:
            self._running += 1

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Note its end, which comes after all of its batches."""
        with self._lock:
            self._running -= 1
            self._lock.notify_all()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Note a batch."""
        progress: Any = event.progress
        taken = {name: value / 1000 for name, value in progress.durationMs.items()}
        if "addBatch" not in taken:
            return
        batch = Batch(
            progress.batchId,
            progress.numInputRows,
            taken["triggerExecution"],
            taken,
            self._processes.cpu_seconds(),
        )
        with self._lock:
            self._run.batches.append(batch)


class Processes:
    """The CPU of this process and its descendants but some; the dead stay counted."""

    def __init__(self) -> None:
        # What runs already is none of it: the broker.
        self._without = {child.pid for child in psutil.Process().children()}
        self._seen: dict[tuple[int, float], float] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        # Workers that end are never waited for, so their time is known only while they live.
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def cpu_seconds(self) -> float:
        """User and system time of all of them until now."""
        with self._lock:
            for process in self._tree():
                try:
                    times = process.cpu_times()
                    self._seen[process.pid, process.create_time()] = times.user + times.system
                except psutil.NoSuchProcess:
                    continue
            return sum(self._seen.values())

    def close(self) -> None:
        """Stop looking."""
        self._stop.set()
        self._sampler.join()

    def _sample(self) -> None:
        while not self._stop.wait(_SAMPLE_SECONDS):
            self.cpu_seconds()

    def _tree(self) -> list[psutil.Process]:
        me = psutil.Process()
        processes = [me]
        for child in me.children():
            if child.pid not in self._without:
                processes.append(child)
                with suppress(psutil.NoSuchProcess):
                    processes += child.children(recursive=True)
        return processes


@dataclass
class Bench:
    """A broker, and a folder for checkpoints; sessions come and go."""

    broker: Broker
    folder: Path
    processes: Processes
    filled: set[str] = field(default_factory=set)
    """Names of the topics that have records."""
    _number: int = 0

    def checkpoint(self) -> str:
        """Make a new folder."""
        self._number += 1
        return str(self.folder / f"checkpoint-{self._number}")

    def fill(
        self,
        topic: str,
        words: Int64s,
        partitions: int = 4,
        keyed: bool = False,
        make_record: Callable[[int], bytes] = lambda word: f"w{word}".encode(),
    ) -> None:
        """Make a topic of one-word records; by their key's hash in its partitions if `keyed`."""
        self.broker.create_topics([topic], partitions=partitions)
        self.filled.add(topic)
        producer = Producer(
            {
                "bootstrap.servers": self.broker.address,
                "linger.ms": 20,
                "batch.size": 1_000_000,
                "queue.buffering.max.messages": 2_000_000,
                "partitioner": "murmur2_random",
                "log_level": 0,
            }
        )
        texts = [make_record(number) for number in range(int(words.max(initial=0)) + 1)]
        for count, word in enumerate(words.tolist()):
            text = texts[word]
            while True:
                try:
                    producer.produce(topic, text, text if keyed else None)
                    break
                except BufferError:
                    producer.poll(0.1)
            if count % 10_000 == 0:
                producer.poll(0)
        if producer.flush(120):
            raise RuntimeError(f"{topic}: the broker did not take all records")

    def last(self, topic: str, records: int) -> dict[str, dict[int, int]]:
        """Where to start to have this many records of a topic left."""
        consumer = Consumer({"bootstrap.servers": self.broker.address, "group.id": "bench"})
        try:
            partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
            ends = {
                number: consumer.get_watermark_offsets(TopicPartition(topic, number))[1]
                for number in partitions
            }
        finally:
            consumer.close()
        left = records / sum(ends.values())
        return {topic: {number: round(end * (1 - left)) for number, end in ends.items()}}

    def job(self, topic: str, records: int, grouping: Mapping[str, Any], **more: Any) -> Job:
        """The shipped word count of one topic, with this size of batch and a sink of its own."""
        checkpoint = self.checkpoint()
        out = f"{topic}-{Path(checkpoint).name}"
        self.broker.create_topics([out, f"{out}-dead"])
        settings = {
            "source.bootstrap_servers": self.broker.address,
            "source.subscribe": [topic],
            "source.records_per_batch": records + _ROUNDING,
            "grouping": dict(grouping),
            "window": {"type": "none"},
            "lateness": None,
            "trigger": {"type": "available_now"},
            "sinks": [{"type": "kafka", "topic": out}],
            "dead_letters": {"type": "kafka", "topic": f"{out}-dead"},
            "checkpoint": checkpoint,
        }
        return load_job("word_count", settings | more)

    @contextmanager
    def spark(self, master: str, **settings: str) -> Iterator[tuple[SparkSession, Meter]]:
        """A session, and what sees its batches."""
        shared = {
            "spark.master": master,
            "spark.driver.memory": "3g",
            "spark.sql.shuffle.partitions": "4",
        }
        with session("benchmark", shared | settings) as spark:
            meter = Meter(self.processes)
            spark.streams.addListener(meter)
            yield spark, meter
            spark.streams.removeListener(meter)


@contextmanager
def bench() -> Iterator[Bench]:
    """Broker and folder, both gone afterwards."""
    with TemporaryDirectory(prefix="unskew-bench-") as folder, Broker() as broker:
        processes = Processes()
        try:
            yield Bench(broker, Path(folder), processes)
        finally:
            processes.close()


def zipf(records: int, exponent: float, keys: int = KEYS, seed: int = 1) -> Int64s:
    """Ranks of a Zipf law, 0 the most frequent."""
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    edges = np.cumsum(weights) / weights.sum()
    draws = np.random.default_rng(seed).random(records)
    ranks: Int64s = np.minimum(np.searchsorted(edges, draws), keys - 1)
    return ranks


def settle(meter: Meter) -> Run:
    """What a query that has ended did, once its last event has come."""
    meter.wait_for_ends(_EVENTS_SECONDS)
    return meter.taken()


def middle(values: Iterable[float]) -> float:
    """Compute the median."""
    return float(median(values))
