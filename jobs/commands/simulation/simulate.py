"""`unskew simulate`: route a trace with groupings; balance, state and time of each."""

import argparse
import json

from unskew.grouping.registry import GROUPINGS
from unskew.jobs.commands.simulation.options import add_options, read_options
from unskew.jobs.commands.simulation.output import draw, print_table, run_all


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--grouping",
        action="append",
        metavar="SPEC",
        help=f"name:option=value,... with a name of: {', '.join(GROUPINGS)}; may repeat",
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print one row, or one JSON object, a grouping."""
    experiment = read_options(arguments, arguments.grouping or [])
    reports = run_all(experiment)
    if arguments.json:
        print(json.dumps([report.to_dict() for report in reports], indent=2))
    else:
        print_table(experiment, reports)
    if arguments.plot:
        draw(arguments.plot, experiment, reports)
    return 0
