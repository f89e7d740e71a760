"""The demo: lines with a hot word through a real Kafka, counted under two groupings, compared."""

import json
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
from confluent_kafka import Consumer, Producer, TopicPartition
from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from config.errors import OutsideError
from config.loader import load_job
from config.models.job import Job
from grouping.base import Int64s
from jobs.batch import BatchDone
from jobs.broker import Broker
from jobs.service import Service, job_session

LINES = "lines"
LINE_WORDS = 10
BATCHES = 5
BAD_LINE = b"\xff\xfe not a text"


@dataclass(frozen=True)
class Stream:
    """What was written to Kafka, and what counting it must give."""

    lines: int
    bad: int
    counts: Counter[str]


@dataclass(frozen=True)
class Outcome:
    """One run of the job: its totals as read back from Kafka, and its batches."""

    grouping: str
    exact: bool
    dead: int
    batches: list[BatchDone]

    @property
    def records(self) -> int:
        """Routed records of all batches."""
        return sum(done.facts.total for done in self.batches if done.facts)

    @property
    def batch_seconds(self) -> float:
        """The median batch but for the first, in which Python starts and kernels load."""
        return median(done.seconds for done in self.batches[1:] or self.batches)

    @property
    def loads(self) -> Int64s:
        """Records of each partition over all batches."""
        loads: Int64s = np.sum([done.facts.records for done in self.batches if done.facts], axis=0)
        return loads

    @property
    def replication(self) -> float:
        """Of the median batch."""
        return median(done.facts.replication for done in self.batches if done.facts)


def run(groupings: list[str], lines: int, console: Console) -> list[Outcome]:
    """Write the stream once, count it under each grouping."""
    with tempfile.TemporaryDirectory(prefix="unskew-demo-") as folder, Broker() as broker:
        console.print(f"Kafka is up at {broker.address}")
        broker.create_topics([LINES], partitions=4)
        stream = produce(broker.address, lines)
        console.print(
            f"{stream.lines:,} lines written, {sum(stream.counts.values()):,} words,"
            f" {len(stream.counts):,} different, {stream.bad} lines broken on purpose"
        )
        jobs = [_job(name, broker, Path(folder), lines // BATCHES) for name in groupings]
        with job_session(jobs[0]) as spark:
            return [
                _count(name, job, spark, broker, stream, console)
                for name, job in zip(groupings, jobs, strict=True)
            ]


def produce(address: str, lines: int, seed: int = 1) -> Stream:
    """Write lines of Zipf words, a few of them broken; what counting them must give."""
    generator = np.random.default_rng(seed)
    ranks = generator.zipf(1.3, size=(lines, LINE_WORDS)) % 50_000
    producer = Producer(
        {
            "bootstrap.servers": address,
            "linger.ms": 20,
            "queue.buffering.max.messages": 1_000_000,
            "log_level": 0,
        }
    )
    bad = 0
    for number, row in enumerate(ranks):
        broken = number % 10_000 == 1
        bad += broken
        value = BAD_LINE if broken else " ".join(f"w{rank}" for rank in row).encode()
        producer.produce(LINES, value)
        if number % 10_000 == 0:
            producer.poll(0)
    if producer.flush(60):
        raise OutsideError("demo: the broker did not take all lines within 60 s")
    good = np.delete(ranks, np.arange(1, lines, 10_000), axis=0)
    words, counts = np.unique(good, return_counts=True)
    totals = Counter({f"w{w}": int(c) for w, c in zip(words, counts, strict=True)})
    return Stream(lines, bad, totals)


def _job(grouping: str, broker: Broker, folder: Path, lines_a_batch: int) -> Job:
    """The shipped word count, on this broker and under this grouping."""
    broker.create_topics([f"counts-{grouping}"], cleanup_policy="compact")
    broker.create_topics([f"dead-{grouping}"])
    return load_job(
        "word_count",
        {
            "source.bootstrap_servers": broker.address,
            "source.records_per_batch": lines_a_batch,
            "grouping": {"type": grouping},
            "partitions": 8,
            "window": {"type": "none"},
            "lateness": None,
            "trigger": {"type": "available_now"},
            "sinks": [{"type": "kafka", "topic": f"counts-{grouping}"}],
            "dead_letters": {"type": "kafka", "topic": f"dead-{grouping}"},
            "checkpoint": str(folder / grouping),
        },
    )


def _count(
    name: str, job: Job, spark: SparkSession, broker: Broker, stream: Stream, console: Console
) -> Outcome:
    batches: list[BatchDone] = []

    def show(done: BatchDone) -> None:
        batches.append(done)
        if done.facts is not None:
            console.print(
                f"  batch {done.facts.batch}: {done.facts.total:,} words, {done.seconds:.1f} s,"
                f" fullest partition {done.facts.max_over_mean:.2f} x the mean"
            )

    console.print(f"counting under [bold]{name}[/]")
    Service(job, spark, (show,)).run()
    totals = {
        json.loads(key)["key"]: json.loads(value)["count"]
        for key, value in _read(broker.address, f"counts-{name}")
    }
    dead = len(_read(broker.address, f"dead-{name}"))
    return Outcome(name, totals == dict(stream.counts), dead, batches)


def _read(address: str, topic: str) -> list[tuple[bytes, bytes]]:
    """All records of a topic with one partition, oldest first."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unskew-demo", "log_level": 0})
    try:
        place = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(place, timeout=20)
        consumer.assign([place])
        found: list[tuple[bytes, bytes]] = []
        last = -1
        while last + 1 < end:
            # Asking for more than there is would wait for more to come.
            messages = consumer.consume(min(10_000, end - last - 1), timeout=10)
            if not messages:
                raise OutsideError(f"demo: topic {topic} could not be read to its end")
            for message in messages:
                if message.error():
                    raise OutsideError(f"demo: topic {topic}: {message.error()}")
                last = message.offset() or 0
                found.append((message.key() or b"", message.value() or b""))
        return found
    finally:
        consumer.close()


def summary(outcomes: list[Outcome]) -> Table:
    """The groupings side by side. Counting is cheap work, so times differ little here."""
    table = Table(title="the same stream, counted twice")
    headings = ("grouping", "words", "s a batch", "max/mean", "pairs/key", "dead", "totals")
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "grouping" else "right")
    for one in outcomes:
        table.add_row(
            one.grouping,
            f"{one.records:,}",
            f"{one.batch_seconds:.2f}",
            f"{one.loads.max() / one.loads.mean():.2f}",
            f"{one.replication:.2f}",
            str(one.dead),
            "exact" if one.exact else "WRONG",
        )
    return table


def bars(outcome: Outcome) -> list[str]:
    """Records of each partition as bars on one scale."""
    loads = outcome.loads
    width = 50 / loads.max()
    return [
        f"{number:>3} {'█' * max(1, round(load * width)):<50} {load:>10,}"
        for number, load in enumerate(loads)
    ]
