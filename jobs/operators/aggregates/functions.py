"""The aggregates that merge exactly: each as an Arrow partial, a merge, and plain Spark's way.

Every function is given the argument as a column of its own, the *input*. `totals` are the columns
that both ways make, and `final` makes the value of them. Floats have no sum here: what they add up
to depends on the order.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from unskew.jobs.operators.aggregates.function import (
    FLOATS,
    INTEGERS,
    Function,
    TypeProblem,
    describe_float_sum,
    describe_unordered,
    drop_sign_of_zero,
    read_decimal_type,
)
from unskew.jobs.operators.base import EVENT_TIME, NUMBER, RECORDS, Aggregation

if TYPE_CHECKING:
    import pyarrow as pa

SUMMED_DIGITS_MAX = 28
"""A decimal has 38 digits: ten are left for adding up, as in Spark's own sum."""
_BIGINT_END = 2**63
_IS_VALID = "is_valid"


class CountAll(Function):
    """`count(*)`."""

    @property
    def inputs(self) -> Mapping[str, str]:
        return {}

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {}

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"sum({RECORDS})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: "count(1)"}


class CountIf(Function):
    """`count_if(condition)`."""

    @property
    def inputs(self) -> Mapping[str, str]:
        return {self.name: f"coalesce(({self.argument}), false)"}

    def describe_type_problem(self) -> TypeProblem | None:
        if self.kind == "boolean":
            return None
        return TypeProblem(f"a condition (got {self.kind.upper()})", "write count_if(CONDITION)")

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: "bigint"}

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        return [(self.name, "sum", self.name)]

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"sum({self.name})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: f"count_if({self.name})"}


class Count(CountIf):
    """`count(x)`: the values that are not null."""

    @property
    def inputs(self) -> Mapping[str, str]:
        return {self.name: f"({self.argument}) is not null"}

    def describe_type_problem(self) -> TypeProblem | None:
        return None


class Sum(Function):
    """`sum(x)` of integers and decimals."""

    def describe_type_problem(self) -> TypeProblem | None:
        decimal = read_decimal_type(self.kind)
        if decimal and decimal[0] > SUMMED_DIGITS_MAX:
            return TypeProblem(
                f"{self.kind.upper()} leaves too few digits for adding up",
                f"write cast({self.argument} as decimal({SUMMED_DIGITS_MAX}, {decimal[1]}))",
            )
        if decimal or self.kind in INTEGERS:
            return None
        if self.kind in FLOATS:
            return describe_float_sum(self.argument, self.kind)
        return TypeProblem(f"a number (got {self.kind.upper()})", "sum integers or decimals")

    @property
    def _sum(self) -> str:
        # Few values of BIGINT may have a sum of more than 64 bits, which would stop the job.
        decimal = (19, 0) if self.kind == "bigint" else read_decimal_type(self.kind)
        return f"decimal({decimal[0] + 10},{decimal[1]})" if decimal else "bigint"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: self._sum}

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        return [(self.name, "sum", self.name)]

    def arrange(self, rows: "pa.Table") -> "pa.Table":
        """Integers that may add up to more than 64 bits as decimals: Arrow would wrap around."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if self.kind != "bigint" or not rows.num_rows:
            return rows
        ends = pc.min_max(rows[self.name]).as_py()
        largest = max(abs(ends["min"] or 0), abs(ends["max"] or 0))
        if largest * rows.num_rows < _BIGINT_END:
            return rows
        wide = rows[self.name].cast(pa.decimal128(38, 0))
        return rows.set_column(rows.column_names.index(self.name), self.name, wide)

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"sum({self.name})"}

    @property
    def direct(self) -> Mapping[str, str]:
        summed = f"cast({self.name} as decimal(19,0))" if self.kind == "bigint" else self.name
        return {self.name: f"sum({summed})"}

    @property
    def final(self) -> str:
        if self.kind == "bigint":
            return f"try_cast({self.name} as bigint)"
        # A sum of sums has ten digits more than a sum.
        return f"cast({self.name} as {self._sum})" if read_decimal_type(self.kind) else self.name


class Average(Sum):
    """`avg(x)` as a sum and a count: of integers a DOUBLE, of decimals a DECIMAL."""

    @property
    def _count(self) -> str:
        return f"{self.name}_count"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: self._sum, self._count: "bigint"}

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        return [(self.name, "sum", self.name), (self.name, "count", self._count)]

    @property
    def merge(self) -> Mapping[str, str]:
        return {**super().merge, self._count: f"sum({self._count})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {**super().direct, self._count: f"count({self.name})"}

    @property
    def final(self) -> str:
        summed = f"cast({self.name} as double)" if self.kind == "bigint" else super().final
        return f"(({summed}) / nullif({self._count}, 0))"


class Compared(Function):
    """An aggregate that compares its values."""

    @property
    def reject_rules(self) -> Mapping[str, str]:
        if self.kind not in FLOATS:
            return {}
        return {"not_a_number": f"isnan({self.inputs[self.name]})"}

    def describe_type_problem(self) -> TypeProblem | None:
        return describe_unordered(self.argument, self.kind)

    @property
    def final(self) -> str:
        return drop_sign_of_zero(self.name, self.kind)


class Extreme(Compared):
    """`min(x)` and `max(x)`, `bool_and` and `bool_or`."""

    function: ClassVar[str]

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: self.kind}

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        return [(self.name, self.function, self.name)]

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"{self.function}({self.name})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: f"{self.function}({self.name})"}


class Min(Extreme):
    """`min(x)`."""

    function = "min"


class Max(Extreme):
    """`max(x)`."""

    function = "max"


class _Condition(Extreme):
    def describe_type_problem(self) -> TypeProblem | None:
        if self.kind == "boolean":
            return None
        return TypeProblem(f"a condition (got {self.kind.upper()})", "write it as a comparison")


class BoolAnd(_Condition):
    """`bool_and(condition)`: false is less than true."""

    function = "min"


class BoolOr(_Condition):
    """`bool_or(condition)`."""

    function = "max"


class _ByTime(Compared):
    """The value at the least or greatest event time; of equal times that by value."""

    grouped = True
    function: ClassVar[str]
    row: ClassVar[int]
    """Which of a group's rows, in the order of time and value, has it: 0 or -1."""

    @property
    def _time(self) -> str:
        return f"{self.name}_time"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self._time: "timestamp", self.name: self.kind}

    def add(self, rows: "pa.Table", partials: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        # Null comes before every value, as in Spark's comparison of structs.
        compared = rows.append_column(_IS_VALID, pc.is_valid(rows[self.name]))
        names = (NUMBER, EVENT_TIME, _IS_VALID, self.name)
        order = pc.sort_indices(compared, sort_keys=[(name, "ascending") for name in names])
        numbers = rows[NUMBER].take(order).to_numpy()
        groups = np.arange(partials.num_rows)
        ends = np.searchsorted(numbers, groups, side="left" if self.row == 0 else "right")
        chosen = order.take(pa.array(ends + self.row))
        partials = partials.append_column(self._time, rows[EVENT_TIME].take(chosen))
        return partials.append_column(self.name, rows[self.name].take(chosen))

    @property
    def merge(self) -> Mapping[str, str]:
        pair = f"struct({self._time}, {self.name})"
        return {self.name: f"{self.function}({pair}).{self.name}"}

    @property
    def direct(self) -> Mapping[str, str]:
        pair = f"struct({EVENT_TIME}, {self.name})"
        return {self.name: f"{self.function}({pair}).{self.name}"}


class First(_ByTime):
    """`first(x)`: the value at the earliest event time, of equal times the least."""

    function = "min"
    row = 0


class Last(_ByTime):
    """`last(x)`: the value at the latest event time, of equal times the greatest."""

    function = "max"
    row = -1


class _Bits(Function):
    grouped = True
    function: ClassVar[str]
    reduce: ClassVar[np.ufunc]

    def describe_type_problem(self) -> TypeProblem | None:
        if self.kind in INTEGERS:
            return None
        return TypeProblem(f"an integer (got {self.kind.upper()})", "cast it to BIGINT")

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: self.kind}

    def add(self, rows: "pa.Table", partials: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        valid = rows.select([NUMBER, self.name]).filter(pc.is_valid(rows[self.name]))
        numbers = valid[NUMBER].to_numpy()
        order = np.argsort(numbers, kind="stable")
        present, begins = np.unique(numbers[order], return_index=True)
        values = valid[self.name].to_numpy()[order]
        reduced = self.reduce.reduceat(values, begins) if values.size else values
        # A group all of whose values are null has none.
        where = np.searchsorted(present, np.arange(partials.num_rows))
        has = np.isin(np.arange(partials.num_rows), present)
        index = pa.array(np.where(has, where, 0), mask=~has)
        return partials.append_column(self.name, pa.array(reduced).take(index))

    @property
    def merge(self) -> Mapping[str, str]:
        return {self.name: f"{self.function}({self.name})"}

    @property
    def direct(self) -> Mapping[str, str]:
        return self.merge


class BitAnd(_Bits):
    """`bit_and(x)`."""

    function = "bit_and"
    reduce = np.bitwise_and


class BitOr(_Bits):
    """`bit_or(x)`."""

    function = "bit_or"
    reduce = np.bitwise_or


class BitXor(_Bits):
    """`bit_xor(x)`."""

    function = "bit_xor"
    reduce = np.bitwise_xor


EXACT: Mapping[str, type[Function]] = {
    "count": Count,
    "count_if": CountIf,
    "sum": Sum,
    "min": Min,
    "max": Max,
    "avg": Average,
    "mean": Average,
    "first": First,
    "last": Last,
    "bool_and": BoolAnd,
    "every": BoolAnd,
    "bool_or": BoolOr,
    "any": BoolOr,
    "some": BoolOr,
    "bit_and": BitAnd,
    "bit_or": BitOr,
    "bit_xor": BitXor,
}
"""The functions, by their names in SQL."""


def make_function(name: str, function: str, argument: str) -> Function:
    """Make the function of a call, whose columns begin with `name`."""
    if function == "count" and argument in {"*", "1"}:
        return CountAll(name, argument)
    return EXACT[function](name, argument)
