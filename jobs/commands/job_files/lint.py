"""`unskew lint`: every problem of every job file, before anything is started."""

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from typing import TextIO

from unskew.config.errors import ExternalError, UsageError
from unskew.config.lint import Checked, Finding, examine
from unskew.config.models.job import Job

EXIT_PROBLEMS = 2
_RED, _YELLOW, _GREEN, _DIM = "31;1", "33;1", "32;1", "2"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Check job files and print every problem as FILE:LINE:COLUMN: PATH: PROBLEM; SUGGESTION,"
        " with the line of the file below it; and on standard error what was checked."
        " Exits 2 if there is one, else 0. What only Spark can judge is printed as a warning, which"
        " does not change the exit code. With --against it also says which edits since a start"
        " that made the checkpoint keep it from going on there, and what the others mean."
    )
    parser.add_argument(
        "files",
        nargs="+",
        metavar="FILE",
        help="a job file, a folder with YAML files in it, the name of a shipped job such as"
        " word_count, or - for standard input",
    )

    parser.add_argument(
        "--against",
        metavar="CHECKPOINT",
        help="the checkpoint, a path or a URI, that the one FILE is to go on from",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print problems, warnings and what was checked; the exit code says if there are problems."""
    if arguments.against and len(arguments.files) != 1:
        raise UsageError("lint: --against: compares one FILE with a checkpoint")
    checked = examine(arguments.files)
    if arguments.against and len(checked) != 1:
        of = f"{len(checked)} of them are in {arguments.files[0]}"
        raise UsageError(f"lint: --against: compares one FILE with a checkpoint; {of}")
    problems = [finding for each in checked for finding in each.problems]
    notes = [finding for each in checked for finding in each.warnings]
    if arguments.against and not problems:
        more, restart = _compare(checked[0], arguments.against)
        problems += [Finding(line) for line in more]
        notes += [Finding(line) for line in restart]
    _print_findings(problems, _RED)
    _print_findings(notes, _YELLOW)
    for line in _describe(checked, len(problems)):
        print(line, file=sys.stderr)
    return EXIT_PROBLEMS if problems else 0


def _print_findings(findings: Iterable[Finding], colour: str) -> None:
    for line, excerpt in findings:
        print(_paint(line, colour))
        if excerpt:
            source, _, caret = excerpt.rpartition("\n")
            print(f"{_paint(source, _DIM)}\n{_paint(caret, colour)}")


def _describe(checked: list[Checked], problems: int) -> Iterator[str]:
    """Describe what was checked: a line for a job that is right, and the number of files."""
    for each in checked:
        if each.job is not None and not each.problems:
            ok = _paint("ok", _GREEN, sys.stderr)
            yield f"{ok} {each.file}: {describe_job(each.job)}"
    if problems:
        of = "1 file" if len(checked) == 1 else f"{len(checked)} files"
        yield f"{of} checked: {problems} problem{'s' if problems > 1 else ''}"


def describe_job(job: Job) -> str:
    """A job in a few words, from source to sinks."""
    sinks = ", ".join(sink.type for sink in job.sinks)
    return (
        f"job {job.name}: {job.source.type} -> {job.operator.type} by {job.grouping.type} over"
        f" {job.partitions} partition{'s' if job.partitions > 1 else ''} -> {sinks}"
    )


def _paint(text: str, colour: str, out: TextIO | None = None) -> str:
    """Colour the text on a terminal, unless NO_COLOR is set."""
    if not (out or sys.stdout).isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{colour}m{text}\x1b[0m"


def _compare(checked: Checked, checkpoint: str) -> tuple[list[str], list[str]]:
    """Problems that keep the job from continuing at the checkpoint, and notes on its restart."""
    # Imported here: lint alone loads no pyarrow.
    from unskew.jobs.checkpoint.identity import compare_identity  # noqa: PLC0415

    assert checked.job is not None, "a file without problems makes a job"
    job = checked.job.model_copy(update={"checkpoint": checkpoint})
    try:
        return [], compare_identity(job)
    except ExternalError as error:
        return [f"{checked.file}: {problem}" for problem in error.problems], []
