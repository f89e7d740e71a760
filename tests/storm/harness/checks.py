"""What must hold after a case, and what a job may say when it fails."""

import re

from tests.storm.harness.counts import Counts, StormError
from tests.storm.harness.reading import compared
from tests.storm.harness.stage import Stage

_TRACE = re.compile(r"Traceback \(most recent call last\)|^\s+at [\w.$]+\(", re.MULTILINE)


def check(stage: Stage, counts: Counts) -> None:
    """Compare with the oracle; StormError if anything differs."""
    wrong = compared(stage)
    if wrong:
        raise StormError(f"{stage.world}: " + "\n  ".join(wrong))
    counts.outcomes["exact"] += 1


def check_text(text: str) -> None:
    """No stack trace may be in it."""
    if _TRACE.search(text):
        raise StormError(f"a stack trace instead of a line: {text[:2000]}")
