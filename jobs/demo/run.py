"""The demo: lines in which one word flares up, through a real Kafka, counted under two groupings.

Each word costs some time *after* the shuffle, slept, as a lookup or a model would: it is such work
that skew makes slow. Plain counts are another matter: there Spark's own `groupBy` combines words
before the shuffle, and needs no grouping.
"""

import json
import shutil
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession
from rich.console import Console

from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.demo.results import Outcome
from unskew.jobs.demo.view import View
from unskew.jobs.engine.service import Service
from unskew.jobs.engine.session import SHORT_LIVED, give_head_start, open_job_session
from unskew.jobs.engine.spark_errors import translate_spark_errors
from unskew.jobs.generator.oracle import Oracle
from unskew.jobs.generator.outputs import KafkaOutput
from unskew.jobs.generator.progress import Progress
from unskew.jobs.generator.registry import open_stream, start_totals
from unskew.jobs.generator.settings import KafkaTarget, OracleSettings, Settings
from unskew.jobs.generator.stream_writer import Writer
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.signals import EXIT_INTERRUPTED, Stop, call_on_signals
from unskew.jobs.observe.board import make_board
from unskew.jobs.observe.health import Health, compute_stall_seconds
from unskew.jobs.observe.page.page import LivePage
from unskew.jobs.observe.web.server import MetricsServer

BATCHES = 7
FLARING = 3
"""Batches in the middle during which one word flares up."""
FLARE_SHARE = 0.4
PARTITIONS = 8
COST = "100 us"
"""The cost of a word."""
_TOPIC = "lines"
_KAFKA_PARTITIONS = 4
_LINES_A_SECOND = 1000
_WORDS_A_LINE = 10
_COST_SECONDS = 100e-6
# Seconds on two cores, for the estimate alone: what starts, and what a batch costs beside its work.
_START_SECONDS, _BATCH_SECONDS = 25.0, 1.0
_LONGER_UNDER_KEY = 2.5
"""The fullest partition over the mean, over the batches before, during and after the flare."""


@dataclass(frozen=True)
class Written:
    """What was written to Kafka, and the totals that counting it must give."""

    lines: int
    counts: Mapping[str, int]
    rejected: int


def run(groupings: list[str], lines: int, console: Console) -> list[Outcome]:
    """Write the stream once, count it under each grouping."""
    try:
        return _run(groupings, lines, console)
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        raise ExternalError(f"demo: {where}{error.strerror or error}") from error
    except KafkaException as error:
        raise ExternalError(f"demo: Kafka: {error.args[0].str()}") from error


def estimate_seconds(groupings: list[str], lines: int) -> float:
    """About how long it takes, from what each word costs and what a start costs."""
    work = lines * _WORDS_A_LINE * _COST_SECONDS / PARTITIONS
    longer = [_LONGER_UNDER_KEY if name == "key" else 1.1 for name in groupings]
    return _START_SECONDS + sum(BATCHES * _BATCH_SECONDS + work * each for each in longer)


def describe_seconds(seconds: float) -> str:
    """Format an estimated time, such as `3 minutes`."""
    return f"{seconds / 60:.0f} minutes" if seconds >= 90 else f"{seconds:.0f} s"


def _run(groupings: list[str], lines: int, console: Console) -> list[Outcome]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="unskew-demo-")))
        broker = stack.enter_context(Broker())
        console.print(f"Kafka is up at {broker.address}")
        broker.create_topics([_TOPIC], partitions=_KAFKA_PARTITIONS)
        written = write(broker, lines, folder)
        console.print(
            f"{sum(written.counts.values()):,} words, {len(written.counts):,} different, one of"
            f" which flares up in the middle; {written.rejected} lines are broken on purpose",
            soft_wrap=True,
        )
        console.print(
            f"{BATCHES} batches under {' and then under '.join(groupings)}: about"
            f" {describe_seconds(estimate_seconds(groupings, lines))}; workers and kernels start"
            " before the first batch",
            soft_wrap=True,
        )
        jobs = [make_job(name, broker, folder, lines) for name in groupings]
        # The broker and Spark end with this process; the folder must be removed.
        gone = partial(shutil.rmtree, folder, ignore_errors=True)
        stop = Stop(overdue_code=EXIT_INTERRUPTED, overdue=gone)
        try:
            with call_on_signals(stop), translate_spark_errors(jobs[0]):
                return _run_jobs(jobs, broker, written, console, stop)
        except Exception:
            # A signal to the whole process group may have ended the JVM before us.
            if stop.asked:
                raise KeyboardInterrupt from None
            raise


def write(broker: Broker, lines: int, folder: Path) -> Written:
    """Write the stream into Kafka; its oracle gives the expected totals."""
    length = lines * 1_000_000 // _LINES_A_SECOND
    # Kafka drops what is a week old, and refuses what is far ahead.
    start = time.time_ns() // 1_000_000 * 1000 - length
    settings = Settings(
        stream="lines",
        seed=1,
        keys=50_000,
        skew=0.9,
        drift=0,
        start=start,
        rate=float(_LINES_A_SECOND),
        records=lines,
        words=_WORDS_A_LINE,
        users=1,
        flare=FLARE_SHARE,
        flare_every=length,
        flare_for=length * FLARING // BATCHES,
        rejected=20 / lines,
        late=0.0,
        late_by=0,
    )
    stream = open_stream(settings)
    file = folder / "oracle.json"
    oracle = Oracle(OracleSettings(str(file), None, None), stream, start_totals(stream))
    output = KafkaOutput(KafkaTarget(broker.address, _TOPIC, None, ()))
    progress = Progress("lines", output.name, None)
    Writer(stream, output, oracle, progress, Stop()).run(paced=False)
    totals = json.loads(file.read_text())
    counts = {row["key"]: row["count"] for row in totals["totals"]}
    return Written(lines, counts, sum(totals["rejected"].values()))


def make_job(grouping: str, broker: Broker, folder: Path, lines: int) -> Job:
    """Make the shipped word count on this broker and under this grouping, each word at a cost."""
    broker.create_topics([f"counts-{grouping}"], cleanup_policy="compact")
    broker.create_topics([f"dead-{grouping}"])
    return load_job(
        "word_count",
        {
            "source.bootstrap_servers": broker.address,
            # Spark rounds a batch's share of each Kafka partition down: without a record more for
            # each partition, the remainder would be a batch of its own.
            "source.records_per_batch": -(-lines // BATCHES) + _KAFKA_PARTITIONS,
            "source.split": False,  # the topic's partitions are equally full
            "operator": {"type": "paced", "text": "value", "cost": COST},
            "grouping": {"type": grouping},
            "partitions": PARTITIONS,
            "window": {"type": "none"},
            "lateness": None,
            "merge.partitions": 2,
            "trigger": {"type": "available_now"},
            "sinks": [{"type": "kafka", "topic": f"counts-{grouping}"}],
            "dead_letters": {"type": "kafka", "topic": f"dead-{grouping}"},
            "metrics.port": "auto",
            "checkpoint": str(folder / grouping),
            # A slot for each partition: they wait side by side, also on few cores.
            "spark": {"spark.master": f"local[{PARTITIONS}]", **SHORT_LIVED},
        },
    )


def _run_jobs(
    jobs: list[Job], broker: Broker, written: Written, console: Console, stop: Stop
) -> list[Outcome]:
    """Run all jobs, one after the other in one session, or as many as there were before a stop."""
    outcomes: list[Outcome] = []
    with ExitStack() as stack:
        spark: SparkSession | None = None
        port: int | None = None
        view = stack.enter_context(View(console, BATCHES, PARTITIONS))
        for job in jobs:
            health = Health(compute_stall_seconds(job))
            board = make_board(job, health)
            page = LivePage(job, health)
            # Serve the second job's page on the port of the first one's.
            settings = job.metrics.model_copy(update={"port": port} if port else {})
            with MetricsServer(settings, board, health, page) as server:
                port = server.port
                view.begin(job.grouping.type, server.page_url)
                if spark is None:
                    spark = stack.enter_context(open_job_session(job))
                    give_head_start(spark, job)
                if not stop.asked:
                    followers = (board, health, page, view)
                    Service(job, spark, followers, stop=stop).run()
            if stop.asked:
                break
            outcomes.append(_make_outcome(job.grouping.type, broker, written, view))
    if stop.asked:
        raise KeyboardInterrupt
    return outcomes


def _make_outcome(grouping: str, broker: Broker, written: Written, view: View) -> Outcome:
    totals = {
        json.loads(key)["key"]: json.loads(value)["count"]
        for key, value in _read(broker.address, f"counts-{grouping}")
    }
    dead = len(_read(broker.address, f"dead-{grouping}"))
    exact = totals == written.counts and dead == written.rejected
    return Outcome(grouping, exact, dead, tuple(view.batches))


def _read(address: str, topic: str) -> list[tuple[bytes, bytes]]:
    """All records of a topic with one partition, oldest first."""
    consumer = Consumer({"bootstrap.servers": address, "group.id": "unskew-demo", "log_level": 0})
    try:
        partition = TopicPartition(topic, 0, 0)
        _, end = consumer.get_watermark_offsets(partition, timeout=20)
        consumer.assign([partition])
        records: list[tuple[bytes, bytes]] = []
        last = -1
        while last + 1 < end:
            # Asking for more than there is would wait for more to come.
            messages = consumer.consume(min(10_000, end - last - 1), timeout=10)
            if not messages:
                raise ExternalError(f"demo: topic {topic} could not be read to its end")
            for message in messages:
                if message.error():
                    raise ExternalError(f"demo: topic {topic}: {message.error()}")
                last = message.offset() or 0
                records.append((message.key() or b"", message.value() or b""))
        return records
    finally:
        consumer.close()
