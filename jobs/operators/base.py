"""The contract of an operator: SQL before the shuffle, Arrow after it, Spark aggregates to merge.

Every operator is mergeable, and `mergeability.py` checks it: merging the partials of any split of
the rows, in any order, gives exactly the direct result. So a record may go to any partition, and
totals never depend on the grouping. Money is decimal or integer, never float.

`lint`, `schema` and `explain` load the modules of all operators, so none of these imports Arrow,
Spark, numba or datasketches before it works on rows: a test looks at `sys.modules`.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from unskew.config.models.base import is_expression
from unskew.config.models.operator import OperatorOptions
from unskew.jobs.operators.user_code.opened import get_opened_keys

if TYPE_CHECKING:
    import pyarrow as pa

# Columns that every prepared row has, beside the operator's inputs. `pane` is the interval of event
# time whose records share all their windows.
KEY = "key"
KEY_HASH = "key_hash"
PANE = "pane"
EVENT_TIME = "event_time"
RECORDS = "records"
# A partial column that never leaves the task: the time its records took, for groupings that
# balance time. Only the report uses it.
SECONDS = "seconds"
# With the key's columns these identify a result; without windows, the key alone.
WINDOW_BOUNDS = ("window_start", "window_end")
# In Spark's progress of a batch: the name of the job's observation, and of what it counts.
OBSERVED = "unskew"
FILTERED_RECORDS = "filtered_records"
# Before the name of a result: how many records it did not want.
FILTERED_BY_RESULT = "filtered_by_"
# The column of results that names the result of a row, in a job with several.
RESULT = "result"
# A row's group by pane and key, counted from 0, where an operator works on groups itself.
NUMBER = "number"

Aggregation = tuple[str, str, str]
"""An input, a function of Arrow's `group_by`, and the partial column that it makes."""


class Operator(ABC):
    """One operator with its options; sent to the tasks as it is."""

    Options: ClassVar[type[OperatorOptions]]
    splits: ClassVar[bool] = True
    """May the records of one key go to several partitions?"""
    explodes: bool = False
    """Is `key` an array, each element of which makes a row of its own?"""
    merges: ClassVar[bool] = True
    """Are there partials, and a merge that makes results of them? If not, the rows themselves are
    what is written."""
    parts: "Mapping[str, Operator]" = MappingProxyType({})
    """The operators of several results, by their names; empty if the job has one result."""
    native: ClassVar[bool] = True
    """Can plain Spark do all of the work by `direct`? If not, `grouping: none` partitions by the
    key's hash, as Spark does, and then calls `partial` too."""

    has_partials: bool = True
    """Can a part of the rows become partials? If not, only plain Spark computes it, as one."""

    def __init__(self, options: Any) -> None:
        self.options = options

    @classmethod
    def from_options(cls, options: Any) -> "Operator":
        """Make the operator with the options of a job's section."""
        # Options of the operator's own class: the section's is made at run time, and the operator
        # is sent to processes that do not have it.
        fields = cls.Options.model_fields
        return cls(cls.Options.model_construct(**{name: getattr(options, name) for name in fields}))

    @property
    @abstractmethod
    def key(self) -> str:
        """The routing key, as an SQL expression over the decoded columns: text."""

    @property
    def keys(self) -> Mapping[str, str]:
        """The columns of the key as SQL expressions, the first of them `key`."""
        return {KEY: self.key}

    @property
    def key_names(self) -> Mapping[str, str]:
        """The names that a result has for the key's columns, and the columns."""
        return {KEY: KEY}

    @property
    def key_types(self) -> Mapping[str, str]:
        """The Spark types of the key's columns."""
        return {KEY: "string"}

    @property
    def where(self) -> str | None:
        """Which records it wants at all, as an SQL condition; None for all."""
        return None

    @property
    def texts(self) -> Mapping[str, str]:
        """The job file's expressions of which the others are made, each by a name."""
        return {
            name: getattr(self.options, name)
            for name, field in type(self.options).model_fields.items()
            if is_expression(field) and getattr(self.options, name) is not None
        }

    def with_columns(self, columns: Mapping[str, str]) -> "Operator":
        """Copy the operator with a column in the place of each of `texts`, by its name."""
        return type(self)(self.options.model_copy(update=columns))

    def with_types(self, types: Mapping[str, str]) -> "Operator":
        """Copy the operator with the Spark types of its `texts`, by name.

        UsageError has all those that it cannot work on.
        """
        return self

    @property
    def inputs(self) -> Mapping[str, str]:
        """Further columns that the partial needs, as SQL expressions."""
        return {}

    @property
    def reject_rules(self) -> Mapping[str, str]:
        """The SQL conditions under which a record is rejected, each by its reject reason."""
        return {}

    @property
    @abstractmethod
    def partial_columns(self) -> Mapping[str, str]:
        """The columns of a partial beside pane, key, time and records, with their Spark types."""

    @property
    def aggregations(self) -> Sequence[Aggregation]:
        """How Arrow makes those columns; an operator that needs more overrides `partial`."""
        return ()

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """One row for each pane and key in `rows`; further columns beside the named may be there.

        An operator that knows what each key took adds the column `seconds`.
        """
        return aggregate(rows, self.aggregations)

    def open(self, key: Any) -> Any:
        """What the work on a key needs and costs once: a model, a profile, a connection.

        An operator may define it. `opened` calls it where the key is not open yet, and what it
        returned is kept across batches; if that has a `close`, it is called to make room.
        """
        raise NotImplementedError("this operator opens nothing")

    @classmethod
    def defines_open(cls) -> bool:
        """Does the class define `open`?"""
        return cls.open is not Operator.open

    def opened(self, key: Any) -> Any:
        """What is open for a key in this process; it may be closed once another key is opened."""
        return get_opened_keys(self).get(key, self.open)

    @property
    @abstractmethod
    def merge(self) -> Mapping[str, str]:
        """How partial columns become totals, as SQL aggregates."""

    @property
    @abstractmethod
    def direct(self) -> Mapping[str, str]:
        """The totals of `merge` straight from the inputs, as SQL aggregates: plain Spark's way."""

    @property
    def final(self) -> Mapping[str, str]:
        """The columns of a result, as SQL expressions over the totals; by default the totals."""
        return {name: name for name in self.merge}

    def list_columns(self, result: str) -> Mapping[str, str]:
        """The columns of one of several results by their names in it, without window bounds."""
        raise KeyError(result)

    @property
    def top(self) -> tuple[str, int] | None:
        """Column and number: keep only that many results a window, those with the most of it."""
        return None


def aggregate(
    rows: "pa.Table", aggregations: Sequence[Aggregation], keys: Sequence[str] = (KEY,)
) -> "pa.Table":
    """Group `rows` by pane and key: their hash, latest time and number, and `aggregations`."""
    asked = [
        (KEY_HASH, "min", KEY_HASH),
        (EVENT_TIME, "max", EVENT_TIME),
        (KEY_HASH, "count", RECORDS),
        *aggregations,
    ]
    grouped = rows.group_by([PANE, *keys], use_threads=False).aggregate(
        [(column, function) for column, function, _ in asked]
    )
    made = {f"{column}_{function}": name for column, function, name in asked}
    return grouped.rename_columns([made.get(name, name) for name in grouped.column_names])
