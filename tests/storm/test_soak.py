"""The soak in small: it runs, its totals are exact, and what grows is told."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.storm.soak import Sample, grown, soak, write_samples
from unskew.jobs.kafka.broker import Broker

FLAT = Sample(0.0, 0, 1 << 30, 1 << 30, 1 << 30, 100, 5, 1 << 20, 1 << 24, 500)


def test_what_grows_is_told_and_what_is_level_is_not() -> None:
    level = [replace(FLAT, batch=number) for number in range(100)]
    leaking = [
        replace(figures, jvm_bytes=(1 << 30) + figures.batch * (20 << 20)) for figures in level
    ]
    files = [replace(figures, checkpoint_files=500 + 20 * figures.batch) for figures in level]

    assert grown(level) == []
    assert [line.split()[0] for line in grown(leaking)] == ["jvm_bytes"]
    assert [line.split()[0] for line in grown(files)] == ["checkpoint_files"]


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_a_small_soak_has_exact_totals(broker: Broker, tmp_path: Path) -> None:
    samples, wrong = soak(4_000, 20, tmp_path, broker)
    write_samples(samples, tmp_path)

    assert wrong == []
    assert samples[-1].batch >= 19
    assert samples[-1].jvm_bytes > samples[-1].driver_bytes > 0
    assert len((tmp_path / "soak.csv").read_text().splitlines()) == len(samples) + 1
