"""What the journal keeps of choices: the way of each batch, and what a batch showed."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from unskew.grouping.choice.decider import Expected
from unskew.grouping.choice.ways import WAYS

_FORMAT = 1
_KEPT = 100


@dataclass(frozen=True)
class Choice:
    """A way, and the first batch that has it."""

    batch: int
    way: str
    why: str


@dataclass(frozen=True)
class BatchChoice:
    """The way of a finished batch, and what was known after it."""

    way: str
    next_way: str
    why: str
    expected: Mapping[str, Expected] = field(default_factory=dict)
    change_seconds: float | None = None
    """In the first batch after a change: what the change took."""
    discarded_records: int = 0
    """In the first batch after a change: records of the stopped batch, which were discarded."""

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BatchChoice":
        """Read what `asdict` made of a choice."""
        expected = {way: Expected(**each) for way, each in data["expected"].items()}
        return cls(**{**data, "expected": expected})


def encode_choices(choices: tuple[Choice, ...]) -> bytes:
    """Write the newest choices as the bytes of a file."""
    data = {"format": _FORMAT, "choices": [asdict(each) for each in choices[-_KEPT:]]}
    return (json.dumps(data, indent=1) + "\n").encode()


def decode_choices(data: bytes) -> tuple[Choice, ...]:
    """Read what `encode_choices` wrote; a ValueError, TypeError or LookupError otherwise."""
    content = json.loads(data)
    if content["format"] != _FORMAT:
        raise ValueError(f"format {content['format']!r}")
    choices = tuple(Choice(**each) for each in content["choices"])
    for each in choices:
        if each.way not in WAYS or type(each.batch) is not int:
            raise ValueError(f"{each.way!r} from batch {each.batch!r}")
    return choices
