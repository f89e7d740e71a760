"""What the generators of documentation share: write the page, or check that it is fresh."""

import sys
from collections.abc import Callable
from pathlib import Path


def keep(words: list[str], place: Path, page: Callable[[], str], module: str) -> int:
    """Write the page, or with `--check` compare it; the exit code."""
    command = f"python -m {module}"
    if words == ["--check"]:
        if not place.is_file() or place.read_text("utf-8") != page():
            print(f"{place}: not fresh; run {command}", file=sys.stderr)
            return 1
        return 0
    if words:
        print(f"usage: {command} [--check]", file=sys.stderr)
        return 2
    place.write_text(page(), "utf-8")
    return 0
