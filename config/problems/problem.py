"""A problem of a job file: where it is, what is wrong, what to do; and how these are printed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

Part = str | int
Path = tuple[Part, ...]

SHOWN_LENGTH_MAX = 60


class Position(NamedTuple):
    """A place in a file, counted from one as editors do."""

    line: int
    column: int


@dataclass(frozen=True)
class Problem:
    """One line of `unskew lint`, still without its file."""

    position: Position
    path: str
    rule: str
    suggestion: str = ""

    def line(self, file: str) -> str:
        """`file:line:col: path: problem; suggestion`."""
        advice = f"; {self.suggestion}" if self.suggestion else ""
        text = f"{self.path}: {self.rule}{advice}"
        return f"{_one_line(file)}:{self.position.line}:{self.position.column}: {_one_line(text)}"


class DocumentError(Exception):
    """A file of which nothing can be read as a job; it has exactly these problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems)
        self.problems = problems


def lines(file: str, problems: Iterable[Problem]) -> list[str]:
    """The printed problems of one file, in the order of their places, each once."""
    ordered = sorted(problems, key=lambda one: (one.position, one.path, one.rule, one.suggestion))
    return list(dict.fromkeys(problem.line(file) for problem in ordered))


def dotted(path: Sequence[Part]) -> str:
    """`sinks[0].topic`; the whole document is `job`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").isalnum():
            text += f".{part}" if text else part
        else:
            text += f"[{show(part)}]"
    return text or "job"


def show(value: object) -> str:
    """A value as a message shows it: short, on one line, as YAML would write it."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = f'"{value}"' if isinstance(value, str) else f"{value}".removesuffix(".0")
    text = _one_line(text)
    return text if len(text) <= SHOWN_LENGTH_MAX else text[: SHOWN_LENGTH_MAX - 3] + "..."


def _one_line(text: str) -> str:
    """Control characters escaped: a message is one line and cannot drive a terminal."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text
    )
