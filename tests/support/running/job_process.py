"""`unskew run` as a user runs it: a process of its own, followed by its log and its metrics."""

import io
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from confluent_kafka import Producer
from prometheus_client.parser import text_string_to_metric_families

from tests.support.running.processes import end_process
from tests.support.running.topics import topic_records
from unskew.jobs.__main__ import main
from unskew.jobs.kafka.broker import Broker

WAIT_SECONDS = 400.0
"""How long a state may take on a machine with much else to do: kernels are compiled in it."""
Samples = dict[tuple[str, str], float]


def job_words(broker: str, folder: Path, topic: str, /, **settings: Any) -> list[str]:
    """`run` and its options for a small word count of a topic into TOPIC-counts."""
    values = {
        "source.bootstrap_servers": broker,
        "source.subscribe": f"[{topic}]",
        "partitions": 4,
        "window": "{type: none}",
        "lateness": "null",
        "merge.partitions": 2,
        "sinks": f"[{{type: kafka, topic: {topic}-counts}}]",
        "dead_letters.topic": f"{topic}-dead",
        "checkpoint": folder / topic,
        "trigger.interval": "1 s",
        "spark.spark.master": "local[2]",
        **{path.replace("__", "."): value for path, value in settings.items()},
    }
    options = [word for path, value in values.items() for word in ("--set", f"{path}={value}")]
    return ["run", "word_count", *options]


class Running:
    """A job that runs."""

    def __init__(self, process: "subprocess.Popen[str]", log: Path) -> None:
        self.process = process
        self._log = log

    def events(self) -> list[dict[str, Any]]:
        """The events that the job has logged."""
        lines = self._log.read_text().splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def text(self) -> str:
        """All of the job's standard error."""
        return self._log.read_text()

    @property
    def url(self) -> str:
        """The address of its metrics."""
        self.wait(lambda: bool(self.events()))
        return str(self.events()[0]["url"])

    def get(self, path: str) -> tuple[int, str]:
        """Ask for a page; its status and text."""
        try:
            where = self.url.replace("/metrics", path)
            with urllib.request.urlopen(where, timeout=20) as answer:  # noqa: S310 - ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def metrics(self) -> Samples:
        """Every sample by its name and the values of its labels but the query's."""
        samples: Samples = {}
        for family in text_string_to_metric_families(self.get("/metrics")[1]):
            for sample in family.samples:
                labels = sorted((k, v) for k, v in sample.labels.items() if k != "query")
                samples[sample.name, ",".join(value for _, value in labels)] = sample.value
        return samples

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until `done()`; the job must not end before."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            assert self.process.poll() is None, self.text()
            assert time.monotonic() < deadline, self.text()
            time.sleep(0.3)

    def wait_for_records(self, count: int) -> Samples:
        """Wait until `count` records are done; the metrics then."""
        self.wait(lambda: self.metrics().get(("unskew_records_total", ""), 0) >= count)
        return self.metrics()

    def stop(self, how: signal.Signals, group: bool = False) -> tuple[int, float]:
        """Signal it, or its JVM too as `timeout` does; its exit code and the seconds taken."""
        started = time.monotonic()
        (os.killpg if group else os.kill)(self.process.pid, how)
        code = self.process.wait(60)
        return code, time.monotonic() - started


@contextmanager
def running(words: list[str], log: Path) -> Iterator[Running]:
    """Start `unskew WORDS --log json`; whatever happens, it ends."""
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "unskew", *words, "--log", "json"],
            stderr=out,
            text=True,
            start_new_session=True,
        )
        try:
            yield Running(process, log)
        finally:
            end_process(process, 60)


def finished(words: list[str], *more: str) -> tuple[int, str, str]:
    """Run a command to its end: exit code, output, errors without the JVM's own remark."""
    done = subprocess.run(
        [sys.executable, "-m", "unskew", *words, *more],
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    errors = [line for line in done.stderr.splitlines() if "jdk.incubator" not in line]
    return done.returncode, done.stdout, "\n".join(errors)


def make_topics(broker: Broker, name: str) -> None:
    """NAME with two partitions, NAME-counts and NAME-dead."""
    broker.create_topics([name], partitions=2)
    broker.create_topics([f"{name}-counts"], cleanup_policy="compact")
    broker.create_topics([f"{name}-dead"])


def produce(broker: Broker, topic: str, lines: int, seed: int) -> Counter[str]:
    """Lines of five skewed words, every hundredth broken; what counting them must give."""
    ranks = np.random.default_rng(seed).zipf(1.4, size=(lines, 5)) % 500
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0})
    counts: Counter[str] = Counter()
    for number, row in enumerate(ranks):
        words = [f"w{rank}" for rank in row]
        if number % 100 == 7:
            producer.produce(topic, b"\xff\xfe broken")
        else:
            counts.update(words)
            producer.produce(topic, " ".join(words).encode())
    assert producer.flush(30) == 0
    return counts


def totals(broker: Broker, topic: str) -> dict[str, int]:
    """The last count of each word, as a compacted topic would keep it."""
    counts = {}
    for message in topic_records(broker, topic):
        counts[json.loads(message.key())["key"]] = json.loads(message.value())["count"]
    return counts


def inspected(checkpoint: Path) -> dict[str, object]:
    """What `unskew inspect --json` prints, by a run of it in this process."""
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors):
        code = main(["inspect", str(checkpoint), "--json"])
    assert (code, errors.getvalue()) == (0, "")
    report: dict[str, object] = json.loads(out.getvalue())
    return report


def journal_agrees(metrics: Samples, checkpoint: Path) -> None:
    """What Prometheus reads is what the journal says."""
    report = inspected(checkpoint)
    last = report["batches"][-1]  # type: ignore[index]
    for name, key in (
        ("unskew_last_batch_number", "batch"),
        ("unskew_batch_records", "records"),
        ("unskew_max_over_mean_ratio", "max_over_mean"),
        ("unskew_under_key_max_over_mean_ratio", "under_key_max_over_mean"),
        ("unskew_busy_max_over_mean_ratio", "busy_max_over_mean"),
        ("unskew_replication_ratio", "replication"),
        ("unskew_batch_routing_seconds", "routing_seconds"),
        ("unskew_sources", "sources"),
    ):
        assert metrics[name, ""] == pytest.approx(last[key], rel=1e-12), name
    for partition in report["partitions"]:  # type: ignore[attr-defined]
        number = str(partition["partition"])
        for name, key in (
            ("unskew_partition_batch_records", "records"),
            ("unskew_partition_batch_under_key_records", "under_key_records"),
            ("unskew_partition_batch_busy_seconds", "busy_seconds"),
            ("unskew_partition_state_keys", "state_keys"),
            ("unskew_partition_state_bytes", "state_bytes"),
        ):
            assert metrics[name, number] == partition["last_batch"][key], (name, number)
    assert metrics["unskew_journal_bytes", ""] == report["journal"]["bytes"]  # type: ignore[index]
    merge = {str(state["partition"]): state["bytes"] for state in report["merge"]}  # type: ignore[attr-defined]
    assert {label for name, label in metrics if name == "unskew_merge_partition_state_bytes"} == {
        *merge
    }
