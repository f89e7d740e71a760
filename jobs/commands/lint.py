"""`unskew lint`: every problem of every job file, before anything is started."""

import argparse
import sys

from unskew.config.lint import lint

PROBLEMS_FOUND = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.description = (
        "Check job files and print every problem as FILE:LINE:COLUMN: PATH: PROBLEM; SUGGESTION."
        " Prints nothing and exits 0 when all is well, exits 2 otherwise."
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a job file, or the name of a shipped job such as word_count",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the problems; whether there are any."""
    lines = lint(arguments.files)
    for line in lines:
        sys.stdout.write(line + "\n")
    return PROBLEMS_FOUND if lines else 0
