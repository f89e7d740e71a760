"""Writes the dashboards as JSON beside this file: `python -m dashboards [--check]`."""

import sys
from pathlib import Path

from dashboards import overview, partitions
from dashboards.common import OVERVIEW_UID, PARTITIONS_UID, text_of

FOLDER = Path(__file__).resolve().parent
COMMAND = "python -m dashboards"


def pages() -> dict[str, str]:
    """Every dashboard's text, by the name of its file."""
    built = {OVERVIEW_UID: overview.page(), PARTITIONS_UID: partitions.page()}
    return {f"{uid}.json": text_of(one) for uid, one in built.items()}


def main(words: list[str]) -> int:
    """Write the files, or check that they are fresh."""
    if words not in ([], ["--check"]):
        print(f"usage: {COMMAND} [--check]", file=sys.stderr)
        return 2
    stale = 0
    for name, text in pages().items():
        file = FOLDER / name
        if file.is_file() and file.read_text("utf-8") == text:
            continue
        if words:
            stale += 1
            print(f"{file}: not fresh; run {COMMAND}", file=sys.stderr)
        else:
            file.write_text(text, "utf-8")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
