"""The list of rules, and what a rule yields.

What an operator or a sink asks of other sections is a method beside its fields:

    @agrees_with("window")
    def top_needs_a_window(self, window): ...
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from unskew.config.problems.problem import Path

Rule = Callable[..., Iterator["Contradiction"]]
_NEEDS = "_agrees_with"
RULES: list[tuple[tuple[str, ...], Rule]] = []


@dataclass(frozen=True)
class Contradiction:
    """Fields that do not fit together: reported at `path`; the text names the other field."""

    path: Path
    rule: str
    suggestion: str


def rule(*needs: str) -> Callable[[Rule], Rule]:
    """Register a rule that is called with the sections `needs`."""

    def register(function: Rule) -> Rule:
        RULES.append((needs, function))
        return function

    return register


def agrees_with(*needs: str) -> Callable[[Rule], Rule]:
    """Mark a section's method that is called with the sections `needs`; paths begin at its own."""

    def mark(method: Rule) -> Rule:
        setattr(method, _NEEDS, needs)
        return method

    return mark


def find_own_contradictions(
    section: Any, path: Path, sections: Mapping[str, Any]
) -> Iterator[Contradiction]:
    """The contradictions that the marked methods of one section yield."""
    for name, method in inspect.getmembers_static(type(section), inspect.isfunction):
        needs = getattr(method, _NEEDS, None)
        if needs is not None and all(other in sections for other in needs):
            for wrong in getattr(section, name)(*(sections[other] for other in needs)):
                yield replace(wrong, path=(*path, *wrong.path))


def is_given(section: Any, name: str) -> bool:
    """Has `section` this field, with a value?"""
    return getattr(section, name, None) is not None
