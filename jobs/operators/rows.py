"""Operators written row by row in plain Python: the helper for those who bring their own.

    from unskew import OperatorOptions, RowOperator

    class LongestOptions(OperatorOptions):
        least: int = 0

    class Longest(RowOperator):
        Options = LongestOptions
        partial_columns = {"longest": "INT"}
        merge = {"longest": "max(longest)"}
        inputs = {"text": "value"}
        key = "user"

        def start(self):
            return self.options.least

        def add(self, state, row):
            return max(state, len(row.text))

        def result(self, state):
            return {"longest": state}

Register the class under the entry point group `unskew.operators`; the entry's name is its `type` in
YAML. `add` sees the rows of one pane and key in the order they came, each with the inputs and
`key` and `event_time` as attributes. What `result` returns is merged by the SQL aggregates of
`merge`, so it must be mergeable: `unskew.jobs.operators.mergeability` checks that.

The time of each key is measured and fed back, so groupings that balance time know what keys cost.
A row costs some five microseconds besides what `add` does: where that is too much, override
`partial`.
"""

import time
from abc import abstractmethod
from collections import namedtuple
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from unskew.jobs.operators.base import EVENT_TIME, KEY, NUMBER, SECONDS, Operator, aggregate

if TYPE_CHECKING:
    import pyarrow as pa


class RowOperator(Operator):
    """An operator that is given one row after the other."""

    native: ClassVar[bool] = False

    @abstractmethod
    def start(self) -> Any:
        """The state of a pane and key before its first row."""

    @abstractmethod
    def add(self, state: Any, row: Any) -> Any:
        """The state after a row; it may be the same object, changed."""

    @abstractmethod
    def result(self, state: Any) -> Mapping[str, Any]:
        """The partial columns of a state that has seen all its rows."""

    @property
    def direct(self) -> Mapping[str, str]:
        """None: plain Spark calls `partial` too."""
        return {}

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """Each group's rows through `add`, the group's result, and the time it took."""
        import pyarrow as pa

        from unskew.jobs.operators.arrow import numbered

        rows = numbered(rows)
        partials = aggregate(rows, [(NUMBER, "min", NUMBER)]).sort_by(NUMBER)
        results, seconds = [], []
        for group in self._groups(rows, partials.num_rows):
            started = time.perf_counter()
            state = self.start()
            for row in group:
                state = self.add(state, row)
            results.append(self.result(state))
            seconds.append(time.perf_counter() - started)
        for name, kind in self._types.items():
            values = pa.array([result[name] for result in results], kind)
            partials = partials.append_column(name, values)
        return partials.append_column(SECONDS, pa.array(seconds, pa.float64()))

    @cached_property
    def _types(self) -> "dict[str, pa.DataType]":
        """The partial columns' types, parsed by Spark."""
        from pyspark.sql.pandas.types import to_arrow_type
        from pyspark.sql.types import StructType

        ddl = ", ".join(f"`{name}` {kind}" for name, kind in self.partial_columns.items())
        schema: Any = StructType.fromDDL(ddl)
        return {
            field.name: to_arrow_type(field.dataType, timezone="UTC") for field in schema.fields
        }

    def __getstate__(self) -> dict[str, Any]:
        # Tasks have no parser: the types go with the operator.
        _ = self._types
        return self.__dict__

    def _groups(self, rows: "pa.Table", groups: int) -> Iterator[Iterator[Any]]:
        """The rows of each group, by its number, in the order in which they came."""
        import pyarrow as pa

        from unskew.jobs.operators.arrow import numbers_of

        names = [KEY, EVENT_TIME, *self.inputs]
        numbers = numbers_of(rows)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(groups + 1)).tolist()
        make: Any = namedtuple  # noqa: PYI024 - the fields are known at run time only
        row = make("Row", names)
        held = rows.select(names).take(pa.array(order))
        for begin, end in pairwise(ends):
            columns = [held[name].slice(begin, end - begin).to_pylist() for name in names]
            yield map(row._make, zip(*columns, strict=True))
