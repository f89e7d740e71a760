"""Rows and results in a table of Parquet files or of Delta, partitioned by columns."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, Field

from unskew.config.models.base import IDENTIFIER, Expression, Location
from unskew.config.models.operator import OperatorOptions
from unskew.config.models.sink import Identity
from unskew.config.models.window import Merge
from unskew.config.rules.folders import normal
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.config.specs import OPERATORS
from unskew.config.types.partition_columns import PartitionColumn, partition_column
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.operators.registry import list_result_columns, make_operator_of_result
from unskew.jobs.sinks.base import Batch, Sink
from unskew.jobs.sinks.tables.delta import DeltaTarget, read_delta_layout
from unskew.jobs.sinks.tables.layout import (
    ELSEWHERE,
    Layout,
    check_layout,
    read_owner,
    say_whose,
    take_table,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from unskew.config.models.job import Job
    from unskew.jobs.sinks.tables.log import TableFile

PARTITION_COLUMNS_MAX = 16
ALL_COLUMNS = "a table partitioned by all of its columns has no column for its files"
DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    # Delta reads its own log in 50 tasks, which takes longer than most batches.
    "spark.databricks.delta.snapshotPartitions": "2",
}


def _partition_by(texts: list[str]) -> list[str]:
    names = [partition_column(text).name.lower() for text in texts]
    for text, name in zip(texts, names, strict=True):
        if not IDENTIFIER.fullmatch(name):
            raise make_rule_error("a column, or EXPRESSION AS NAME", f'write "{text} AS a_name"')
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise make_rule_error(f'columns of different names ("{twice}" is a duplicate)')
    return texts


class TableSink(Sink):
    """Adds rows to a table of Parquet files or of Delta.

    Rows, or results, in a table on a file system, partitioned by columns.
    """

    # A Delta table is merged with in several passes over the results.
    computes_every_row: ClassVar[bool] = False
    takes_rows: ClassVar[bool] = True

    format: Literal["parquet", "delta"] = Field(examples=["delta"])
    """`delta`: each row exactly once for every reader; Unskew fetches Delta's jars. `parquet`: once
    for readers in Spark, which go by the log `_spark_metadata`; after a crash, others may meet
    files that are not in it. Results need `merge.output: append` there, and no other sink."""
    path: Location = Field(examples=["/data/events"])
    """The table's folder, a path or a URI."""
    partition_by: Annotated[
        list[Expression],
        Field(max_length=PARTITION_COLUMNS_MAX),
        AfterValidator(_partition_by),
    ] = Field(default_factory=list, examples=[["country", "date(ts) AS day"]])
    """The columns that the table is partitioned by: columns of its rows, or SQL expressions over
    them, each with `AS` and a name (`date(ts)` alone is called `date_ts`). With the operator `rows`
    this is the key of the grouping."""
    schema_changes: Literal["refuse", "merge"] = "refuse"
    """When the table has other columns than the rows: `refuse` stops the job with a sentence before
    anything is written; `merge` adds columns that are new. Another type is always refused."""

    file_cost_bytes: Annotated[int, Field(ge=1, le=2**30)] | None = Field(None, examples=[200_000])
    """With `grouping.balance: bytes`: what it takes a writer to begin and end a file, as bytes that
    it would write meanwhile. Each value that a writer has counts so much beside its rows."""

    @property
    def partition_columns(self) -> list[PartitionColumn]:
        """What the table is partitioned by, in order."""
        return [partition_column(text) for text in self.partition_by]

    @property
    def jar_sets(self) -> Sequence[str]:
        return ["delta"] if self.format == "delta" else []

    def spark_settings(self) -> Mapping[str, str]:
        return DELTA_SETTINGS if self.format == "delta" else {}

    def identity(self) -> Identity:
        return Identity("path", (normal(self.path),))

    def folders(self) -> Mapping[str, str]:
        return {"path": self.path}

    @agrees_with("operator", "merge")
    def can_take_updates(self, operator: OperatorOptions, merge: Merge) -> Iterator[Contradiction]:
        """Results in Parquet need `merge.output: append`: a row in a file cannot be updated."""
        merges = OPERATORS.load(operator.type).merges
        if self.format == "parquet" and merges and merge.output != "append":
            yield Contradiction(
                ("format",),
                f"parquet contradicts merge.output {merge.output}: a row in a file cannot be"
                " updated",
                "write merge.output: append, or format: delta",
            )

    @agrees_with("grouping")
    def files_cost_what_is_balanced(self, grouping: Any) -> Iterator[Contradiction]:
        """What a file costs counts where bytes are balanced."""
        if self.file_cost_bytes is not None and getattr(grouping, "balance", "") != "bytes":
            yield Contradiction(
                ("file_cost_bytes",),
                "has no effect where the grouping does not balance bytes",
                "write grouping: {type: level, balance: bytes}, or remove it",
            )

    @agrees_with("sinks", "operator")
    def commits_alone(self, sinks: list[Any], operator: OperatorOptions) -> Iterator[Contradiction]:
        """Parquet is written once only by Spark's own sink, which shares a batch with nothing."""
        if self.format != "parquet":
            return
        if len(sinks) > 1:
            yield Contradiction(
                ("format",),
                "parquet beside another sink would have a batch twice after a crash",
                "write format: delta, or a job for each sink",
            )
        if OPERATORS.load(operator.type)(operator).top is not None:
            yield Contradiction(
                ("format",),
                "parquet contradicts operator.top: only Spark's own sink writes each batch once,"
                " and top is applied outside of it: after a crash a batch would be written twice",
                "write format: delta, or remove top",
            )

    @agrees_with("operator", "window")
    def partition_columns_are_results(
        self, operator: OperatorOptions, window: Any
    ) -> Iterator[Contradiction]:
        """Columns that a table of results is partitioned by are columns of a result."""
        made = make_operator_of_result(operator, self.result)
        if not made.merges:
            return
        names = list(self.names) or list_result_columns(made, window)
        known = {name.lower() for name in names}
        for index, (name, expression) in enumerate(self.partition_columns):
            if expression is None and name.lower() not in known:
                yield Contradiction(
                    ("partition_by", index),
                    self.describe_no_column(operator, name),
                    suggest_nearest(name, names),
                )
            if expression is not None and name.lower() in known:
                yield Contradiction(
                    ("partition_by", index),
                    f'a result of operator.type {operator.type} has a column "{name}" already',
                    f'name it otherwise, as in "{expression} AS {name}_2"',
                )
        if known <= {column.name.lower() for column in self.partition_columns}:
            yield Contradiction(("partition_by",), ALL_COLUMNS, "leave a column out of it")

    def replaces_results(self, merge: Merge) -> bool:
        return merge.output != "append"

    def problems(self, job: "Job") -> Iterator[str]:
        from unskew.jobs.checkpoint.spark_log import read_newest_offset
        from unskew.jobs.sinks.tables.log import find_other_contents

        begun = read_newest_offset(job)
        other = find_other_contents(self.path, self.format, begun=begun >= 0)
        if other is not None:
            yield f"table: {self.path}: {other}"
            return
        others = list(self._find_other_query(job, begun)) if self.format == "parquet" else []
        yield from others or self._find_lost_log(job)

    def _find_other_query(self, job: "Job", begun: int) -> Iterator[str]:
        """Whose batches Spark would mix up with the job's, as it goes by their numbers alone."""
        from unskew.jobs.checkpoint.spark_log import find_query_id
        from unskew.jobs.sinks.tables.log import has_batch

        owner = read_owner(self.path)
        if owner is not None and owner.job != job.name:
            yield f"table: {self.path}: {say_whose(owner)}"
        if has_batch(self.path, begun + 1):
            yield (
                f"table: {self.path}: has batches of another checkpoint, and {job.checkpoint} has"
                f" begun none after {begun}: Spark would skip batches of these"
                f" numbers as written already; {ELSEWHERE}"
            )
        elif owner is not None and owner.query is not None and has_batch(self.path, 0):
            query = find_query_id(job)
            if query not in {None, owner.query}:
                yield (
                    f"table: {self.path}: is written from the checkpoint {owner.checkpoint}, and"
                    f" {job.checkpoint} is no copy of that; {ELSEWHERE}"
                )

    def _find_lost_log(self, job: "Job") -> Iterator[str]:
        """Batches that the checkpoint has committed and the table's log lacks."""
        from unskew.jobs.checkpoint.spark_log import read_last_commit
        from unskew.jobs.sinks.tables.log import DELTA_LOG, SPARK_LOG, lacks_batches, lacks_log

        committed = read_last_commit(job)
        if self.format == "delta":
            log, lost = DELTA_LOG, committed >= 0 and lacks_log(self.path)
            reason, remedy = "readers go by it and would lose rows", "name another folder"
        else:
            log, lost = SPARK_LOG, lacks_batches(self.path, committed)
            reason = "Spark reads no table whose log lacks any"
            remedy = "take a new checkpoint and folder, or write format: delta"
        if lost:
            yield (
                f"table: {self.path}: its log {log} lacks batches until {committed}, which"
                f" {job.checkpoint} has committed: {reason}; restore it, or {remedy}"
            )

    @agrees_with("spark")
    def has_deltas_extension(self, spark: Mapping[str, Any]) -> Iterator[Contradiction]:
        """Delta's SQL is an extension of Spark's, which a setting of the job's own replaces."""
        own = spark.get("spark.sql.extensions")
        needed = DELTA_SETTINGS["spark.sql.extensions"]
        if self.format == "delta" and own is not None and needed not in str(own):
            yield Contradiction(
                ("format",),
                "delta contradicts spark.spark.sql.extensions, which lacks Delta's",
                f"add {needed} there",
            )

    def stream(self, results: "DataFrame", job: "Job") -> "DataStreamWriter | None":
        if not self._can_stream(job):
            return None
        rows, names = self._prepare(results, job)
        writer = rows.writeStream.format(self.format).option("path", self.path)
        if self.format == "delta" and self.schema_changes == "merge":
            writer = writer.option("mergeSchema", "true")
        return writer.partitionBy(*names) if names else writer

    def skips(self, batch: int, job: "Job") -> bool:
        from unskew.jobs.checkpoint.spark_log import read_query_id
        from unskew.jobs.sinks.tables.log import has_batch, has_transaction

        if not self._can_stream(job):
            return False
        if self.format == "parquet":
            return has_batch(self.path, batch)
        return has_transaction(self.path, read_query_id(job), batch)

    def list_damaged_files(self) -> Sequence[str]:
        from unskew.jobs.sinks.tables.log import list_damaged_files

        return list_damaged_files(self.path)

    def read_batch_files(self, batch: int, query: str) -> "list[TableFile] | None":
        # The table's log has those of an old batch no more.
        from unskew.jobs.sinks.tables.log import list_files_of_batch, list_files_of_transaction

        if self.format == "parquet":
            return list_files_of_batch(self.path, batch)
        return list_files_of_transaction(self.path, query, batch)

    def write(self, results: "DataFrame", batch: Batch) -> None:
        from unskew.jobs.sinks.tables.delta import append, merge

        assert self.format == "delta", "checked by commits_alone and can_take_updates"
        rows, names = self._prepare(results, batch.job)
        target = DeltaTarget(self.path, names, merges_columns=self.schema_changes == "merge")
        if self._can_stream(batch.job):
            append(rows, target, batch)
        else:
            merge(rows, target, self.result_key(batch.job))

    def _can_stream(self, job: "Job") -> bool:
        """Are rows only added? Spark's own sink cannot update them."""
        return job.merge.output == "append" or not OPERATORS.load(job.operator.type).merges

    def _prepare(self, results: "DataFrame", job: "Job") -> "tuple[DataFrame, list[str]]":
        """The rows as the table takes them, and the names of what it is partitioned by.

        An ExternalError if it does not take them, before anything is written.
        """
        rows = self._add_partition_columns(results)
        table = self._check_layout(rows, job)
        spelled = rows if table is None else table.rename(rows)
        return spelled, self._partition_names(spelled)

    def _check_layout(self, rows: "DataFrame", job: "Job") -> Layout | None:
        """Compare the table's columns with those of the rows; the layout of what is there."""
        layout = Layout.from_rows(rows, self._partition_names(rows))
        merges_columns = self.schema_changes == "merge"
        if self.format == "parquet":
            return take_table(self.path, layout, job, merges_columns=merges_columns)
        table = read_delta_layout(rows.sparkSession, self.path)
        if table is not None:
            check_layout(self.path, table, layout, merges_columns=merges_columns)
        return table

    def _partition_names(self, rows: "DataFrame") -> list[str]:
        """List the columns of the partitioning, as the rows spell them."""
        spelled = {name.lower(): name for name in rows.columns}
        return [spelled[column.name.lower()] for column in self.partition_columns]

    def _add_partition_columns(self, results: "DataFrame") -> "DataFrame":
        """Add what the results are partitioned by; rows have those columns already."""
        from pyspark.sql import functions as sf

        there = {name.lower() for name in results.columns}
        missing = {
            column.name: sf.expr(column.expression)
            for column in self.partition_columns
            if column.expression is not None and column.name.lower() not in there
        }
        return results.withColumns(missing) if missing else results
