"""The contracts of a sink and of a dead-letter target: models whose fields are the options.

A class of a user's own is found under the entry point group `unskew.sinks` (or
`unskew.dead_letters`); the entry's name is its `type` in YAML.

`lint`, `schema` and `explain` load the modules of all targets, so none of these imports Spark,
Arrow or a client before it writes: a test looks at `sys.modules`.
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import AfterValidator, Discriminator, Field, Tag

from unskew.config.errors import UsageError
from unskew.config.models.sink import TargetOptions
from unskew.config.models.window import Merge
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.operators.base import RESULT, WINDOW_BOUNDS
from unskew.jobs.operators.registry import (
    list_key_columns,
    list_result_columns,
    make_operator,
    make_operator_of_result,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from unskew.config.models.job import Job
    from unskew.jobs.sinks.tables.log import TableFile

COLUMNS_MAX = 500


def _check_distinct(columns: Any) -> Any:
    """Check that names are told apart without their case, like tables do."""
    seen = set()
    for name in columns:
        if not name.strip() or name.lower() in seen:
            raise make_rule_error(f'names that are all different ("{name}")', "rename one")
        seen.add(name.lower())
    return columns


_ColumnName = Annotated[str, Field(min_length=1, max_length=255)]
SinkColumns = Annotated[
    Annotated[
        dict[_ColumnName, _ColumnName], Field(min_length=1, max_length=COLUMNS_MAX), Tag("renamed")
    ]
    | Annotated[list[_ColumnName], Field(min_length=1, max_length=COLUMNS_MAX), Tag("as they are")],
    Discriminator(lambda columns: "as they are" if isinstance(columns, list) else "renamed"),
    AfterValidator(_check_distinct),
]


@dataclass(frozen=True)
class RejectedTotal:
    """A total that a sink rejects; it becomes a dead letter."""

    sink: str
    """The sink's type and what it writes to."""
    key: str
    """Window and key, as JSON."""
    reason: str


@dataclass(frozen=True)
class Batch:
    """The micro-batch that is written."""

    id: int
    """Counted from 0 in a checkpoint; a replay has the same."""
    job: "Job"
    session: "SparkSession"
    """The job's session; that of the rows is a copy, which ends with the query."""
    rejected_totals: list[RejectedTotal] = field(default_factory=list)
    """The totals of the batch that could not be written; sinks add to it."""
    check_owner: Callable[[], None] = lambda: None
    """Raises if another start of the job has taken over, as it does from a driver that was frozen.
    A sink that can take a write back calls it last; it may be sent to tasks."""


@dataclass(frozen=True, repr=False)
class WrittenTopic:
    """A Kafka topic that a target writes to."""

    field: str
    """The target's field that names it."""
    name: str
    client_options: Mapping[str, str]
    """How to reach it, as Spark's connector takes it; secrets are in clear."""
    settings: Mapping[str, str]
    """The settings to create the topic with, if it does not exist."""


class Target(TargetOptions):
    """A sink, or a dead-letter target."""

    @property
    def jar_sets(self) -> Sequence[str]:
        """Further sets of jars of `deploy/ivy.xml` that Spark needs for it."""
        return ()

    def spark_settings(self) -> Mapping[str, str]:
        """Settings of Spark that it needs; those of the job go before them."""
        return {}

    def problems(self, job: "Job") -> Iterable[str]:
        """Problems found before Spark starts, a line each."""
        return ()

    def topics(self, job: "Job") -> Sequence[WrittenTopic]:
        """The Kafka topics that it writes to."""
        return ()


class Sink(Target):
    """Takes the results of each batch.

        from unskew import Sink

        class WebhookSink(Sink):
            url: str

            def write(self, results, batch):
                for row in results.toLocalIterator():
                    post(self.url, batch.id, row.asDict())

    The fields are the options in YAML. A batch that is replayed after a crash is written again,
    with the same `batch.id`.
    """

    computes_every_row: ClassVar[bool] = True
    """Does `write` compute all rows of a batch? Where it does not, they are computed before it."""

    result: str | None = Field(default=None, examples=["by_user"])
    """In a job with several results (`operators`), the one that is written."""
    columns: SinkColumns | None = Field(
        default=None, examples=[{"word": "key", "total": "count"}, ["key", "count"]]
    )
    """The columns of a result that are written, in this order: a list of their names, or for each
    name that it has in the sink the column of the result; without it, all as they are."""

    @property
    def names(self) -> Mapping[str, str]:
        """The columns of a result by their names in the sink; empty if they are all as they are."""
        columns = self.columns or {}
        return columns if isinstance(columns, Mapping) else {name: name for name in columns}

    def choose(self, results: "DataFrame", job: "Job") -> "DataFrame":
        """The rows of the sink's result, with the columns that it writes."""
        from pyspark.sql import functions as sf

        rows = results
        if self.result is not None:
            bounds = {name: name for name in WINDOW_BOUNDS if name in results.columns}
            columns = bounds | dict(make_operator(job.operator).list_columns(self.result))
            rows = results.where(sf.col(RESULT) == self.result)
            rows = rows.select(*[sf.col(column).alias(name) for name, column in columns.items()])
        if not self.names:
            return rows
        return rows.select(
            *[sf.col(f"`{column}`").alias(name) for name, column in self.names.items()]
        )

    def result_key(self, job: "Job") -> tuple[str, ...]:
        """The columns that identify a result, by their names in the sink."""
        in_sink = {column: name for name, column in reversed(list(self.names.items()))}
        return tuple(in_sink.get(column, column) for column in list_key_columns(job, self.result))

    def replaces_results(self, merge: Merge) -> bool:
        """Is a result written in the place of an earlier one of the same window and key?"""
        return False

    @agrees_with("operator")
    def takes_a_result(self, operator: Any) -> Iterator[Contradiction]:
        """`result` names one of several results; a job with one has no names."""
        names = operator.result_names()
        if self.result is None and names:
            yield Contradiction(
                ("result",),
                "missing, and the job has several results",
                f"add result: {names[0]}",
            )
        elif self.result is not None and self.result not in names:
            near = suggest_nearest(self.result, names) if names else "remove it"
            yield Contradiction(("result",), f'no result is named "{self.result}"', near)

    @agrees_with("operator", "window", "merge")
    def columns_are_results(
        self, operator: Any, window: Any, merge: Merge
    ) -> Iterator[Contradiction]:
        """`columns` names columns of a result, the key's among them where the sink needs it."""
        if not self.names:
            return
        made = make_operator_of_result(operator, self.result)
        if not made.merges:
            yield Contradiction(
                ("columns",),
                f"columns contradicts operator.type {operator.type}: its rows have columns of"
                " their own",
                "write operator.columns",
            )
            return
        known = list_result_columns(made, window)
        by_name = isinstance(self.columns, Mapping)
        for index, (name, column) in enumerate(self.names.items()):
            if column not in known:
                yield Contradiction(
                    ("columns", name if by_name else index),
                    self.describe_no_column(operator, column),
                    suggest_nearest(column, known),
                )
        key = known[: len(known) - len(made.final)]
        missing = [column for column in key if column not in self.names.values()]
        if missing and self.replaces_results(merge):
            yield Contradiction(
                ("columns",),
                f"without {', '.join(missing)} the sink cannot tell which result is replaced",
                f"add {', '.join(missing)}",
            )

    def describe_no_column(self, operator: Any, column: str) -> str:
        """Say that results have no such column: of several results, which ones."""
        if self.result is not None:
            return f'the result "{self.result}" has no column "{column}"'
        return f'no result of operator.type {operator.type} has a column "{column}"'

    @abstractmethod
    def write(self, results: "DataFrame", batch: Batch) -> None:
        """Write a batch's results, such that writing them again changes nothing.

        What can never be written goes to `batch.rejected_totals`, and the rest is written.
        """

    def stream(self, results: "DataFrame", job: "Job") -> "DataStreamWriter | None":
        """Spark's own writer for a stream, if there is one; it is used where a job has one sink."""
        return None

    def skips(self, batch: int, job: "Job") -> bool:
        """Did the writer of `stream` commit the batch, so that a replay of it runs no tasks?"""
        return False

    def read_batch_files(self, batch: int, query: str) -> "Sequence[TableFile] | None":
        """The files that a query's batch added to a table; None if that is not known."""
        return None

    def list_damaged_files(self) -> Sequence[str]:
        """Files of a log of its own that cannot be read."""
        return ()


class DeadLetters(Target):
    """Takes rejected records, each with its reject reason and where it was read."""

    max_share: Annotated[float, Field(gt=0, lt=1)] | None = Field(default=None, examples=[0.2])
    """Stop the job when more than this share of its records is rejected, of a batch or of several
    that together have 1,000 records; without it, it goes on whatever is rejected."""

    @abstractmethod
    def write(self, records: "DataFrame", batch: Batch, *, more: bool = False) -> None:
        """Write a batch's rejected records.

        The first call of a batch replaces what an earlier attempt left; `more` follow it.
        """

    def read(self, job: "Job") -> Iterator[Mapping[str, Any]]:
        """Read what was written, without Spark: for `unskew dead-letters`.

        Each by the names of the columns that `write` was given, with `key` and `value` as bytes and
        `timestamp` as a text, or as Spark writes them in JSON.
        """
        raise UsageError(f"dead_letters: type {job.dead_letters.type} cannot be read back")
