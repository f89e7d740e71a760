"""A dead letter as the commands read, print and replay it."""

import base64
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TEXTS = ("key", "value")
_IN_BASE64 = "_base64"
CUT = "cut"
_T = TypeVar("_T")


class Coordinates(NamedTuple):
    """Where the record was read; with its time, since a topic that is made again counts from 0."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


@dataclass(frozen=True)
class DeadLetter:
    """A rejected record, or a total that a sink did not take, which has no coordinates."""

    reason: str
    key: bytes | None
    value: bytes | None
    coordinates: Coordinates | None
    cut: bool = False
    """Was its key or value too long for the topic of dead letters? The record is in its own."""

    def to_json(self, *, replayed: bool) -> str:
        """One line; key and value as texts, or in base64 where they are none."""
        where = self.coordinates
        line: dict[str, Any] = {"reason": self.reason}
        if where is not None:
            line |= {"topic": where.topic, "partition": where.partition, "offset": where.offset}
            line["timestamp"] = _to_time(where.timestamp_ms)
        for name in _TEXTS:
            line |= _to_json(name, getattr(self, name))
        if self.cut:
            line[CUT] = True
        return json.dumps({**line, "replayed": replayed}, ensure_ascii=False)

    @classmethod
    def from_json(cls, line: str) -> "DeadLetter":
        """Read what `to_json` wrote, perhaps with another key or value; else a ValueError."""
        fields = json.loads(line)
        try:
            coordinates = Coordinates(
                _check(fields, "topic", str),
                _check(fields, "partition", int),
                _check(fields, "offset", int),
                to_millis(_check(fields, "timestamp", str)),
            )
            key, value = (_from_json(fields, name) for name in _TEXTS)
            cut = CUT in fields and _check(fields, CUT, bool)
            return cls(_check(fields, "reason", str), key, value, coordinates, cut)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{error} is missing, or of another type") from error


def read_coordinates(fields: Mapping[str, Any]) -> Coordinates | None:
    """The coordinates among a dead letter's fields; None if it has none."""
    if fields.get("topic") is None:
        return None
    try:
        return Coordinates(
            str(fields["topic"]),
            int(fields["partition"]),
            int(fields["offset"]),
            to_millis(str(fields["timestamp"])),
        )
    except (KeyError, TypeError, ValueError):
        return None


def to_millis(text: str) -> int:
    """Milliseconds since 1970 of a time as Spark writes it in UTC."""
    at = datetime.fromisoformat(text)
    return (at.replace(tzinfo=at.tzinfo or UTC) - _EPOCH) // timedelta(milliseconds=1)


def _to_time(millis: int) -> str:
    return (_EPOCH + timedelta(milliseconds=millis)).isoformat()


def _to_json(name: str, value: bytes | None) -> dict[str, str | None]:
    if value is None:
        return {name: None}
    try:
        return {name: value.decode()}
    except UnicodeDecodeError:
        return {name + _IN_BASE64: base64.b64encode(value).decode()}


def _from_json(fields: Mapping[str, Any], name: str) -> bytes | None:
    if name + _IN_BASE64 in fields:
        return base64.b64decode(fields[name + _IN_BASE64], validate=True)
    text = fields[name]
    return None if text is None else _check(fields, name, str).encode()


def _check(fields: Mapping[str, Any], name: str, kind: Callable[..., _T]) -> _T:
    value: _T = fields[name]
    if type(value) is not kind:
        raise TypeError(name)
    return value
