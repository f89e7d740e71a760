"""`unskew calibrate`: constants of this machine, in a file that `compare` reads."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest

from unskew.grouping.simulation.batch_cost import Constants
from unskew.jobs.__main__ import main
from unskew.jobs.commands.local.calibrate import describe
from unskew.jobs.local.machine_constants import (
    Calibration,
    read_calibration,
    read_constants,
    write_calibration,
)


def test_constants_are_read_as_they_were_written(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    assert read_calibration(file) is None
    calibration = Calibration(Constants(1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 7, "2026-01-01 00:00")

    write_calibration(calibration, file)

    assert read_calibration(file) == calibration
    assert read_constants(file) == calibration.constants
    assert [path.name for path in tmp_path.iterdir()] == ["machine.json"]


def test_a_constant_that_an_older_version_did_not_measure_has_its_default(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    content = Calibration(Constants(fixed_seconds=1.0), 7, "2026-01-01 00:00").to_json()
    del content["constants"]["shuffle_seconds"]
    file.write_text(json.dumps(content))

    assert read_constants(file) == Constants(fixed_seconds=1.0)


def test_each_constant_is_a_line_of_its_own_with_its_unit() -> None:
    lines = describe(Calibration(Constants(fixed_seconds=0.25), 2, "2026-01-01 00:00"))

    assert lines[0] == "fixed          0.25 s a batch"
    assert len(set(lines)) == len(lines) == len(asdict(Constants()))


@pytest.mark.parametrize("value", ["-1", "1e999", '"fast"', "null"])
def test_a_file_that_is_no_calibration_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], value: str
) -> None:
    file = tmp_path / "machine.json"
    write_calibration(Calibration(Constants(), 2, "2026-01-01 00:00"), file)
    file.write_text(file.read_text().replace("0.33", value))

    asked = ("--file", "a", "--partitions", "4", "--cost", "1us", "--constants", str(file))
    assert main(["compare", *asked]) == 2

    expected = (
        f"{file}: is not a calibration of this version; measure again with unskew calibrate\n"
    )
    assert capsys.readouterr().err == expected


def test_a_folder_that_is_not_there_is_said_before_anything_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["calibrate", "--output", "/no/such/machine.json"]) == 2
    assert capsys.readouterr().err == "--output: /no/such: no such folder\n"


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.long
def test_this_machine_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "machine.json"
    words = ("-m", "unskew", "calibrate", "--json", "--output", str(file))
    printed = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True)

    content = json.loads(printed.stdout)
    constants = asdict(read_constants(file))
    assert content["constants"] == constants
    assert constants["fixed_seconds"] > 0
    assert constants["read_us"] + constants["pair_us"] > 0
