"""What generators of committed files share: write them, or check that they are fresh.

A page of which only a part is generated has that part between `<!-- MARK -->` and `<!-- /MARK -->`.
"""

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
            print(f"{file}: stale; run {command}", file=sys.stderr)
        else:
            file.write_text(text, "utf-8")
    return 1 if stale else 0


def section(page: str, mark: str) -> str:
    """The generated part of a page."""
    _, begin, rest = page.partition(f"<!-- {mark} -->\n")
    text, end, _ = rest.partition(f"<!-- /{mark} -->\n")
    assert begin, f"no <!-- {mark} -->"
    assert end, f"no <!-- /{mark} -->"
    return text


def with_section(page: str, mark: str, text: str) -> str:
    """The page with another generated part."""
    old = f"<!-- {mark} -->\n{section(page, mark)}<!-- /{mark} -->\n"
    return page.replace(old, f"<!-- {mark} -->\n{text}<!-- /{mark} -->\n")
