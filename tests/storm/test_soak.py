"""The soak in small: it runs, its totals are exact, and what grows is told."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.storm.soak import RISE_MAX, Sample, grown, soak, write_samples
from tests.support.running.cluster import cluster
from tests.support.running.jvm_memory import read_live_heap
from unskew.jobs.kafka.broker import Broker

FLAT = Sample(
    0.0, 0, 1 << 30, 1 << 30, 1 << 30, 1 << 26, 1 << 27, 1 << 30, 100, 5, 1 << 20, 1 << 24, 500
)


def made(**figures: Callable[[int], float]) -> list[Sample]:
    """Samples of 500 batches, level but for these figures."""
    return [
        replace(FLAT, batch=batch, **{name: int(value(batch)) for name, value in figures.items()})
        for batch in range(500)
    ]


def test_what_rises_is_told_and_what_is_level_is_not() -> None:
    noise = random.Random(1)
    leak = made(jvm_bytes=lambda batch: (1 << 30) + batch * (200 << 10) + noise.randrange(8 << 20))
    files = made(checkpoint_files=lambda batch: 500 + batch)
    assert grown(made()) == []
    assert [line.split()[0] for line in grown(leak)] == ["jvm_bytes"]
    assert [line.split()[0] for line in grown(files)] == ["checkpoint_files"]


@pytest.mark.parametrize("name", ["jvm_live_bytes", "executors_live_bytes", "executors_bytes"])
def test_a_leak_of_little_more_than_may_be_is_told_beside_noise(name: str) -> None:
    noise = random.Random(2)

    def leak(share: float) -> list[str]:
        rise = share * RISE_MAX[name] / 100
        figures = {name: lambda batch: (1 << 28) + batch * rise + noise.gauss(0, 12 << 20)}
        return [line.split()[0] for line in grown(made(**figures))]

    assert leak(1.1) == [name]
    assert leak(0.5) == []


@pytest.mark.spark
def test_what_a_jvm_holds_is_read_without_its_garbage(spark: SparkSession) -> None:
    gateway: Any = spark.sparkContext._gateway
    jvm = psutil.Process(gateway.jvm.java.lang.ProcessHandle.current().pid())
    before = read_live_heap(jvm)
    # Much more than what earlier tests of the session may leave to be freed meanwhile.
    held = gateway.jvm.java.lang.StringBuilder(192 << 20)
    holding = read_live_heap(jvm)
    held.trimToSize()
    after = read_live_heap(jvm)
    assert 128 << 20 < holding - before < 256 << 20
    assert holding - after > 128 << 20


def test_a_start_up_a_peak_and_a_step_are_no_rise() -> None:
    start_up = made(checkpoint_files=lambda batch: 5 * min(batch, 100))
    peak = made(workers_bytes=lambda batch: (1 << 30) + (500 << 20) * (300 < batch < 320))
    step = made(jvm_bytes=lambda batch: (1 << 30) + (64 << 20) * (batch > 260))
    assert [grown(samples) for samples in (start_up, peak, step)] == [[], [], []]


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_a_small_soak_has_exact_totals(broker: Broker, tmp_path: Path) -> None:
    with cluster(tmp_path / "cluster") as spark:
        samples, wrong = soak(4_000, 20, tmp_path, broker, spark)
    write_samples(samples, tmp_path)

    assert wrong == []
    assert samples[-1].executors_bytes > samples[-1].jvm_bytes > samples[-1].driver_bytes > 0
    assert len((tmp_path / "soak.csv").read_text().splitlines()) == len(samples) + 1
