"""`unskew lint`: every problem of every job file, before anything is started."""

import argparse
import sys

from unskew.config.lint import check

PROBLEMS_FOUND = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.description = (
        "Check job files and print every problem as FILE:LINE:COLUMN: PATH: PROBLEM; SUGGESTION."
        " Exits 2 if there is one, else 0. What only Spark can judge is printed as a warning, which"
        " does not change the exit code."
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a job file, or the name of a shipped job such as word_count",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print problems and warnings; the exit code says whether there are problems."""
    findings = check(arguments.files)
    for line in (*findings.problems, *findings.warnings):
        sys.stdout.write(line + "\n")
    return PROBLEMS_FOUND if findings.problems else 0
