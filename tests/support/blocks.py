"""What the documentation's pages hold: code blocks by heading, headings, links."""

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(```+)(\w*) ?([\w.]*)\s*$")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")


@dataclass(frozen=True)
class Block:
    """A fenced block of code, the file it is to be, and the heading it stands under."""

    heading: str
    language: str
    name: str
    text: str
    line: int


def blocks(page: Path, language: str = "", under: str = "") -> list[Block]:
    """The page's blocks, perhaps only those of one language or under one heading."""
    all_blocks, heading = [], ""
    fence, kind, name, start = "", "", "", 0
    lines: list[str] = []
    for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
        match = _FENCE.match(line)
        if fence and line.startswith(fence):
            all_blocks.append(Block(heading, kind, name, "\n".join(lines) + "\n", start))
            fence = ""
        elif fence:
            lines.append(line)
        elif match:
            fence, kind, name = match.groups()
            lines, start = [], number
        elif title := _HEADING.match(line):
            heading = title.group(2)
    assert not fence, f"{page}:{start}: this block does not end"
    return [
        block
        for block in all_blocks
        if language in ("", block.language) and under in ("", block.heading)
    ]


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    kept, fence = [], ""
    for line in page.read_text("utf-8").splitlines():
        match = _FENCE.match(line)
        if fence:
            fence = "" if line.startswith(fence) else fence
        elif match:
            fence = match.group(1)
        else:
            kept.append(line)
    return "\n".join(kept)
