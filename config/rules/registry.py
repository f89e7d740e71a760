"""The list of rules, and what a rule yields."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from unskew.config.problems.problem import Path

Rule = Callable[..., Iterator["Contradiction"]]
RULES: list[tuple[tuple[str, ...], Rule]] = []


@dataclass(frozen=True)
class Contradiction:
    """Shown at `path`; its text names the other field."""

    path: Path
    rule: str
    suggestion: str


def rule(*needs: str) -> Callable[[Rule], Rule]:
    """Register a rule that is called with the sections `needs`."""

    def register(function: Rule) -> Rule:
        RULES.append((needs, function))
        return function

    return register


def given(section: Any, name: str) -> bool:
    """Has `section` this field, with a value?"""
    return getattr(section, name, None) is not None
