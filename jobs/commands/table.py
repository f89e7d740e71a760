"""`unskew table clean`: remove the files of a table of Parquet files that no batch committed."""

import argparse
from typing import TYPE_CHECKING

from unskew.config.arguments import checked, choice
from unskew.config.errors import ExternalError
from unskew.config.types.units import Duration

if TYPE_CHECKING:
    from unskew.jobs.sinks.tables.orphans import Orphan

_AGE = "1 day"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Remove the files of a table of Parquet files that are not in the log of Spark's sink: a"
        " batch that was cut off leaves them, and readers that do not go by the log see them. Of a"
        " Delta table, VACUUM does so."
    )
    parser.add_argument("action", metavar="clean", type=choice("clean"), help="what to do: clean")
    parser.add_argument("folder", metavar="FOLDER", help="the table's folder, path or URI")
    parser.add_argument(
        "--older-than",
        metavar="DURATION",
        type=checked(Duration.parse),
        default=_AGE,
        help="leave younger files, which a batch under way may be writing: longer than the longest"
        f" batch (default: {_AGE})",
    )
    parser.add_argument("--dry-run", action="store_true", help="print the files, remove none")


def run(arguments: argparse.Namespace) -> int:
    """Print each file, and how many there are."""
    # Imported here to keep --help fast.
    from unskew.jobs.sinks.tables.orphans import find_orphans, remove  # noqa: PLC0415

    folder, age = arguments.folder, arguments.older_than
    try:
        orphans = find_orphans(folder, age.microseconds / 1e6)
        if not arguments.dry_run:
            remove(folder, orphans)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"table: {folder}: cannot be cleaned: {reason}") from error
    for orphan in orphans:
        print(orphan.name)
    print(_summarize(orphans, dry_run=arguments.dry_run))
    return 0


def _summarize(orphans: "list[Orphan]", *, dry_run: bool) -> str:
    size = sum(orphan.size for orphan in orphans)
    done = "to be removed" if dry_run else "removed"
    return f"{done}: files {len(orphans):,}, bytes {size:,}"
