"""A problem of a job file: position, broken rule, suggestion; and how it is printed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from unskew.grouping.options.printed import escape_line, show
from unskew.grouping.options.suggestions import add_suggestion

Part = str | int
Path = tuple[Part, ...]


class Position(NamedTuple):
    """A line and a column of a file, counted from one as editors do."""

    line: int
    column: int


@dataclass(frozen=True)
class Problem:
    """One line of `unskew lint`, still without its file."""

    position: Position
    path: str
    rule: str
    suggestion: str = ""
    flag: str = ""
    """The option of the command line that brought the value, if the file did not."""

    def line(self, file: str) -> str:
        """`file:line:col: path: problem; suggestion`."""
        text = f"{self.path}: {add_suggestion(self.rule, self.suggestion)}"
        if self.flag:
            return f"{self.flag} {escape_line(text)}"
        return (
            f"{escape_line(file)}:{self.position.line}:{self.position.column}: {escape_line(text)}"
        )


class DocumentError(Exception):
    """A file of which nothing can be read as a job; it has exactly these problems."""

    def __init__(self, *problems: Problem) -> None:
        super().__init__(problems)
        self.problems = problems


def lines(file: str, problems: Iterable[Problem]) -> list[str]:
    """The printed problems of one file, in the order of their positions, each once."""
    return list(dict.fromkeys(problem.line(file) for problem in in_order(problems)))


def in_order(problems: Iterable[Problem]) -> list[Problem]:
    """The problems by their positions in the file."""
    return sorted(
        problems,
        key=lambda problem: (problem.position, problem.path, problem.rule, problem.suggestion),
    )


def format_path(path: Sequence[Part]) -> str:
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
