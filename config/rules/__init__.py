"""Fields that are right by themselves and wrong together.

Each rule names the sections it reads and is run when those are valid, so that a mistake in one
section does not hide a contradiction between two others.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from unskew.config.problems.problem import Path
from unskew.config.rules import columns, folders, kafka, master, results, routing, targets
from unskew.config.rules.registry import RULES, Contradiction, find_own_contradictions
from unskew.config.specs import SECTIONS

__all__ = ["Contradiction", "contradictions"]

# Importing these modules registers their rules.
_MODULES = (columns, folders, kafka, master, results, routing, targets)


def contradictions(sections: Mapping[str, Any]) -> Iterator[Contradiction]:
    """All contradictions between the given (valid) sections of a job."""
    for needs, rule in RULES:
        if all(name in sections for name in needs):
            yield from rule(*(sections[name] for name in needs))
    for path, section in _of_types(sections):
        yield from find_own_contradictions(section, path, sections)


def _of_types(sections: Mapping[str, Any]) -> Iterator[tuple[Path, Any]]:
    """The sections whose type says what they must agree with, and where they stand."""
    for name in SECTIONS:
        section = sections.get(name)
        if isinstance(section, list):
            yield from (((name, index), entry) for index, entry in enumerate(section))
        elif section is not None:
            yield (name,), section
