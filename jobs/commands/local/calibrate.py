"""`unskew calibrate`: measure this machine's constants of the cost model, for `compare`."""

import argparse
import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from unskew.config.errors import ExternalError, UsageError

if TYPE_CHECKING:
    from unskew.jobs.local.machine_constants import Calibration

_BUSY_SHARE = 0.5
"""With more load than this part of the cores, a batch waits for others."""
_UNITS = {
    "fixed_seconds": "s a batch",
    "route_seconds": "s a batch",
    "shuffle_seconds": "s a batch",
    "read_us": "us a record",
    "route_us": "us a record",
    "move_us": "us a record",
    "pair_us": "us a partial result",
    "byte_ns": "ns a byte of it",
    "state_us": "us a key",
    "state_byte_ns": "ns a byte of its total",
}


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Measure what a batch costs on this machine beside an operator's work (reading, routing,"
        " moving, merging), with small jobs on a local Kafka and Spark: about a minute."
        " `unskew compare` uses these constants. A cluster has others: take these as a first"
        " guess there. Exit codes: 0 measured, 1 Kafka or Spark did not start, 2 the command line"
        " is wrong."
    )
    parser.epilog = "example: unskew calibrate && unskew compare --file keys.txt --cost 50us ..."
    parser.add_argument(
        "--output", metavar="FILE", help="write the constants to FILE, not to this user's own file"
    )
    parser.add_argument("--json", action="store_true", help="print the constants as JSON")


def run(arguments: argparse.Namespace) -> int:
    """Measure, keep and print."""
    output = None if arguments.output is None else Path(arguments.output)
    if output is not None and not output.absolute().parent.is_dir():
        raise UsageError(f"--output: {output.parent}: no such folder")
    # Imported here to keep --help fast.
    from unskew.jobs.commands.run import quiet_spark  # noqa: PLC0415
    from unskew.jobs.engine.calibration_runs import measure_constants  # noqa: PLC0415
    from unskew.jobs.local import machine_constants  # noqa: PLC0415

    _warn_if_busy()
    quiet_spark(debug=arguments.debug)
    constants = measure_constants(_report)
    calibration = machine_constants.Calibration.make_calibration(constants)
    file = output or machine_constants.find_calibration_file()
    try:
        machine_constants.write_calibration(calibration, file)
    except OSError as error:
        raise ExternalError(f"calibrate: {file}: {error.strerror}") from error
    if arguments.json:
        print(json.dumps(calibration.to_json(), indent=2))
    else:
        print(*describe(calibration), f"written to {file}", sep="\n")
    return 0


def _warn_if_busy() -> None:
    load, cores = os.getloadavg()[0], os.cpu_count() or 1
    if load > _BUSY_SHARE * cores:
        _report(
            f"the machine is busy (load {load:.1f} on {cores} cores), so that the constants will be"
            " too large; measure again when it is quiet"
        )


def describe(calibration: "Calibration") -> list[str]:
    """Describe each constant in a line."""
    lines = []
    for name, value in asdict(calibration.constants).items():
        constant = name.rpartition("_")[0].replace("_", " ")
        lines.append(f"{constant:10} {value:8.3g} {_UNITS[name]}")
    return lines


def _report(line: str) -> None:
    print(f"calibrate: {line}", file=sys.stderr, flush=True)
