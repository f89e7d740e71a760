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

A job names its file (`type: python`), or a package brings it under the entry point group
`unskew.operators`, where the entry's name is its `type` in YAML.

`add` sees the rows of one pane and key in the order they came, each with the inputs and
`key` and `event_time` as attributes. What `result` returns is merged by the SQL aggregates of
`merge`, so it must be mergeable: `unskew.jobs.operators.mergeability` checks that.

What a key costs once goes into `open(self, key)`: a row then has `opened`, which is what that
returned and is kept across batches (`unskew.jobs.operators.user_code.opened`).

The time of each key is measured and fed back, so groupings that balance time know what keys cost.
A row costs some five microseconds besides what `add` does: where that is too much, override
`partial`.
"""

import time
from abc import abstractmethod
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from unskew.jobs.operators.base import EVENT_TIME, KEY, NUMBER, SECONDS, Operator, aggregate
from unskew.jobs.operators.user_code.opened import get_opened_keys

if TYPE_CHECKING:
    import pyarrow as pa

OPENED = "opened"
"""The attribute of a row with what is open for its key."""


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

        from unskew.jobs.operators.arrow import number_groups

        rows = number_groups(rows)
        partials = aggregate(rows, [(NUMBER, "min", NUMBER)]).sort_by(NUMBER)
        keys = partials[KEY].to_pylist()
        read = self._group_reader(rows, partials.num_rows)
        results: list[Mapping[str, Any]] = [{}] * len(keys)
        seconds = [0.0] * len(keys)
        for number in self._order(keys):
            opened = (self.opened(keys[number]),) if self.defines_open() else ()
            started = time.perf_counter()
            results[number] = self._work(read(number, *opened))
            seconds[number] = time.perf_counter() - started
        for name, kind in self._types.items():
            values = pa.array([result[name] for result in results], kind)
            partials = partials.append_column(name, values)
        return partials.append_column(SECONDS, pa.array(seconds, pa.float64()))

    def _work(self, group: Iterator[Any]) -> Mapping[str, Any]:
        state = self.start()
        for row in group:
            state = self.add(state, row)
        return self.result(state)

    def _order(self, keys: list[str]) -> Iterable[int]:
        """The groups by number, such that each key is opened at most once for these rows.

        Those that are open come first, so that they are used before they have to make room.
        """
        if not self.defines_open():
            return range(len(keys))
        opened = get_opened_keys(self)
        return sorted(
            range(len(keys)), key=lambda number: (keys[number] not in opened, keys[number])
        )

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

    def _group_reader(self, rows: "pa.Table", groups: int) -> Callable[..., Iterator[Any]]:
        """Reads the rows of a group by its number, in the order in which they came.

        What is open for the group's key, if anything, is given to it and is each row's `opened`.
        """
        import pyarrow as pa

        from unskew.jobs.operators.arrow import read_numbers

        names = [KEY, EVENT_TIME, *self.inputs]
        numbers = read_numbers(rows)
        order = np.argsort(numbers, kind="stable")
        ends = np.searchsorted(numbers[order], np.arange(groups + 1)).tolist()
        make: Any = namedtuple  # noqa: PYI024 - the fields are known at run time only
        row = make("Row", [*names, OPENED] if self.defines_open() else names)
        held = rows.select(names).take(pa.array(order))

        def read(number: int, *opened: Any) -> Iterator[Any]:
            begin, end = ends[number], ends[number + 1]
            columns = [held[name].slice(begin, end - begin).to_pylist() for name in names]
            columns += [[value] * (end - begin) for value in opened]
            return map(row._make, zip(*columns, strict=True))

        return read
