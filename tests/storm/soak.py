"""`python -m tests.storm.soak`: a long run undisturbed; memory and files must stay bounded.

A word count of random lines from Kafka to Kafka, on a cluster of two executors. While it runs,
memory, descriptors, processes and files are sampled; none may rise along the second half of the
run. At the end its own metrics and its topics must say what the oracle says.
"""

import argparse
import csv
import itertools
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import psutil
from confluent_kafka import Producer

from tests.storm.harness.services import start_broker
from tests.storm.oracle.outcome import messages_of, topic_letters, topic_rows, totals_of
from tests.support.running.cluster import Cluster, cluster
from tests.support.running.job_process import Running, Samples, job_words, running
from tests.support.running.jvm_memory import read_live_heap
from unskew.jobs.kafka.broker import Broker

WORDS = 5_000
_WORDS_A_LINE = 3
_BROKEN_EVERY = 1_000
_SAMPLE_SECONDS = 2.0
# Of a run on a machine with other work a batch may be read in two, not every tenth of them.
_BATCHES_MORE = 1.05
_PARTS = 20
# Else a collector that takes more of the heap, in one step at any time, reads as a rise.
_WHOLE_HEAP = "-Xms{0} -XX:+AlwaysPreTouch"
_BATCHES_A_COLLECTION = 10
RISE_MAX = {
    "driver_bytes": 3 << 20,
    "jvm_bytes": 12 << 20,
    "executors_bytes": 16 << 20,
    "jvm_live_bytes": 12 << 20,
    "executors_live_bytes": 16 << 20,
    "workers_bytes": 6 << 20,
    "descriptors": 4,
    "processes": 0.5,
    "journal_bytes": 64 << 10,
    "checkpoint_bytes": 1 << 20,
    "checkpoint_files": 20,
}
"""How much each may rise in a hundred batches. Spark keeps the files of the last hundred batches,
and removes older ones from time to time. JVMs have all of their heap from the start, so what else
they take is seen; what they hold in it is read after a collection, at any moment of a batch."""


@dataclass(frozen=True)
class Sample:
    """What a job uses at one moment."""

    seconds: float
    batch: int
    driver_bytes: int
    jvm_bytes: int
    executors_bytes: int
    jvm_live_bytes: int
    executors_live_bytes: int
    workers_bytes: int
    descriptors: int
    processes: int
    journal_bytes: int
    checkpoint_bytes: int
    checkpoint_files: int


def grown(samples: Sequence[Sample]) -> list[str]:
    """What rises along the second half of the run by more than it may."""
    last = samples[-1].batch
    late = [sample for sample in samples if sample.batch >= last / 2]
    lines = []
    for name, most in RISE_MAX.items():
        rise = 100 * slope([(sample.batch, getattr(sample, name)) for sample in late])
        if rise > most:
            lines.append(f"{name} rises by {rise:.1f} in a hundred batches, more than {most}")
    return lines


def slope(points: Sequence[tuple[float, float]]) -> float:
    """How much the values rise from one to the next place: the median over all pairs of parts.

    Each part is the median of its points: a single step or peak does not count as a rise.
    """
    size = max(1, len(points) // _PARTS)
    parts = [points[start : start + size] for start in range(0, len(points), size)]
    middles = [tuple(statistics.median(axis) for axis in zip(*part, strict=True)) for part in parts]
    rises = [
        (after[1] - before[1]) / (after[0] - before[0])
        for before, after in itertools.combinations(middles, 2)
        if after[0] > before[0]
    ]
    return statistics.median(rises) if rises else 0.0


@dataclass(frozen=True)
class Produced:
    """What was written into the topic."""

    words: Counter[str]
    lines: int
    broken: int


def soak(
    records: int, batches: int, folder: Path, broker: Broker, spark: Cluster
) -> tuple[list[Sample], list[str]]:
    """Run it; the samples, and what was wrong."""
    broker.create_topics(["soak"], partitions=2)
    broker.create_topics(["soak-counts"], cleanup_policy="compact")
    broker.create_topics(["soak-dead"])
    produced = produce(broker, records)
    settings = {**spark.settings(), "spark.driver.memory": "768m"}
    settings["spark.driver.extraJavaOptions"] = _WHOLE_HEAP.format("768m")
    settings["spark.executor.extraJavaOptions"] += f" {_WHOLE_HEAP.format('512m')}"
    words = job_words(
        broker.address,
        folder,
        "soak",
        source__records_per_batch=records // batches,
        trigger__interval="0 s",
        **{f"spark__{name}": value for name, value in settings.items()},
    )
    with running(words, folder / "log") as job:
        samples = _sampled(job, folder / "soak", spark, produced.words.total())
        wrong = _check_metrics(job.metrics(), produced)
        code, _ = job.stop(signal.SIGTERM)
    wrong += [] if code == 0 else [f"exit code {code}: {job.text()}"]
    made = samples[-1].batch + 1
    if not batches <= made <= batches * _BATCHES_MORE + 1:
        wrong.append(f"{made} batches instead of {batches}")
    rows = totals_of(topic_rows(messages_of(broker.address, "soak-counts")), once=False)
    if {key: row["count"] for (key,), row in rows.items()} != produced.words:
        wrong.append("its totals are not the oracle's")
    dead = topic_letters(messages_of(broker.address, "soak-dead"))
    if (dead.total(), len(dead)) != (produced.broken, produced.broken):
        wrong.append(f"{dead.total()} dead letters instead of {produced.broken}")
    return samples, wrong


def _check_metrics(metrics: Samples, produced: Produced) -> list[str]:
    """What Prometheus was told that is not so."""
    want = {
        ("unskew_records_total", ""): produced.words.total(),
        ("unskew_source_records_total", ""): produced.lines,
        ("unskew_dead_letters_total", "not_utf8"): produced.broken,
        ("unskew_late_records_total", ""): 0,
    }
    return [
        f"its metrics say {metrics.get(name, 0):.0f} {name[0]} instead of {count}"
        for name, count in want.items()
        if metrics.get(name, 0) != count
    ]


def produce(broker: Broker, lines: int) -> Produced:
    """Write lines of skewed words, every thousandth of them broken."""
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0, "linger.ms": 50})
    rng, counts = np.random.default_rng(7), np.zeros(WORDS, np.int64)
    broken = 0
    for start in range(0, lines, 10_000):
        ranks = rng.zipf(1.2, size=(min(10_000, lines - start), _WORDS_A_LINE)) % WORDS
        good = np.arange(len(ranks)) % _BROKEN_EVERY != 0
        broken += int((~good).sum())
        counts += np.bincount(ranks[good].ravel(), minlength=WORDS)
        for row, is_good in zip(ranks.tolist(), good, strict=True):
            text = " ".join(f"w{rank}" for rank in row).encode()
            producer.produce("soak", text if is_good else b"\xff" + text)
        producer.flush(60)
    words = Counter({f"w{rank}": int(count) for rank, count in enumerate(counts) if count})
    return Produced(words, lines, broken)


def _sampled(job: Running, checkpoint: Path, spark: Cluster, records: int) -> list[Sample]:
    """Samples until all records are done, or a signal: it tells what was done until then."""
    samples: list[Sample] = []
    live = _LiveHeaps()
    started = time.monotonic()
    with suppress(KeyboardInterrupt):
        while True:
            metrics = job.metrics()
            batch = int(metrics.get(("unskew_last_batch_number", ""), -1))
            if batch >= 0:
                seconds = time.monotonic() - started
                samples.append(_sample(job, checkpoint, spark, seconds, batch, live))
            if metrics.get(("unskew_records_total", ""), 0) >= records:
                break
            assert job.process.poll() is None, job.text()
            time.sleep(_SAMPLE_SECONDS)
    return samples


class _LiveHeaps:
    """What the driver's JVM and the executors hold, read in every tenth batch."""

    def __init__(self) -> None:
        self._next = 0
        self._read = (0, 0)

    def read(
        self, batch: int, own: Sequence[psutil.Process], executors: Sequence[psutil.Process]
    ) -> tuple[int, int]:
        if batch >= self._next:
            self._next = batch + _BATCHES_A_COLLECTION
            jvms = [process for process in own if process.name() == "java"]
            self._read = _sum_live(jvms), _sum_live(executors)
        return self._read


def _sample(
    job: Running, checkpoint: Path, spark: Cluster, seconds: float, batch: int, live: _LiveHeaps
) -> Sample:
    driver = psutil.Process(job.process.pid)
    own = driver.children(recursive=True)
    executors = spark.executors()
    forked = [child for each in executors for child in each.children(recursive=True)]
    everyone = [driver, *own, *executors, *forked]
    files, journal = _sizes(checkpoint), _sizes(checkpoint / "unskew")
    return Sample(
        seconds,
        batch,
        driver.memory_full_info().uss,
        _sum_memory(own),
        _sum_memory(executors),
        *live.read(batch, own, executors),
        _sum_memory(forked),
        sum(_count_descriptors(each) for each in everyone),
        len(everyone),
        sum(journal),
        sum(files),
        len(files),
    )


def _sum_live(jvms: Sequence[psutil.Process]) -> int:
    return sum(read_live_heap(jvm) for jvm in jvms)


def _sum_memory(processes: Sequence[psutil.Process]) -> int:
    """The bytes that are theirs alone: forked workers share most of their pages."""
    total = 0
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            total += process.memory_full_info().uss
    return total


def _count_descriptors(process: psutil.Process) -> int:
    with suppress(psutil.NoSuchProcess):
        return int(process.num_fds())
    return 0


def _sizes(folder: Path) -> list[int]:
    """The sizes of the files below a folder, of which some are removed meanwhile."""
    # `Path.rglob` raises where a folder goes away while it walks; `os.walk` passes it over.
    paths = (Path(root, name) for root, _, names in os.walk(folder) for name in names)
    return [size for path in paths if (size := _size(path)) is not None]


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size if path.is_file() else None
    except FileNotFoundError:
        return None


def write_samples(samples: Sequence[Sample], folder: Path) -> None:
    """The samples as a table and as a plot."""
    from matplotlib.figure import Figure

    names = [field.name for field in fields(Sample)]
    with (folder / "soak.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, names)
        writer.writeheader()
        writer.writerows(asdict(sample) for sample in samples)
    figure = Figure(figsize=(9, 12), layout="constrained")
    axes = figure.subplots(len(RISE_MAX), 1, sharex=True)
    for axis, name in zip(axes, RISE_MAX, strict=True):
        axis.plot([s.batch for s in samples], [getattr(s, name) for s in samples])
        axis.set_ylabel(name, rotation=0, ha="right")
        axis.set_ylim(bottom=0)
    axes[-1].set_xlabel("batch")
    figure.savefig(folder / "soak.png")


def main() -> int:
    """Run it as large as asked; 1 if something grew or a total is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.storm.soak", description=__doc__)
    parser.add_argument("--records", type=int, default=10_000_000)
    parser.add_argument("--batches", type=int, default=500)
    parser.add_argument("--out", type=Path, default=None, help="a folder for soak.csv and soak.png")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    with (
        tempfile.TemporaryDirectory(prefix="soak-") as name,
        start_broker() as broker,
        cluster(Path(name) / "cluster") as spark,
    ):
        samples, wrong = soak(given.records, given.batches, Path(name), broker, spark)
    wrong += grown(samples)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        write_samples(samples, given.out)
    print(f"{given.records} records, {samples[-1].batch + 1} batches, {samples[-1].seconds:.0f} s")
    print("\n".join(wrong) or "totals exact; memory, descriptors, processes and files bounded")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
