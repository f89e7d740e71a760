"""The cost model's constants of this machine, in a file of the user's cache."""

import json
import math
import os
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unskew.config.errors import UsageError
from unskew.grouping.cache import cache_folder
from unskew.grouping.simulation.batch_cost import Constants

FORMAT = 2
_AGAIN = "measure again with unskew calibrate"


@dataclass(frozen=True)
class Calibration:
    """Constants, and what they are of."""

    constants: Constants
    cores: int
    measured: str
    """When, in UTC."""

    @classmethod
    def make_calibration(cls, constants: Constants) -> "Calibration":
        """Make a calibration of constants that were measured just now, here."""
        return cls(constants, os.cpu_count() or 1, f"{datetime.now(UTC):%Y-%m-%d %H:%M}")

    def to_json(self) -> dict[str, Any]:
        """Return the values for the file."""
        return {"format": FORMAT, **asdict(self)}


def find_calibration_file() -> Path:
    """Find the file of this user's calibration, which may not exist."""
    return cache_folder("calibration") / "machine.json"


def write_calibration(calibration: Calibration, file: Path) -> None:
    """Keep it for the commands that predict."""
    part = file.with_name(f".{file.name}.{os.getpid()}")
    part.write_text(json.dumps(calibration.to_json(), indent=2) + "\n")
    part.replace(file)


def read_calibration(file: Path) -> Calibration | None:
    """Read this machine's calibration; None if there is none."""
    try:
        text = file.read_text()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from error
    return _parse(file, text)


def find_calibration() -> Calibration | None:
    """Read this user's calibration as a job does: it does not fail for a file of a cache."""
    try:
        return read_calibration(find_calibration_file())
    except UsageError:
        return None  # of another version, say


def read_constants(file: Path) -> Constants:
    """The constants in a file that must be there."""
    calibration = read_calibration(file)
    if calibration is None:
        raise UsageError(f"{file}: no such file; {_AGAIN}")
    return calibration.constants


def _parse(file: Path, text: str) -> Calibration:
    try:
        content = json.loads(text)
        version, cores, measured = content["format"], int(content["cores"]), content["measured"]
        numbers = {name: float(value) for name, value in content["constants"].items()}
    except (ValueError, KeyError, TypeError, AttributeError):
        version, numbers = None, {}
    known = {each.name for each in fields(Constants)}
    if version != FORMAT or set(numbers) != known or not all(map(_is_time, numbers.values())):
        raise UsageError(f"{file}: is not a calibration of this version; {_AGAIN}")
    return Calibration(Constants(**numbers), cores, str(measured))


def _is_time(value: float) -> bool:
    return math.isfinite(value) and value >= 0
