"""Durations and sizes as people write them: `10 s`, `5 minutes`, `64 MiB`."""

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Self

from pydantic import (
    BeforeValidator,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    WithJsonSchema,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from unskew.grouping.options.broken_rules import make_rule_error

_QUANTITY = re.compile(r"([0-9]{1,16})(?:\.([0-9]{1,9}))? ?([A-Za-zµμ]+)", re.ASCII)


@dataclass(frozen=True, order=True)
class _Quantity:
    """A whole number of the smallest unit; subclasses say which units there are."""

    amount: int

    UNITS: ClassVar[dict[str, int]]
    """From each spelling to how many of the smallest unit it is; the first spelling is printed."""
    AMOUNT_MAX: ClassVar[int]
    RULE: ClassVar[str]
    EXAMPLES: ClassVar[list[str]]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The quantity that `text` writes; PydanticCustomError if it is none."""
        match = _QUANTITY.fullmatch(text)
        if match is None:
            raise make_rule_error(f"{cls.RULE}, such as {cls._examples()}", "a number and a unit")
        whole, decimals, unit = match.groups()
        if unit not in cls.UNITS:
            raise make_rule_error(
                f"{cls.RULE}, such as {cls._examples()}",
                f"the units are {', '.join(cls._printed())}",
            )
        exact = Fraction(f"{whole}.{decimals or 0}") * cls.UNITS[unit]
        if exact.denominator != 1:
            raise make_rule_error(f"a whole number of {cls._printed()[0]}", "write fewer decimals")
        if exact > cls.AMOUNT_MAX:
            raise make_rule_error(f"at most {cls(cls.AMOUNT_MAX)}", "check the unit")
        return cls(int(exact))

    def __str__(self) -> str:
        for unit in reversed(self._printed()):
            if self.amount and self.amount % self.UNITS[unit] == 0:
                return f"{self.amount // self.UNITS[unit]} {unit}"
        return f"{self.amount} {self._zero_unit()}"

    def _zero_unit(self) -> str:
        return self._printed()[0]

    @classmethod
    def _printed(cls) -> list[str]:
        """One spelling a unit, smallest first."""
        return list({size: name for name, size in reversed(cls.UNITS.items())}.values())[::-1]

    @classmethod
    def _examples(cls) -> str:
        return " or ".join(f'"{example}"' for example in cls.EXAMPLES)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Any], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validate,
            serialization=core_schema.plain_serializer_function_ser_schema(str),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return cls.json_schema()

    @classmethod
    def json_schema(cls) -> JsonSchemaValue:
        """The quantity as JSON Schema: its grammar and examples."""
        units = "|".join(cls.UNITS)
        return {
            "type": "string",
            "pattern": rf"^[0-9]{{1,16}}(\.[0-9]{{1,9}})? ?({units})$",
            "examples": cls.EXAMPLES,
        }

    @classmethod
    def _validate(cls, value: object) -> Self:
        if isinstance(value, cls):
            return value
        if isinstance(value, str):
            return cls.parse(value)
        advice = "add the unit" if isinstance(value, int | float) else "a number and a unit"
        raise make_rule_error(f"{cls.RULE}, such as {cls._examples()}", advice)


class Duration(_Quantity):
    """A length of time, exact to the microsecond."""

    UNITS: ClassVar = {
        "us": 1,
        "µs": 1,
        "μs": 1,
        "microsecond": 1,
        "microseconds": 1,
        "ms": 1_000,
        "millisecond": 1_000,
        "milliseconds": 1_000,
        "s": 1_000_000,
        "sec": 1_000_000,
        "second": 1_000_000,
        "seconds": 1_000_000,
        "min": 60_000_000,
        "minute": 60_000_000,
        "minutes": 60_000_000,
        "h": 3_600_000_000,
        "hour": 3_600_000_000,
        "hours": 3_600_000_000,
        "d": 86_400_000_000,
        "day": 86_400_000_000,
        "days": 86_400_000_000,
    }
    AMOUNT_MAX: ClassVar = 3_650 * 86_400_000_000
    RULE: ClassVar = "a duration"
    EXAMPLES: ClassVar = ["10 s", "5 minutes"]

    @property
    def microseconds(self) -> int:
        """The whole duration in microseconds."""
        return self.amount

    @property
    def seconds(self) -> float:
        """The whole duration in seconds."""
        return self.amount / 1_000_000

    @property
    def interval(self) -> str:
        """The duration in the syntax of Spark's intervals."""
        return f"{self.amount} microseconds"

    def _zero_unit(self) -> str:
        return "s" if self.amount == 0 else "us"


class ByteSize(_Quantity):
    """A number of bytes: `KB` is 1000, `KiB` is 1024."""

    UNITS: ClassVar = {
        "B": 1,
        "bytes": 1,
        "KB": 10**3,
        "kB": 10**3,
        "KiB": 2**10,
        "MB": 10**6,
        "MiB": 2**20,
        "GB": 10**9,
        "GiB": 2**30,
        "TB": 10**12,
        "TiB": 2**40,
    }
    AMOUNT_MAX: ClassVar = 2**50
    RULE: ClassVar = "a size"
    EXAMPLES: ClassVar = ["64 MiB", "1 GB"]

    @property
    def bytes(self) -> int:
        """The number of bytes."""
        return self.amount


def _off_is_none(value: object) -> object:
    return None if value == _OFF else value


_OFF = "off"
DurationOrOff = Annotated[
    Duration | None,
    BeforeValidator(_off_is_none),
    PlainSerializer(lambda value: _OFF if value is None else str(value), return_type=str),
    WithJsonSchema({"anyOf": [{"const": _OFF}, {"type": "null"}, Duration.json_schema()]}),
]
"""A limit that may be switched off, which is None."""
