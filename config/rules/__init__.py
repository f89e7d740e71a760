"""Fields that are right by themselves and wrong together.

Each rule names the sections it reads and is run when those are valid, so that a mistake in one
section does not hide a contradiction between two others.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from unskew.config.rules import columns, kafka, places, results, routing
from unskew.config.rules.registry import RULES, Contradiction

__all__ = ["Contradiction", "contradictions"]

# Importing these modules registers their rules.
_MODULES = (columns, kafka, places, results, routing)


def contradictions(sections: Mapping[str, Any]) -> Iterator[Contradiction]:
    """All contradictions between the given (valid) sections of a job."""
    for needs, rule in RULES:
        if all(name in sections for name in needs):
            yield from rule(*(sections[name] for name in needs))
