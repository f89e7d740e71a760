"""Specs of the command line, `name:option=value,option=value`, checked against strict Params.

Values are YAML 1.2 scalars, so `1e-4` is a number and `yes` is a word; a list is `[1,2]`.
"""

import re
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from unskew.grouping.errors import GroupingError
from unskew.grouping.options.broken_rules import list_problems
from unskew.grouping.options.printed import show
from unskew.grouping.options.scalars import ScalarError, resolve
from unskew.grouping.options.suggestions import suggest_nearest

Model = TypeVar("Model", bound=BaseModel)


class SpecError(GroupingError):
    """A spec is wrong: `problems` has a line for each thing to mend."""

    def __init__(self, *problems: str) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def scalar(text: str) -> object:
    """The value of one YAML 1.2 scalar or flow list.

    >>> [scalar(word) for word in ("7", "1e-4", "true", "yes", "[1,2.5]", "'3'")]
    [7, 0.0001, True, 'yes', [1, 2.5], '3']
    """
    text = text.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [scalar(part) for part in _split(text[1:-1])] if text[1:-1].strip() else []
    return resolve(text)


def parse_spec(what: str, text: str) -> tuple[str, dict[str, object]]:
    """The name and the options of `text`; `what` says in errors where it was written.

    >>> parse_spec("trace", "zipf:z=1.4,keys=100")
    ('zipf', {'z': 1.4, 'keys': 100})
    """
    name, _, rest = text.partition(":")
    name = name.strip()
    options: dict[str, object] = {}
    problems = []
    for part in _split(rest) if rest.strip() else []:
        option, equals, value = part.partition("=")
        option = option.strip()
        if not equals or not option:
            problems.append(f"{what} {name}: option=value expected (got {show(part)})")
        elif option in options:
            problems.append(f"{what} {name}.{option}: given twice")
        else:
            try:
                options[option] = scalar(value)
            except ScalarError as error:
                problems.append(f"{what} {name}.{option}: {error.rule}; {error.suggestion}")
    if problems:
        raise SpecError(*problems)
    return name, options


def check_name(what: str, name: str, known: Iterable[str]) -> None:
    """Raise unless `name` is one of `known`."""
    names = list(known)
    if name not in names:
        raise SpecError(f"{what}: unknown {show(name)}; {suggest_nearest(name, names)}")


def check_options(where: str, params: type[Model], options: dict[str, object]) -> Model:
    """`params` made of `options`; a line for every option that is wrong."""
    try:
        return params(**options)
    except ValidationError as error:
        raise SpecError(*list_problems(where, params, error)) from error


def _split(text: str) -> list[str]:
    # At commas, but not at those inside a list.
    return re.split(r",(?![^\[]*\])", text)
