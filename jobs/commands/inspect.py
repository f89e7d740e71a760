"""`unskew inspect`: print the figures in a checkpoint's journal, whether the job runs or not."""

import argparse
import importlib.util
import json
import sys

from unskew.config.arguments import parse_whole_number
from unskew.config.errors import ExternalError

_BATCHES_MAX = 1_000_000_000


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Show batches, load of each partition, imbalance, hot keys and sizes from the journal in a"
        " job's checkpoint. Neither Spark nor the job needs to run. The journal keeps the newest"
        " batches only."
    )
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="the job's checkpoint, path or URI"
    )
    parser.add_argument(
        "--batches",
        type=parse_whole_number(1, _BATCHES_MAX),
        metavar="N",
        help="only the newest N batches",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument("--plot", metavar="FILE.png", help="draw load and balance into a file")


def run(arguments: argparse.Namespace) -> int:
    """Print, or draw, the batches that the checkpoint has."""
    if arguments.plot and importlib.util.find_spec("matplotlib") is None:
        raise ExternalError("inspect: --plot needs matplotlib: install unskew[plot]")
    # Imported here to keep --help fast.
    from unskew.jobs.observe import inspection_output as output  # noqa: PLC0415
    from unskew.jobs.observe.inspection import inspect  # noqa: PLC0415

    inspection = inspect(arguments.checkpoint, arguments.batches)
    if arguments.plot:
        try:
            output.draw(arguments.plot, inspection)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ExternalError(f"inspect: --plot {arguments.plot}: {reason}") from error
    if arguments.json:
        sys.stdout.write(json.dumps(inspection.data(), indent=2) + "\n")
    else:
        output.print_tables(inspection)
    return 0
