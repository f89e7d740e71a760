"""What generators of committed files share: write them, or check that they are fresh."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path


def write_or_check(words: list[str], pages: Callable[[], Mapping[Path, str]], command: str) -> int:
    """Write the files, or with `--check` compare them; the exit code."""
    if words not in ([], ["--check"]):
        print(f"usage: {command} [--check]", file=sys.stderr)
        return 2
    stale = 0
    for file, text in pages().items():
        if file.is_file() and file.read_text("utf-8") == text:
            continue
        if words:
            stale += 1
            print(f"{file}: not fresh; run {command}", file=sys.stderr)
        else:
            file.write_text(text, "utf-8")
    return 1 if stale else 0
