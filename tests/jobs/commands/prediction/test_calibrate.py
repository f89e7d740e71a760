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
    constants = Constants(fixed_seconds=1.0, read_us=2.0, state_byte_ns=3.0)
    calibration = Calibration(constants, 7, "2026-01-01 00:00")

    write_calibration(calibration, file)

    assert read_calibration(file) == calibration
    assert read_constants(file) == calibration.constants
    assert [path.name for path in tmp_path.iterdir()] == ["machine.json"]


def test_each_constant_is_a_line_of_its_own_with_its_unit() -> None:
    constants = Constants(
        fixed_seconds=0.25,
        read_us=1.5,
        route_us=2.5,
        move_us=3.5,
        pair_us=4.5,
        byte_ns=5.5,
        route_seconds=0.5,
        shuffle_seconds=0.75,
        state_us=6.5,
        state_byte_ns=7.5,
    )

    assert describe(Calibration(constants, 2, "2026-01-01 00:00")) == [
        "fixed          0.25 s a batch",
        "read            1.5 us a record",
        "route           2.5 us a record",
        "move            3.5 us a record",
        "pair            4.5 us a partial result",
        "byte            5.5 ns a byte of it",
        "route           0.5 s a batch",
        "shuffle        0.75 s a batch",
        "state           6.5 us a key",
        "state byte      7.5 ns a byte of its total",
    ]


def write_file(file: Path, **changed: object) -> None:
    content = Calibration(Constants(), 2, "2026-01-01 00:00").to_json()
    file.write_text(json.dumps(content | changed))


OF_BEFORE = {
    "format": 1,
    "constants": {"fixed_seconds": 0.3, "pair_us": 6.0},
}


@pytest.mark.parametrize(
    "changed",
    [
        *(
            {"constants": asdict(Constants()) | {"read_us": value}}
            for value in (-1, float("inf"), "fast", None)
        ),
        {"constants": {"read_us": 1.0}},
        OF_BEFORE,
    ],
)
def test_a_file_that_is_no_calibration_of_this_version_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changed: dict[str, object]
) -> None:
    file = tmp_path / "machine.json"
    write_file(file, **changed)

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
