"""`unskew schema`: the JSON schema of job files, for editors."""

import argparse
import sys
from pathlib import Path

from unskew.config.errors import ExternalError, UnskewError
from unskew.config.json_schema import is_schema_fresh, write_schema
from unskew.config.shipped import SCHEMA_FILE


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = "Write the JSON schema of job files, for editors and other checkers."
    parser.add_argument("--output", metavar="FILE", help="write to FILE instead of the terminal")
    parser.add_argument(
        "--installed",
        action="store_true",
        help="include the options of operators and sinks that other installed packages bring",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="write nothing; exit 1 if the schema that ships is stale",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write, or check, the schema."""
    if arguments.check:
        if not is_schema_fresh():
            raise UnskewError(f"{SCHEMA_FILE}: stale; run unskew schema --output {SCHEMA_FILE}")
        return 0
    text = write_schema(installed=arguments.installed)
    if not arguments.output:
        sys.stdout.write(text)
        return 0
    try:
        Path(arguments.output).write_text(text, "utf-8")
    except OSError as error:
        raise ExternalError(f"{arguments.output}: cannot be written: {error.strerror}") from None
    return 0
