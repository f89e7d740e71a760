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

    @property
    def inputs(self) -> Mapping[str, str]:
        """The input columns, as SQL expressions."""
        return {self.name: self.argument}

    @property
    def reject_rules(self) -> Mapping[str, str]:
        """By a word for the reason, the SQL condition on the inputs' expressions."""
        return {}

    def type_problem(self) -> TypeProblem | None:
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

    def arranged(self, rows: "pa.Table") -> "pa.Table":
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
        """The same totals from the inputs, as SQL aggregates."""

    @property
    def final(self) -> str:
        """The value, as an SQL expression over the totals."""
        return self.name


def decimal_of(kind: str) -> tuple[int, int] | None:
    """Digits and decimals of a type; None if it is no decimal."""
    match = _DECIMAL.fullmatch(kind)
    return (int(match[1]), int(match[2])) if match else None
