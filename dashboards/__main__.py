"""Writes the dashboards as JSON beside this file: `python -m dashboards [--check]`."""

import sys
from pathlib import Path

from dashboards import overview, partitions
from dashboards.common import OVERVIEW_UID, PARTITIONS_UID, text_of
from docs.reference.write_or_check import write_or_check

FOLDER = Path(__file__).resolve().parent


def pages() -> dict[Path, str]:
    """Every dashboard's file and text."""
    dashboards = {OVERVIEW_UID: overview.page(), PARTITIONS_UID: partitions.page()}
    return {FOLDER / f"{uid}.json": text_of(built) for uid, built in dashboards.items()}


def main(words: list[str]) -> int:
    """Write the files, or check that they are fresh."""
    return write_or_check(words, pages, "python -m dashboards")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
