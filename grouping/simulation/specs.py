"""Specs of the command line, `name:option=value,option=value`, checked against strict Params.

Values are YAML 1.2 scalars, so `1e-4` is a number and `yes` is a word; a list is `[1,2]`.
"""

import difflib
import re
from collections.abc import Iterable
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from unskew.grouping.errors import GroupingError

Model = TypeVar("Model", bound=BaseModel)

_INTEGER = re.compile(r"[-+]?[0-9]{1,40}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]{1,4})?")
_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", "+.inf"), float("inf")),
    "-.inf": float("-inf"),
    ".nan": float("nan"),
    ".NaN": float("nan"),
}


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
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("[") and text.endswith("]"):
        return [scalar(part) for part in _split(text[1:-1])] if text[1:-1].strip() else []
    return text


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
            problems.append(f"{what} {name}: option=value expected (got {part!r})")
        elif option in options:
            problems.append(f"{what} {name}.{option}: given twice")
        else:
            options[option] = scalar(value)
    if problems:
        raise SpecError(*problems)
    return name, options


def check_name(what: str, name: str, known: Iterable[str]) -> None:
    """Raise unless `name` is one of `known`."""
    names = list(known)
    if name not in names:
        raise SpecError(f"{what}: unknown {name!r}; {suggestion(name, names)}")


def check_options(where: str, params: type[Model], options: dict[str, object]) -> Model:
    """`params` made of `options`; a line for every option that is wrong."""
    try:
        return params(**options)
    except ValidationError as error:
        raise SpecError(*problem_lines(where, params, error)) from error


def problem_lines(where: str, params: type[BaseModel], error: ValidationError) -> list[str]:
    """One line a problem: where, what, the rule, the value."""
    lines = []
    for problem in error.errors():
        path = ".".join(str(part) for part in problem["loc"])
        label = f"{where}.{path}" if path else where
        if problem["type"] == "extra_forbidden":
            hint = suggestion(path, list(params.model_fields))
            lines.append(f"{label}: unknown option; {hint}")
        elif problem["type"] == "missing":
            lines.append(f"{label}: missing")
        elif problem["type"] == "value_error":
            lines.append(f"{label}: {problem['ctx']['error']}")
        else:
            lines.append(f"{label}: {_rule(problem['msg'])} (got {problem['input']!r})")
    return lines


def suggestion(word: str, known: list[str]) -> str:
    """What may have been meant, or all there is."""
    close = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"one of {', '.join(known)}" if known else "there are no options"


def _rule(message: str) -> str:
    rule = message.removeprefix("Input should be ")
    return rule[:1].lower() + rule[1:]


def _split(text: str) -> list[str]:
    # At commas, but not at those inside a list.
    return re.split(r",(?![^\[]*\])", text)
