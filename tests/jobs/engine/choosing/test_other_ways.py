"""What other groupings take beside the work, as a calibrated machine has it."""

from pathlib import Path

import pytest

from tests.jobs.engine.choosing.test_measured import finished
from unskew import load_job
from unskew.config.models.job import Job
from unskew.grouping.simulation.batch_cost import Constants
from unskew.jobs.engine.choosing.other_ways import OtherWays
from unskew.jobs.local.machine_constants import (
    Calibration,
    find_calibration_file,
    write_calibration,
)


def job_of(grouping: str) -> Job:
    return load_job("word_count", {"grouping": {"type": grouping}, "checkpoint": "unused"})


def test_nothing_is_known_without_a_calibration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path))
    assert OtherWays(2).of_batch(finished(), job_of("level")) == {}

    find_calibration_file().write_text("{")
    assert OtherWays(2).of_batch(finished(), job_of("level")) == {}


def test_what_is_routed_moved_and_merged_follows_from_the_calibration(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("UNSKEW_CACHE", str(tmp_path))
    constants = Constants(
        0.0, 0.0, 0.0, 0.0, pair_us=1e6, route_seconds=10.0, shuffle_seconds=20.0, state_us=0.0
    )
    write_calibration(Calibration(constants, 2, "2026-01-01 00:00"), find_calibration_file())

    seconds = OtherWays(2).of_batch(finished(), job_of("local"))

    # A second a pair: four as it was; under `level` four keys and one that is split.
    assert seconds == pytest.approx({"own": 4.0, "key": 34.0, "level": 35.0})
