"""Key expressions that need no Spark: a column, its text, and a field of JSON.

Only what has one meaning is taken: all else is for Spark. Numbers keep their text, as Spark's JSON
functions leave them in a string.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from unskew.jobs.kafka.newest_records import RawSample

_COLUMN = r"(?P<column>key|value)"
_TEXT = rf"(?:cast\s*\(\s*{_COLUMN}\s+as\s+string\s*\)|{_COLUMN.replace('column', 'bare')})"
_STEP = r"[A-Za-z_][A-Za-z0-9_]*"
_PLAIN = re.compile(_TEXT, re.IGNORECASE)
_JSON = re.compile(
    rf"get_json_object\s*\(\s*{_TEXT}\s*,\s*'\$(?P<path>(?:\.{_STEP})+)'\s*\)", re.IGNORECASE
)
_FROM_JSON = re.compile(
    rf"from_json\s*\(\s*{_TEXT}\s*,\s*'(?P<schema>[^'<>()]*)'\s*\)\.(?P<field>{_STEP})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class KeyExpression:
    """A column of the record, and the path of a field in the JSON that it holds."""

    column: str
    path: tuple[str, ...] = ()

    def evaluate(self, records: RawSample) -> Sequence[bytes | None]:
        """The key of each record as text; None where it has none."""
        column = records.keys if self.column == "key" else records.values
        if not self.path:
            return column
        take = _make_field_reader(self.path)
        return [None if text is None else take(text) for text in column]


def parse_key_expression(text: str) -> KeyExpression | None:
    """The expression, if it can be evaluated without Spark."""
    text = text.strip()
    if match := _PLAIN.fullmatch(text):
        return KeyExpression(_read_column(match))
    if match := _JSON.fullmatch(text):
        return KeyExpression(_read_column(match), tuple(match["path"].split(".")[1:]))
    match = _FROM_JSON.fullmatch(text)
    if match and _is_string(match["schema"], match["field"]):
        return KeyExpression(_read_column(match), (match["field"],))
    return None


def _read_column(match: "re.Match[str]") -> str:
    return str(match["column"] or match["bare"]).lower()


def _is_string(schema: str, field: str) -> bool:
    """Does a schema such as `user STRING, page STRING` have this field as a text?"""
    columns = dict(part.split() for part in schema.split(",") if len(part.split()) == 2)
    return columns.get(field, "").lower() == "string"


def _make_field_reader(path: Sequence[str]) -> Callable[[bytes], bytes | None]:
    numbers_as_texts = json.JSONDecoder(
        parse_int=str, parse_float=str, parse_constant=_reject_constant
    )

    def take(text: bytes) -> bytes | None:
        try:
            value = _follow(numbers_as_texts.decode(text.decode()), path)
            if isinstance(value, dict | list):
                value = _follow(json.loads(text), path)
        except ValueError:
            return None
        if value is None or isinstance(value, str):
            return None if value is None else value.encode()
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()

    return take


def _follow(value: Any, path: Sequence[str]) -> Any:
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def _reject_constant(text: str) -> Any:
    raise ValueError(text)
