"""`rows`: computes nothing; decoded records are the rows of a table.

No partial and no merge: records are routed by what the table is partitioned by and written where
they arrive. `prepare_rows` makes the columns, `WriterStage` counts what each writer gets.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field

from unskew.config.models.base import IDENTIFIER, Expression, find_bare_column
from unskew.config.models.operator import OperatorOptions
from unskew.config.models.window import Merge
from unskew.config.problems.problem import Path
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.config.types.partition_columns import PartitionColumn, partition_column
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.operators.base import Operator

COLUMNS_MAX = 2_000
# Types of which Spark partitions no table.
_NOT_ATOMIC = frozenset({"array", "map", "struct", "variant", "void"})
# Names that prepared records have already while the columns are computed.
_RESERVED = frozenset(
    {
        "reject_reason",
        *(f"raw_{name}" for name in ("key", "value", "topic", "partition", "offset", "timestamp")),
        "raw_stamped_on_arrival",
    }
)


def _check_column_name(name: str) -> str:
    if not IDENTIFIER.fullmatch(name):
        raise make_rule_error("a column's name: letters, digits, underscores, no digit first")
    return name


def _check_distinct(columns: dict[str, str] | None) -> dict[str, str] | None:
    names = [name.lower() for name in columns or ()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise make_rule_error(f'"{twice}" is a duplicate: Spark ignores case in names')
    return columns


Columns = Annotated[
    dict[Annotated[str, AfterValidator(_check_column_name)], Expression],
    Field(min_length=1, max_length=COLUMNS_MAX),
    AfterValidator(_check_distinct),
]


class RowsOptions(OperatorOptions):
    """Rows of a table, one for each record. Needs one sink, a `table`."""

    columns: Columns | None = Field(
        default=None, examples=[{"country": "country", "amount": "amount", "ts": "ts"}]
    )
    """The columns of a row, each with the SQL expression that it is, over the decoded columns;
    without it, all decoded and selected columns as they are."""
    where: Expression | None = Field(default=None, examples=["amount > 0"])
    """Only records for which this holds are written; the others are no dead letters."""

    def expressions(self) -> list[tuple[Path, str]]:
        own: list[tuple[Path, str]] = [
            (("columns", name), text) for name, text in (self.columns or {}).items()
        ]
        return [*super().expressions(), *own]

    def list_columns(self, decode: Any, select: Mapping[str, str] | None) -> list[str]:
        """List the columns of a row."""
        if self.columns is not None:
            return list(self.columns)
        return list(dict.fromkeys((*decode.columns, *(select or ()))))

    @agrees_with("sinks")
    def goes_into_a_table(self, sinks: list[Any]) -> Iterator[Contradiction]:
        """`rows` needs exactly one sink, of type table."""
        if [sink.takes_rows for sink in sinks] != [True]:
            yield Contradiction(
                ("type",),
                "rows needs one sink, of type table: partitions of rows are its writers",
                "write one sink of type: table, and another job for other targets",
            )

    @agrees_with("window", "lateness", "merge")
    def has_no_results(self, window: Any, lateness: Any, merge: Merge) -> Iterator[Contradiction]:
        """`rows` aggregates nothing: windows, lateness and the merge have nothing to work on."""
        given = {"window": window.type != "none", "lateness": lateness is not None}
        for name, is_given in {**given, "merge": merge != Merge()}.items():
            if is_given:
                yield Contradiction(
                    ("type",), f"rows aggregates nothing, so {name} has no effect", f"remove {name}"
                )

    @agrees_with("event_time", "on_error")
    def has_no_event_time(self, event_time: str, on_error: str) -> Iterator[Contradiction]:
        """`rows` needs no event time, and calls no code that could raise."""
        for name, is_given in (
            ("event_time", event_time != "timestamp"),
            ("on_error", on_error != "stop"),
        ):
            if is_given:
                yield Contradiction(
                    ("type",), f"rows computes nothing, so {name} has no effect", f"remove {name}"
                )

    @agrees_with("decode", "select")
    def columns_are_not_reserved(
        self, decode: Any, select: Mapping[str, str] | None
    ) -> Iterator[Contradiction]:
        """Some names of columns are taken while a record is prepared."""
        for name in self.list_columns(decode, select):
            if name.lower() in _RESERVED:
                yield Contradiction(
                    ("columns",), f'"{name}" is a name that Unskew uses', "rename the column"
                )

    @agrees_with("decode", "sinks", "select")
    def partition_columns_exist(
        self, decode: Any, sinks: list[Any], select: Mapping[str, str] | None
    ) -> Iterator[Contradiction]:
        """Columns that the table is partitioned by are columns of a row."""
        names = self.list_columns(decode, select)
        known = {name.lower() for name in names}
        for name, expression in _partition_columns(sinks):
            if expression is None and name.lower() not in known:
                yield Contradiction(
                    ("columns",),
                    f'no column "{name}", by which the table is partitioned',
                    suggest_nearest(name, names),
                )
            if expression is not None and name.lower() in known:
                yield Contradiction(
                    ("columns",),
                    f'"{name}" is a column, and partition_by makes another one of that name',
                    f'name it otherwise, as in "{expression} AS {name}_2"',
                )
        if known <= {column.name.lower() for column in _partition_columns(sinks)}:
            yield Contradiction(
                ("columns",),
                "all are in partition_by, and none is left for the table's files",
                "add a column, or leave one out of partition_by",
            )

    @agrees_with("decode", "sinks", "select")
    def partition_columns_are_values(
        self, decode: Any, sinks: list[Any], select: Mapping[str, str] | None
    ) -> Iterator[Contradiction]:
        """A folder's name holds no list, map or struct; the types of expressions Spark checks."""
        types = {name.lower(): kind for name, kind in decode.types.items()}
        for name, expression in _partition_columns(sinks):
            column = _source_of(expression or name, self.columns, select)
            kind = types.get(column.lower(), "")
            if kind in _NOT_ATOMIC:
                yield Contradiction(
                    ("columns",),
                    f'"{name}", by which the table is partitioned, is {kind.upper()}: a folder\'s'
                    " name holds one value",
                    "partition by a field of it, or by an expression over it",
                )


def _source_of(text: str, *renamed: Mapping[str, str] | None) -> str:
    """The decoded column that an expression is, by its new names; empty if it is none."""
    column = find_bare_column(text) or ""
    for names in renamed:
        texts = {name.lower(): text for name, text in (names or {}).items()}
        column = find_bare_column(texts.get(column.lower(), column)) or ""
    return column


def _partition_columns(sinks: list[Any]) -> list[PartitionColumn]:
    texts = (text for sink in sinks for text in getattr(sink, "partition_by", ()))
    return [partition_column(text) for text in texts]


class TableRows(Operator):
    """Rows for a table: nothing is computed."""

    Options = RowsOptions
    merges: ClassVar[bool] = False

    @property
    def key(self) -> str:
        """None of its own: the table's `partition_by` is what is routed by."""
        return "''"

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {}

    @property
    def merge(self) -> Mapping[str, str]:
        return {}

    @property
    def direct(self) -> Mapping[str, str]:
        return {}
