"""The soak in small: it runs, its totals are exact, and what grows is told."""

import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.storm.soak import Sample, grown, soak, write_samples
from tests.support.running.cluster import cluster
from unskew.jobs.kafka.broker import Broker

FLAT = Sample(0.0, 0, 1 << 30, 1 << 30, 1 << 30, 1 << 30, 100, 5, 1 << 20, 1 << 24, 500)


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
