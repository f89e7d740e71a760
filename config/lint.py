"""Checks many job files, each by itself and all together."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import NamedTuple

from unskew.config.loader import Loaded, load, load_text
from unskew.config.models.job import Job
from unskew.config.problems import messages
from unskew.config.problems.excerpt import make_excerpt
from unskew.config.problems.problem import (
    DocumentError,
    Path,
    Position,
    Problem,
    format_path,
    in_order,
)
from unskew.config.rules.folders import normal
from unskew.config.types.secrets import redact
from unskew.config.yaml.reader import FILE_BYTES_MAX, decode_text
from unskew.grouping.options.printed import show

STDIN = "-"
_ENDINGS = (".yaml", ".yml")
_ENVIRONMENT = "pyvenv.cfg"
"""A folder that has it is a virtual environment, whose packages have YAML of their own."""
# What two jobs must not share, and why.
_SHARED: list[tuple[Path, Callable[[Job], str], str]] = [
    (("name",), lambda job: job.name, "their metrics and logs would mix"),
    (("checkpoint",), lambda job: normal(job.checkpoint), "each job needs its own"),
]


class Finding(NamedTuple):
    """A problem or a warning as it is printed, and where it is in the file."""

    line: str
    excerpt: str = ""
    """The line of the file, and a caret below it."""


@dataclass(frozen=True)
class Checked:
    """A file, checked: its problems, warnings and job."""

    file: str
    job: Job | None
    problems: list[Finding]
    warnings: list[Finding]


class Findings(NamedTuple):
    """The printed lines for some files, sorted by file and position."""

    problems: list[str]
    warnings: list[str]


def lint(files: Sequence[str]) -> list[str]:
    """Every problem of every file as a printed line."""
    return check(files).problems


def check(files: Sequence[str]) -> Findings:
    """Every problem and every warning."""
    checked = examine(files)
    return Findings(
        [finding.line for each in checked for finding in each.problems],
        [finding.line for each in checked for finding in each.warnings],
    )


def examine(files: Sequence[str]) -> list[Checked]:
    """Check each file, each file of a folder, and with `-` what is on standard input."""
    names = dict.fromkeys(name for given in files for name in _list_files(given))
    loaded = [_load(name) for name in sorted(names)]
    _find_shared(loaded)
    return [
        Checked(each.file, each.job, _find(each, each.problems), _find(each, each.warnings))
        for each in loaded
    ]


def _list_files(given: str) -> list[str]:
    """The files of a folder and of those in it; what else was given is one itself."""
    folder = FilePath(given)
    if given == STDIN or not _is_folder(folder):
        return [given]
    return list(_walk(folder)) or [given]


def _walk(folder: FilePath) -> Iterator[str]:
    """The YAML files in a folder, but for what tools keep in hidden folders and environments."""
    for inner, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if _is_of_jobs(FilePath(inner, name))]
        yield from (str(FilePath(inner, name)) for name in names if name.endswith(_ENDINGS))


def _is_of_jobs(folder: FilePath) -> bool:
    return not folder.name.startswith(".") and not (folder / _ENVIRONMENT).exists()


def _is_folder(path: FilePath) -> bool:
    try:
        return path.is_dir()
    except OSError:  # a name that no file can have: reading it says why
        return False


def _load(name: str) -> Loaded:
    if name != STDIN:
        return load(name)
    try:
        return load_text(decode_text(sys.stdin.buffer.read(FILE_BYTES_MAX + 1)), "<stdin>")
    except DocumentError as error:
        return Loaded("<stdin>", problems=list(error.problems))


def _find(loaded: Loaded, problems: list[Problem]) -> list[Finding]:
    findings, lines = {}, loaded.text.splitlines()
    for problem in in_order(problems):
        line = redact(problem.line(loaded.file), loaded.hidden)
        findings[line] = Finding(line, make_excerpt(lines, problem, loaded.hidden))
    return list(findings.values())


def _find_shared(loaded: list[Loaded]) -> None:
    for path, value_of, why in _SHARED:
        first_of: dict[str, Loaded] = {}
        for each in loaded:
            if each.job is None or each.root is None:
                continue
            value = value_of(each.job)
            first = first_of.setdefault(value, each)
            if first is not each:
                position: Position = messages.find(each.root, path)[1]
                rule = f"{show(value)} is also in {first.file}: {why}"
                each.problems.append(
                    Problem(position, format_path(path), rule, "change one of them")
                )
