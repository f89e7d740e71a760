"""Texts and lists whose length an expression of the job takes from the record.

`repeat('*', stars)`, `sequence(first_day, last_day)`: of a record that says two thousand million
they fill the memory, and Spark ends the whole process for it, again at each start.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import Column
from pyspark.sql import functions as sf

_BYTES_MAX = 1 << 24
_ELEMENTS_MAX = 1_000_000
_DAY_SECONDS = 86_400


class Sized(NamedTuple):
    """A function of Spark whose result may be as large as an argument says."""

    argument: int
    """Which one."""
    arguments: Sequence[int]
    """All that its size depends on; where they are constants, so is it."""
    is_too_large: Callable[[Sequence[Column], str], Column]
    """Given all arguments and the type of the first: is the result too large?"""


def _are_many(count: Column, most: int) -> Column:
    return sf.abs(count.cast("bigint")) > most


def _is_long_sequence(arguments: Sequence[Column], kind: str) -> Column:
    start, stop, *steps = arguments
    if kind in ("date", "timestamp", "timestamp_ntz"):
        start, stop = start.cast("timestamp"), stop.cast("timestamp")
        size = (start + steps[0]).cast("double") - start.cast("double") if steps else _DAY_SECONDS
    else:
        size = steps[0].cast("double") if steps else 1
    span = stop.cast("double") - start.cast("double")
    return sf.abs(sf.try_divide(span, sf.lit(size))) > _ELEMENTS_MAX


SIZED: Mapping[str, Sized] = {
    "StringRepeat": Sized(
        1, (0, 1), lambda given, _: sf.octet_length(given[0]) * given[1].cast("bigint") > _BYTES_MAX
    ),
    "StringLPad": Sized(1, (1,), lambda given, _: _are_many(given[1], _BYTES_MAX)),
    "StringRPad": Sized(1, (1,), lambda given, _: _are_many(given[1], _BYTES_MAX)),
    "StringSpace": Sized(0, (0,), lambda given, _: _are_many(given[0], _BYTES_MAX)),
    "ArrayRepeat": Sized(1, (1,), lambda given, _: _are_many(given[1], _ELEMENTS_MAX)),
    "ArrayInsert": Sized(1, (1,), lambda given, _: _are_many(given[1], _ELEMENTS_MAX)),
    "Sequence": Sized(1, (0, 1), _is_long_sequence),
}
"""By the names of Spark's classes."""


def bound_size(name: str, arguments: Sequence[Column], kind: str) -> tuple[int, Column]:
    """The argument that says how large the result is; it raises where that is too large."""
    sized = SIZED[name]
    too_large = sized.is_too_large(arguments, kind)
    raised = sf.raise_error(sf.lit(f"a result that is too large ({name})"))
    return sized.argument, sf.when(too_large, raised).otherwise(arguments[sized.argument])
