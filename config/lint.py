"""Checks many job files, each by itself and all together."""

from collections.abc import Callable, Sequence

from unskew.config.loader import Loaded, load
from unskew.config.models.job import Job
from unskew.config.problems import messages
from unskew.config.problems.problem import Path, Problem, dotted
from unskew.config.rules.places import clean
from unskew.grouping.options.printed import show

# What two jobs must not share, and why.
_SHARED: list[tuple[Path, Callable[[Job], str], str]] = [
    (("name",), lambda job: job.name, "their metrics and logs would mix"),
    (("checkpoint",), lambda job: clean(job.checkpoint), "each job needs its own"),
]


def lint(files: Sequence[str]) -> list[str]:
    """Every problem of every file as a printed line, by file and place."""
    loaded = [load(file) for file in sorted(set(files))]
    _find_shared(loaded)
    return [line for one in loaded for line in one.lines()]


def _find_shared(loaded: list[Loaded]) -> None:
    for path, value_of, why in _SHARED:
        first_of: dict[str, Loaded] = {}
        for one in loaded:
            if one.job is None or one.root is None:
                continue
            value = value_of(one.job)
            first = first_of.setdefault(value, one)
            if first is not one:
                _, position = messages.find(one.root, path)
                rule = f"{show(value)} is also in {first.file}: {why}"
                one.problems.append(Problem(position, dotted(path), rule, "change one of them"))
