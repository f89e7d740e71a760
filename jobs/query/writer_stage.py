"""The stage of rows that are written where they were routed to: it counts them, and reports.

Rows themselves stay in the JVM. What crosses into Python is a row's hash, its time of arrival and
the text of a rejected record; what comes back is whether the row is to be written.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.pandas.functions import arrow_udf

from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.router import read_task_position
from unskew.jobs.operators.base import KEY, KEY_HASH, RECORDS
from unskew.jobs.query.meter import Meter
from unskew.jobs.query.partial import CHUNK_ROWS
from unskew.jobs.query.prepare import ARRIVED, REJECTED
from unskew.jobs.query.rejected import keep_rejected, make_packed, unpack_rejected

_IS_WRITTEN = "is_written"
Chunks = Iterator[tuple[pa.Array, ...]]


@dataclass(frozen=True)
class WriterStage:
    """The body of the UDF: one call a partition of a batch."""

    partitions: int
    journal: Journal
    name_keys: bool = False
    seed: int = 0
    """The job's seed, which decides the home of each key."""

    def keep_accepted(self, rows: DataFrame) -> DataFrame:
        """Keep the rows that are to be written; the others go into the journal."""
        names = [KEY_HASH, ARRIVED, REJECTED, *([KEY] if self.name_keys else [])]
        body: Any = self.count_named if self.name_keys else self.count
        udf: Any = arrow_udf(body, returnType="boolean")  # type: ignore[call-overload]
        # It writes files: without the mark Spark may evaluate it twice.
        inputs = [make_packed(rows) if name == REJECTED else sf.col(name) for name in names]
        marked = rows.withColumn(_IS_WRITTEN, udf.asNondeterministic()(*inputs))
        return marked.where(sf.col(_IS_WRITTEN)).drop(_IS_WRITTEN)

    # Spark reads the kind of a UDF from its annotations: hence one method a number of columns.
    def count(self, chunks: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        """Tell which of a task's rows are to be written, without the names of their keys."""
        return self._count(chunks)

    def count_named(
        self, chunks: Iterator[tuple[pa.Array, pa.Array, pa.Array, pa.Array]]
    ) -> Iterator[pa.Array]:
        """Tell which of a task's rows are to be written, with the names of their keys."""
        return self._count(chunks)

    def _count(self, chunks: Chunks) -> Iterator[pa.Array]:
        batch, partition = read_task_position()
        counter = _Counter(Meter(self.name_keys, self.partitions, self.seed, None))
        rejected: list[pa.Table] = []
        for hashes, arrived, records, *names in chunks:
            is_written = pc.is_null(records)
            rows = pa.table([hashes, arrived, *names], [KEY_HASH, ARRIVED, KEY][: 2 + len(names)])
            if pc.all(is_written).as_py() is False:
                others = records.filter(pc.invert(is_written))
                rejected.append(unpack_rejected(others))
                rows = rows.filter(is_written)
            counter.add(rows)
            yield is_written
        reasons = keep_rejected(self.journal, batch, partition, rejected)
        report = counter.finish().report(reasons).to_snapshot(self.partitions)
        self.journal.write_report(batch, partition, report)


@dataclass
class _Counter:
    """Gathers Spark's small chunks until counting their keys is worth it."""

    meter: Meter
    held: list[pa.Table] = field(default_factory=list)
    rows: int = 0
    started: float = field(default_factory=time.perf_counter)

    def add(self, rows: pa.Table) -> None:
        """Rows that are to be written."""
        self.held.append(rows)
        self.rows += rows.num_rows
        if self.rows >= CHUNK_ROWS:
            self._count()

    def finish(self) -> Meter:
        """The meter, once all rows are counted."""
        if self.rows:
            self._count()
        self.meter.state_bytes = 0  # there are no partials
        return self.meter

    def _count(self) -> None:
        rows = pa.concat_tables(self.held)
        names = [name for name in rows.column_names if name != ARRIVED]
        keys = rows.group_by(names, use_threads=False).aggregate([([], "count_all")])
        now = time.perf_counter()
        self.meter.add(rows, keys.rename_columns([*names, RECORDS]), now - self.started)
        self.held, self.rows, self.started = [], 0, now
