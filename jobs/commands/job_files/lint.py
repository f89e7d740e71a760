"""`unskew lint`: every problem of every job file, before anything is started."""

import argparse
import sys

from unskew.config.errors import ExternalError, UsageError
from unskew.config.lint import check

PROBLEMS_FOUND = 2


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.description = (
        "Check job files and print every problem as FILE:LINE:COLUMN: PATH: PROBLEM; SUGGESTION."
        " Exits 2 if there is one, else 0. What only Spark can judge is printed as a warning, which"
        " does not change the exit code. With --against it also says which edits since a start"
        " that made the checkpoint keep it from going on there, and what the others mean."
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a job file, or the name of a shipped job such as word_count",
    )

    parser.add_argument(
        "--against",
        metavar="CHECKPOINT",
        help="the checkpoint, a path or a URI, that the one FILE is to go on from",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print problems and warnings; the exit code says whether there are problems."""
    if arguments.against and len(arguments.files) != 1:
        raise UsageError("lint: --against: compares one FILE with a checkpoint")
    findings = check(arguments.files)
    problems, notes = list(findings.problems), list(findings.warnings)
    if arguments.against and not problems:
        more, restart = _compare(arguments.files[0], arguments.against)
        problems += more
        notes += restart
    for line in (*problems, *notes):
        sys.stdout.write(line + "\n")
    return PROBLEMS_FOUND if problems else 0


def _compare(file: str, checkpoint: str) -> tuple[list[str], list[str]]:
    """What of the job the checkpoint does not take, and what the job's restart there means."""
    # On use: a lint alone must not wait for pyarrow.
    from unskew.config.loader import load_job  # noqa: PLC0415
    from unskew.jobs.checkpoint.identity import compare_identity  # noqa: PLC0415

    job = load_job(file).model_copy(update={"checkpoint": checkpoint})
    try:
        return [], compare_identity(job)
    except ExternalError as error:
        return [f"{file}: {problem}" for problem in error.problems], []
