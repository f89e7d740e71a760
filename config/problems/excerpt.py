"""The line of a file that a problem is about, with a caret below; no secret in it."""

import re
from collections.abc import Iterable, Sequence

from unskew.config.problems.problem import Problem
from unskew.config.types.secrets import find_address_passwords, holds_secret, redact
from unskew.grouping.options.broken_rules import MISSING
from unskew.grouping.options.printed import HIDDEN

WIDTH = 100
LINE_MAX = 1000
"""Longer lines are not shown: they would be searched for secrets, and no one reads them."""
_KEY = re.compile(r"(?<![\w.-])([\w.-]+)[\"']?\s*[:=]\s*(?!\s|$)")
_INDENT = "    "


def make_excerpt(lines: Sequence[str], problem: Problem, hidden: Iterable[str]) -> str:
    """The problem's line and a caret; empty where the file does not have what it is about."""
    if problem.flag or problem.rule == MISSING or not 0 < problem.position.line <= len(lines):
        return ""
    line = lines[problem.position.line - 1]
    if len(line) > LINE_MAX:
        return ""
    name = re.split(r"[\].\[\"]+", problem.path.rstrip('"]'))[-1]
    if holds_secret(name) and name not in line:
        return ""  # the value of a secret, on a line without its key
    before = line[: problem.position.column - 1]
    shown, column = _hide(line, hidden), len(_hide(before, hidden))
    start = max(0, column - WIDTH * 2 // 3) if len(shown) > WIDTH else 0
    cut = _make_printable(shown[start : start + WIDTH]).rstrip()
    caret = " " * (min(column, len(shown)) - start) + "^"
    return f"{_INDENT}{cut}\n{_INDENT}{caret}" if cut else ""


def _hide(line: str, hidden: Iterable[str]) -> str:
    """Hide known secrets, and what follows a key whose value is a secret."""
    for key in _KEY.finditer(line):
        if holds_secret(key[1]) and not line[key.end() :].lstrip("\"'").startswith("${"):
            line = line[: key.end()] + HIDDEN
            break
    return redact(line, {*hidden, *find_address_passwords(line)})


def _make_printable(line: str) -> str:
    # Keep the width, so that the caret stays aligned.
    return "".join(char if char.isprintable() else " " for char in line)
