"""Pictures, the live page and reports are drawn in the colours of one palette."""

import re
from pathlib import Path

from unskew.jobs.observe.page.palette import DARK, LIGHT

COLOUR = re.compile(r"#[0-9a-fA-F]{3}(?:[0-9a-fA-F]{3})?\b")


def colours_in(paths: list[Path]) -> dict[str, str]:
    return {colour: path.name for path in paths for colour in COLOUR.findall(path.read_text())}


def test_the_docs_pictures_have_the_light_colours(root: Path) -> None:
    pictures = [*(root / "docs").rglob("*.svg")]
    assert len(pictures) > 20
    drawn = colours_in(pictures)
    assert {colour: name for colour, name in drawn.items() if colour not in LIGHT.values()} == {}
    assert set(drawn) >= {LIGHT["routed"], LIGHT["key"], LIGHT["read"]}


def test_nothing_that_draws_has_colours_of_its_own(root: Path) -> None:
    files = [
        path
        for room in ("jobs", "benchmarks")
        for ending in ("py", "js", "css", "html")
        for path in (root / room).rglob(f"*.{ending}")
        if path.name != "palette.py"
    ]
    known = {*LIGHT.values(), *DARK.values()}
    assert {c: name for c, name in colours_in(files).items() if c.lower() not in known} == {}
