"""The partial stage: a partition's rows of one batch become partials, and a report of them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.types import StructType

from unskew.config.models.operator import OPEN_KEYS
from unskew.config.models.window import Windows
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.router import read_task_position
from unskew.jobs.operators.base import Operator
from unskew.jobs.operators.user_code.failing_rows import (
    OperatorError,
    Part,
    describe_failure,
    make_partials,
    mark_row,
    read_key,
)
from unskew.jobs.operators.user_code.opened import begin_task
from unskew.jobs.query.meter import Meter, add_panes
from unskew.jobs.query.prepare import FAILED_KEY, REJECTED
from unskew.jobs.query.rejected import keep_rejected, unpack_rejected

OPERATOR_FAILED = "operator_failed"
# Rows that an operator sees at once: enough for Arrow to be fast, few enough to stay in memory.
CHUNK_ROWS = 1 << 20


@dataclass(frozen=True)
class PartialStage:
    """The function that `mapInArrow` calls for each partition of a batch."""

    operator: Operator
    partitions: int
    schema: StructType
    journal: Journal
    name_keys: bool = False
    seed: int = 0
    """The job's seed, which decides the home of each key."""
    windows: Windows | None = None
    """The job's windows, whose ends decide which records are late."""
    open_keys: int = OPEN_KEYS
    """For how many keys a worker keeps open what the operator opens."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Emit the partials of the task's rows; then write the partition's report."""
        batch, partition = read_task_position()
        meter = Meter(
            self.name_keys,
            self.partitions,
            self.seed,
            self.windows,
            keys=tuple(self.operator.keys),
            results=tuple(self.operator.parts),
        )
        opened = begin_task(self.operator, self.open_keys)

        def clock() -> float:
            return time.perf_counter() - opened.seconds

        rejected: list[pa.Table] = []
        names = [field.name for field in self.schema.fields]
        for rows in _cut_chunks(batches):
            accepted, others = _split(rows)
            if others.num_rows:
                meter.add_rejected(others)
                rejected.append(_read_rejected(others))
            started = clock()
            for part in make_partials(self.operator, add_panes(accepted, self.windows)):
                if part.partials is None:
                    rejected.append(self._reject_row(part))
                    meter.add_rejected(part.rows)
                else:
                    meter.add(part.rows, part.partials, clock() - started)
                    yield from part.partials.select(names).to_batches()
                started = clock()
        reasons = keep_rejected(self.journal, batch, partition, rejected)
        self.journal.write_report(
            batch, partition, meter.report(reasons, opened).to_snapshot(self.partitions)
        )

    def _reject_row(self, part: Part) -> pa.Table:
        """The record of a row on which the operator raised, if the job goes on without it."""
        if REJECTED not in part.rows.column_names or not part.rows.num_rows:
            line = f"{mark_row(part)}{describe_failure(self.operator, part)}"
            raise OperatorError(line) from part.error
        record = pa.Table.from_struct_array(part.rows[REJECTED])
        key = read_key(part.rows, tuple(self.operator.keys))
        for name, text in (("reason", OPERATOR_FAILED), (FAILED_KEY, key)):
            field = record.schema.field(name)
            position = record.column_names.index(name)
            record = record.set_column(position, field, pa.array([text], field.type))
        return record


def _cut_chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Cut the rows into pieces of CHUNK_ROWS or a little more."""
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= CHUNK_ROWS:
            yield pa.Table.from_batches(held)
            held, rows = [], 0
    if rows:
        yield pa.Table.from_batches(held)


def _read_rejected(rows: pa.Table) -> pa.Table:
    """The records of rejected rows."""
    if pa.types.is_struct(rows.schema.field(REJECTED).type):
        return pa.Table.from_struct_array(rows[REJECTED])
    return unpack_rejected(rows[REJECTED])


def _split(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The accepted rows, and the rejected ones.

    Where accepted rows carry their record, as a struct, it stays with them.
    """
    carried = pa.types.is_struct(rows.schema.field(REJECTED).type)
    reasons = pc.struct_field(rows[REJECTED], "reason") if carried else rows[REJECTED]
    is_rejected = pc.is_valid(reasons)
    if pc.any(is_rejected).as_py():
        others = rows.filter(is_rejected)
        rows = rows.filter(pc.invert(is_rejected))
    else:
        others = rows.slice(0, 0)
    return (rows if carried else rows.drop_columns(REJECTED)), others
