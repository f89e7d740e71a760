"""pydantic's errors in our words: which rule a value breaks, what it is, and what to write.

Validators raise `make_rule_error`; what that and pydantic's own errors say is made here alone, for
job files, for options on the command line and for groupings that are made in Python.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from unskew.grouping.options.printed import HIDDEN, show
from unskew.grouping.options.suggestions import (
    add_suggestion,
    find_nearest,
    one_of,
    suggest_nearest,
)

NUMBER_SHOWN_MAX = 40
MISSING = "missing"

_KINDS = {
    "string_type": "a text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
    "finite_number": "a finite number",
    "int_parsing": "a whole number",
    "none_required": "nothing",
}
_BOUNDS = {
    "greater_than_equal": ("at least", "ge"),
    "greater_than": ("more than", "gt"),
    "less_than_equal": ("at most", "le"),
    "less_than": ("less than", "lt"),
    "multiple_of": ("a multiple of", "multiple_of"),
}
_WORDS_FOR_BOOL = {
    "yes": "true",
    "on": "true",
    "y": "true",
    "no": "false",
    "off": "false",
    "n": "false",
}
_NUMBER = re.compile(r"[-+]?[0-9]+(\.[0-9]+)?")
_DIGIT_GROUPS = re.compile(r"[-+]?[0-9]+([_,' ][0-9]+)+")


class Written(NamedTuple):
    """A value and how it was written."""

    value: object
    text: str = ""
    """A scalar's text, without quotes."""
    plain: bool = False
    """Was it written in YAML without quotes, so that its text decides its type?"""
    hidden: bool = False
    """Is it a secret?"""


def got(written: Written | None) -> str:
    """` (got ...)`, or nothing when there is nothing; a secret stays hidden."""
    if written is None:
        return ""
    if written.hidden:
        return f" (got {HIDDEN})"
    # A number as it was written: `1e3` is not the whole number that it looks like when printed.
    as_written = (
        written.plain
        and isinstance(written.value, int | float)
        and len(written.text) < NUMBER_SHOWN_MAX
    )
    return f" (got {written.text if as_written else show(written.value)})"


def make_rule_error(rule: str, suggestion: str = "", *, hide: bool = False) -> PydanticCustomError:
    """The error a validator raises: broken rule and suggestion; `hide` for secret values."""
    context = {"rule": rule, "suggestion": suggestion, "hide": hide}
    return PydanticCustomError("rule", "{rule}", context)


def describe_unknown(noun: str, name: str, known: Iterable[str]) -> tuple[str, str]:
    """The rule that a name breaks which is none of `known`, and the nearest of them."""
    return f"unknown {noun}", suggest_nearest(name, known)


def describe_broken_rule(
    error: ErrorDetails, written: Written | None, known: Iterable[str] = ()
) -> tuple[str, str]:
    """The rule with the value, and a suggestion that may be empty.

    known: the names of the options that there are, for an error about one that is not there.
    """
    if error["type"] == "extra_forbidden":
        return describe_unknown("option", str(error["loc"][-1]), known)
    if error["type"] == "missing":
        return MISSING, ""
    return _describe_wrong_value(error, written)


def _describe_wrong_value(error: ErrorDetails, written: Written | None) -> tuple[str, str]:
    kind, context = error["type"], error.get("ctx", {})
    if kind in _KINDS:
        return f"{_KINDS[kind]}{got(written)}", _type_advice(kind, written)
    if kind in {"literal_error", "enum"}:
        choices = re.findall(r"'([^']*)'", context.get("expected", "")) or [str(context)]
        return f"{one_of(choices)}{got(written)}", _nearest_choice(written, choices)
    if kind in {"too_short", "too_long"}:
        return f"{_entries(kind, context)} (got {_length(written)})", ""
    if kind == "string_pattern_mismatch":
        return f"a text that matches {context['pattern']}{got(written)}", ""
    bound = _bound(kind, context)
    if bound:
        return f"{bound}{got(written)}", ""
    message = error["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if written is not None and isinstance(written.value, dict | list):
        shown = ""
    else:
        shown = f" (got {HIDDEN})" if context.get("hide") else got(written)
    return f"{message}{shown}", str(context.get("suggestion", ""))


def list_problems(where: str, params: type[BaseModel], error: ValidationError) -> list[str]:
    """One line for each option that is wrong: `where.option: rule; suggestion`."""
    return [_write_line(where, params, problem) for problem in error.errors(include_url=False)]


def _write_line(where: str, params: type[BaseModel], problem: ErrorDetails) -> str:
    option = ".".join(str(part) for part in problem["loc"])
    name = f"{where}.{option}" if option else where
    if problem["type"] == "value_error":
        # Of several options together: the message names them and their values itself.
        return f"{name}: {problem['ctx']['error']}"
    broken = describe_broken_rule(problem, Written(problem["input"]), params.model_fields)
    return f"{name}: {add_suggestion(*broken)}"


def _bound(kind: str, context: dict[str, Any]) -> str:
    if kind in _BOUNDS:
        words, name = _BOUNDS[kind]
        return f"{words} {show(context[name])}"
    if kind == "string_too_short":
        return f"at least {_counted(context['min_length'], 'character', 'characters')}"
    if kind == "string_too_long":
        return f"at most {_counted(context['max_length'], 'character', 'characters')}"
    return ""


def _entries(kind: str, context: dict[str, Any]) -> str:
    if kind == "too_short":
        return f"at least {_counted(context['min_length'], 'entry', 'entries')}"
    return f"at most {_counted(context['max_length'], 'entry', 'entries')}"


def _counted(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def _nearest_choice(written: Written | None, choices: Sequence[str]) -> str:
    if written is None or not isinstance(written.value, str) or written.hidden:
        return ""
    near = find_nearest(written.value, choices)
    return f'did you mean "{near}"?' if near else ""


def _length(written: Written | None) -> int:
    value = None if written is None else written.value
    return len(value) if isinstance(value, dict | list | tuple) else 0


def _type_advice(kind: str, written: Written | None) -> str:
    if written is None or isinstance(written.value, dict):
        return 'begin each entry with "- "' if written is not None and "list" in kind else ""
    value = written.value
    if kind in {"list_type", "tuple_type"}:
        return "put it in brackets: [...]"
    if kind == "string_type" and not isinstance(value, list):
        return "put it in quotes"
    if not isinstance(value, str):
        return ""
    if kind == "bool_type":
        word = _WORDS_FOR_BOOL.get(value.lower())
        return f"write {word}" if word else ""
    return _number_advice(written, value) if kind in {"int_type", "float_type"} else ""


def _number_advice(written: Written, text: str) -> str:
    if _DIGIT_GROUPS.fullmatch(text):
        return f"write {re.sub('[^-+0-9]', '', text)}"
    if not written.plain and _NUMBER.fullmatch(text):
        return "remove the quotes"
    return ""
