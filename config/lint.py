"""Checks many job files, each by itself and all together."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from unskew.config.loader import Loaded, load
from unskew.config.models.job import Job
from unskew.config.problems import messages
from unskew.config.problems.problem import Path, Problem, dotted
from unskew.config.rules.folders import normal
from unskew.grouping.options.printed import show

# What two jobs must not share, and why.
_SHARED: list[tuple[Path, Callable[[Job], str], str]] = [
    (("name",), lambda job: job.name, "their metrics and logs would mix"),
    (("checkpoint",), lambda job: normal(job.checkpoint), "each job needs its own"),
]


class Findings(NamedTuple):
    """The printed lines for some files, sorted by file and position."""

    problems: list[str]
    warnings: list[str]


def lint(files: Sequence[str]) -> list[str]:
    """Every problem of every file as a printed line."""
    return check(files).problems


def check(files: Sequence[str]) -> Findings:
    """Every problem and every warning."""
    loaded = [load(file) for file in sorted(set(files))]
    _find_shared(loaded)
    return Findings(
        [line for each in loaded for line in each.lines()],
        [line for each in loaded for line in each.warning_lines()],
    )


def _find_shared(loaded: list[Loaded]) -> None:
    for path, value_of, why in _SHARED:
        first_of: dict[str, Loaded] = {}
        for each in loaded:
            if each.job is None or each.root is None:
                continue
            value = value_of(each.job)
            first = first_of.setdefault(value, each)
            if first is not each:
                _, position = messages.find(each.root, path)
                rule = f"{show(value)} is also in {first.file}: {why}"
                each.problems.append(Problem(position, dotted(path), rule, "change one of them"))
