"""What every aggregate of a job's columns is: a partial, a merge, and plain Spark's way."""

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from unskew.jobs.operators.base import Aggregation

if TYPE_CHECKING:
    import pyarrow as pa

INTEGERS = ("tinyint", "smallint", "int", "bigint")
FLOATS = ("float", "double")
ORDERED = (*INTEGERS, *FLOATS, "string", "boolean", "date", "timestamp", "timestamp_ntz")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


class TypeProblem(NamedTuple):
    """Why an argument's type cannot be aggregated, and what to write instead."""

    rule: str
    suggestion: str


@dataclass(frozen=True)
class Function(ABC):
    """A call of an aggregate in one column of a job."""

    name: str
    """Prefix of the columns that it makes; the input's name."""
    argument: str
    kind: str = ""
    """The argument's type, as Spark names it; known once Spark has seen the job."""
    grouped: ClassVar[bool] = False
    """Does `add` need the rows' groups by number?"""
    has_partials: ClassVar[bool] = True
    """Has a part of the rows a partial, for Spark's aggregates to merge?"""

    @property
    def inputs(self) -> Mapping[str, str]:
        """The input columns, as SQL expressions."""
        return {self.name: self.argument}

    @property
    def reject_rules(self) -> Mapping[str, str]:
        """The SQL conditions under which a record is rejected, each by a word for the reason."""
        return {}

    def describe_type_problem(self) -> TypeProblem | None:
        """Why `kind` cannot be aggregated."""
        return None

    @property
    @abstractmethod
    def partial_columns(self) -> Mapping[str, str]:
        """The columns of a partial, with their Spark types."""

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        """How Arrow makes them."""
        return ()

    def arrange(self, rows: "pa.Table") -> "pa.Table":
        """The rows as `aggregations` need them."""
        return rows

    def add(self, rows: "pa.Table", partials: "pa.Table") -> "pa.Table":
        """`partials` with the columns that Arrow cannot make; rows of both in groups by number."""
        return partials

    @property
    @abstractmethod
    def merge(self) -> Mapping[str, str]:
        """How partials become totals, as SQL aggregates."""

    @property
    @abstractmethod
    def direct(self) -> Mapping[str, str]:
        """The totals of `merge` straight from the inputs, as SQL aggregates."""

    @property
    def final(self) -> str:
        """The value, as an SQL expression over the totals."""
        return self.name


def read_decimal_type(kind: str) -> tuple[int, int] | None:
    """Read digits and decimals of a type; None if it is no decimal."""
    match = _DECIMAL.fullmatch(kind)
    return (int(match[1]), int(match[2])) if match else None


def describe_float_sum(argument: str, kind: str) -> TypeProblem:
    """Say why floats are not summed."""
    return TypeProblem(
        f"a sum of {kind.upper()} depends on the order of its records",
        f"write cast({argument} as decimal(18, 4))",
    )


def describe_unordered(argument: str, kind: str) -> TypeProblem | None:
    """Say why values of a type cannot be compared, by Spark and Arrow alike."""
    if kind in ORDERED or read_decimal_type(kind):
        return None
    return TypeProblem(
        f"no order that Spark and Arrow share (got {kind.upper()})",
        f"write cast({argument} as string)",
    )


def drop_sign_of_zero(column: str, kind: str) -> str:
    """Drop the sign of a zero that is a float; no comparison looks at it."""
    return f"cast({column} + 0.0D as {kind})" if kind in FLOATS else column
