"""`python -m tests.storm.soak`: a long run undisturbed; memory and files must stay bounded.

A word count of random lines from Kafka to Kafka. While it runs, memory, descriptors, processes and
files are sampled; after its start-up, no later part of the run may use much more than an earlier
one. At the end its own metrics and its topic must say what the oracle says.
"""

import argparse
import csv
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

from tests.storm.oracle.outcome import messages_of, topic_rows, totals_of
from tests.support.running.job_process import Running, job_words, running
from unskew.jobs.kafka.broker import Broker

WORDS = 5_000
_WORDS_A_LINE = 3
_SAMPLE_SECONDS = 1.0
# Spark keeps the files of the last hundred batches, and removes older ones from time to time.
GROWTH_MAX = 1.2
SLACK = {
    "driver_bytes": 30 << 20,
    "jvm_bytes": 150 << 20,
    "workers_bytes": 100 << 20,
    "descriptors": 60,
    "processes": 4,
    "journal_bytes": 1 << 20,
    "checkpoint_bytes": 16 << 20,
    "checkpoint_files": 400,
}
"""What each may grow beside GROWTH_MAX: garbage not collected yet, a worker more or less."""


@dataclass(frozen=True)
class Sample:
    """What a job uses at one moment."""

    seconds: float
    batch: int
    driver_bytes: int
    jvm_bytes: int
    workers_bytes: int
    descriptors: int
    processes: int
    journal_bytes: int
    checkpoint_bytes: int
    checkpoint_files: int


def grown(samples: Sequence[Sample]) -> list[str]:
    """What grew from the second to the last quarter of the run by more than it may."""
    quarter = len(samples) // 4
    early, late = samples[quarter : 2 * quarter], samples[-quarter:]
    lines = []
    for name, slack in SLACK.items():
        before, after = (
            statistics.median(getattr(sample, name) for sample in part) for part in (early, late)
        )
        if after > before * GROWTH_MAX + slack:
            lines.append(f"{name} grew from {before:.0f} to {after:.0f}")
    return lines


def soak(
    records: int, batches: int, folder: Path, broker: Broker
) -> tuple[list[Sample], list[str]]:
    """Run it; the samples, and what was wrong."""
    broker.create_topics(["soak"], partitions=2)
    broker.create_topics(["soak-counts"], cleanup_policy="compact")
    broker.create_topics(["soak-dead"])
    counts = produce(broker, records)
    words = job_words(
        broker.address,
        folder,
        "soak",
        source__records_per_batch=records // batches,
        trigger__interval="0 s",
    )
    with running(words, folder / "log") as job:
        samples = _sampled(job, folder / "soak", counts.total())
        done = job.metrics()["unskew_records_total", ""]
        code, _ = job.stop(signal.SIGTERM)
    wrong = [] if code == 0 else [f"exit code {code}: {job.text()}"]
    if done != counts.total():
        wrong.append(f"its metrics say {done:.0f} records instead of {counts.total()}")
    rows = totals_of(topic_rows(messages_of(broker.address, "soak-counts")), once=False)
    if {key: row["count"] for (key,), row in rows.items()} != counts:
        wrong.append("its totals are not the oracle's")
    return samples, wrong


def produce(broker: Broker, lines: int) -> Counter[str]:
    """Lines of skewed words; how often each word occurs."""
    producer = Producer({"bootstrap.servers": broker.address, "log_level": 0, "linger.ms": 50})
    rng, counts = np.random.default_rng(7), np.zeros(WORDS, np.int64)
    for start in range(0, lines, 10_000):
        ranks = rng.zipf(1.2, size=(min(10_000, lines - start), _WORDS_A_LINE)) % WORDS
        counts += np.bincount(ranks.ravel(), minlength=WORDS)
        for row in ranks.tolist():
            producer.produce("soak", " ".join(f"w{rank}" for rank in row).encode())
        producer.flush(60)
    return Counter({f"w{rank}": int(count) for rank, count in enumerate(counts) if count})


def _sampled(job: Running, checkpoint: Path, records: int) -> list[Sample]:
    """Samples until all records are done."""
    samples: list[Sample] = []
    started = time.monotonic()
    while True:
        metrics = job.metrics()
        batch = int(metrics.get(("unskew_last_batch_number", ""), -1))
        if batch >= 0:
            samples.append(_sample(job.process.pid, checkpoint, time.monotonic() - started, batch))
        if metrics.get(("unskew_records_total", ""), 0) >= records:
            return samples
        assert job.process.poll() is None, job.text()
        time.sleep(_SAMPLE_SECONDS)


def _sample(pid: int, checkpoint: Path, seconds: float, batch: int) -> Sample:
    driver = psutil.Process(pid)
    others = driver.children(recursive=True)
    sizes = {"java": 0, "python": 0}
    descriptors = driver.num_fds()
    for process in others:
        with suppress(psutil.NoSuchProcess):
            # Shared pages, of which forked workers have many, count once.
            kind = "java" if process.name() == "java" else "python"
            sizes[kind] += process.memory_full_info().uss
            descriptors += process.num_fds()
    files, journal = _sizes(checkpoint), _sizes(checkpoint / "unskew")
    return Sample(
        seconds,
        batch,
        driver.memory_full_info().uss,
        sizes["java"],
        sizes["python"],
        descriptors,
        1 + len(others),
        sum(journal),
        sum(files),
        len(files),
    )


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
    axes = figure.subplots(len(SLACK), 1, sharex=True)
    for axis, name in zip(axes, SLACK, strict=True):
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
    with tempfile.TemporaryDirectory(prefix="soak-") as folder, Broker() as broker:
        samples, wrong = soak(given.records, given.batches, Path(folder), broker)
    wrong += grown(samples)
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        write_samples(samples, given.out)
    print(f"{given.records} records, {samples[-1].batch + 1} batches, {samples[-1].seconds:.0f} s")
    print("\n".join(wrong) or "totals exact; memory, descriptors, processes and files bounded")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
