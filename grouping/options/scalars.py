"""Plain scalars as YAML 1.2's core schema reads them, not as 1.1 does.

`yes`, `on` and `12:30` are strings, `1e-4` is a number. One deliberate difference: a whole number
with a leading zero (`010`) is refused, because 1.1 reads 8 there, 1.2 reads 10, and a person may
mean the text.
"""

import re

Scalar = None | bool | int | float | str

NUMBER_LENGTH_MAX = 400

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INT = re.compile(r"[-+]?[0-9]+", re.ASCII)
_OCTAL = re.compile(r"0o[0-7]+", re.ASCII)
_HEX = re.compile(r"0x[0-9a-fA-F]+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_ANY_NUMBER = re.compile(f"{_OCTAL.pattern}|{_HEX.pattern}|{_FLOAT.pattern}", re.ASCII)
_INFINITY = re.compile(r"[-+]?\.(inf|Inf|INF)", re.ASCII)
_NAN = frozenset({".nan", ".NaN", ".NAN"})
_LEADING_ZERO = re.compile(r"[-+]?0[0-9]+", re.ASCII)


class ScalarError(ValueError):
    """A plain scalar that cannot be read; carries a rule and a suggestion."""

    def __init__(self, rule: str, suggestion: str) -> None:
        super().__init__(rule)
        self.rule = rule
        self.suggestion = suggestion


def resolve(text: str) -> Scalar:
    """The value of a plain (unquoted) scalar."""
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if text[0] not in "+-.0123456789":
        return text
    return _number(text)


def _number(text: str) -> Scalar:
    if _LEADING_ZERO.fullmatch(text):
        short = str(int(text)) if len(text) <= NUMBER_LENGTH_MAX else "it without the zero"
        raise ScalarError(
            f"a number with a leading zero is read differently by every YAML (got {text[:40]})",
            f'write {short} for the number, "{text[:40]}" in quotes for the text',
        )
    if len(text) > NUMBER_LENGTH_MAX and _ANY_NUMBER.fullmatch(text):
        raise ScalarError(f"a number of {len(text)} characters", "quote it if it is a text")
    if _INT.fullmatch(text):
        return int(text)
    if _OCTAL.fullmatch(text) or _HEX.fullmatch(text):
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITY.fullmatch(text):
        return float(text.replace(".", ""))
    return float("nan") if text in _NAN else text
