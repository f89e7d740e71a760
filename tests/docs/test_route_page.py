"""docs/route.md, typed in from top to bottom by a user with an empty folder."""

import json
import re
from pathlib import Path

import pytest

from tests.support.blocks import blocks
from tests.support.shell import Shell

CLICKS = 80_000
# What is typed into an interactive Python goes on after an error; a test must not.
_STOP_AT_ERRORS = """\
import os, sys
sys.excepthook = lambda *error: (sys.__excepthook__(*error), sys.stderr.flush(), os._exit(1))
"""
# As typed, but from no package index, and not into the environment that runs the tests.
_INSTALL = "pip install --no-deps --no-build-isolation --no-index --target installed ."


@pytest.mark.spark
@pytest.mark.e2e
@pytest.mark.slow
def test_the_page_from_top_to_bottom(root: Path, tmp_path: Path) -> None:
    page = root / "docs" / "route.md"
    shell = Shell(tmp_path)
    java, *lines = "".join(block.text for block in blocks(page, "sh")).splitlines()
    shell.export(java)
    after = typed_python(page, shell)
    for block in blocks(page):
        if block.name:
            (tmp_path / block.name).write_text(block.text)
    outputs = {line: shell.type(_INSTALL if line == "pip install ." else line) for line in lines}
    assert [line.split()[1] for line in outputs] == COMMANDS
    compare, predict, simulate, _, lint, run, inspect = outputs.values()
    assert "Use " in compare
    assert "Take grouping " in predict
    assert {"key", "level"} <= set(simulate.split())
    assert lint == ""
    assert totals_of("bot", run) == [str(number) for number in after["bot"]]
    check_balance(page, inspect, shell.type("unskew inspect checkpoints/scoring --json"))


COMMANDS = ["compare", "compare", "simulate", "install", "lint", "run", "inspect"]


def typed_python(page: Path, shell: Shell) -> dict[str, list[int]]:
    """Types the page's Python into one interpreter and compares its comments with what came out.

    The totals of each user by the routed stream, which the page itself compares with the other's.
    """
    typed = [block.text for block in blocks(page, "python") if not block.name]
    report = "print(json.dumps([skewed, level, after]))\n"
    # An interpreter that is typed into ends an indented block at an empty line.
    output = shell.type("python -q -i", "\n".join([_STOP_AT_ERRORS, *typed, report]))
    skewed, level, after = json.loads(output.splitlines()[-1])
    mean = CLICKS / 8
    text = page.read_text("utf-8")
    assert re.findall(r"# the fullest has (\S+) times", text) == [f"{max(skewed) / mean:.1f}"]
    assert re.findall(r"# (\S+): no task waits", text) == [f"{max(level) / mean:.1f}"]
    assert sum(clicks for _, clicks in after.values()) == CLICKS
    return dict(after)


def check_balance(page: Path, shown: str, report: str) -> None:
    """`inspect` shows what the page says of it, and every batch was level."""
    ratios = re.findall(r"`max/mean` is (\d\.\d\d\d)\b", page.read_text("utf-8"))
    batches = json.loads(report)["batches"]
    assert len(batches) == 4
    assert {f"{batch['max_over_mean']:.3f}" for batch in batches} == set(ratios)
    assert "max/mean" in shown
    assert ratios[0] in shown.split()


def totals_of(user: str, output: str) -> list[str]:
    """The last row of a user that the console showed."""
    rows = [[cell.strip() for cell in line.split("|")] for line in output.splitlines()]
    return next(row[2:4] for row in reversed(rows) if len(row) > 3 and row[1] == user)
