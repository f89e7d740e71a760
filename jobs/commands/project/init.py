"""`unskew init`: write a small project, a job with an operator of one's own and its samples."""

import argparse
import sys
from pathlib import Path

from unskew.config.errors import UsageError
from unskew.config.shipped import SCHEMA_FILE

TEMPLATE = Path(__file__).parent / "template"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Write a small project: a job, an operator in a Python file beside it, sample records, the"
        " results that they must give, and the schema by which editors check the job. Nothing that"
        " is there is overwritten."
    )
    parser.add_argument(
        "folder", nargs="?", default=".", metavar="DIR", help="where (default: this folder)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the files that are not there; all problems at once."""
    folder = Path(arguments.folder)
    files = {path.name.removesuffix(".txt"): path for path in sorted(TEMPLATE.iterdir())}
    # Its name is in the job's first line: an editor then checks and completes.
    files[SCHEMA_FILE.name] = SCHEMA_FILE
    there = [name for name in files if (folder / name).exists()]
    if there:
        raise UsageError(*(f"init: {folder / name}: exists already" for name in there))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, path in files.items():
            (folder / name).write_bytes(path.read_bytes())
    except OSError as error:
        raise UsageError(f"init: {folder}: {error.strerror}; choose another folder") from None
    for name in files:
        sys.stdout.write(f"{folder / name}\n")
    sys.stdout.write(f"Try it:  unskew test {folder / 'job.yaml'}\n")
    return 0
