"""The partial stage: a partition's rows of one batch become partials, and a report of them."""

import os
import platform
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import (
    HEAVY_KEYS,
    LATENCY_BOUNDS_SECONDS,
    SAMPLED_KEYS,
    PartitionReport,
    ends_of,
    homes_of,
)
from unskew.grouping.spark.route import task_position
from unskew.jobs.checkpoint.lateness import Windows
from unskew.jobs.operators.base import KEY, KEY_HASH, PANE, RECORDS, SECONDS, Operator

BAD = "bad"
ARRIVED = "arrived"
# Rows that an operator sees at once: enough for Arrow to be fast, few enough to stay in memory.
CHUNK_ROWS = 1 << 20
_LATENCIES_A_CHUNK = 4096


@dataclass(frozen=True)
class PartialStage:
    """What `mapInArrow` calls for each partition of a batch."""

    operator: Operator
    partitions: int
    schema: StructType
    journal: Journal
    name_keys: bool = False
    seed: int = 0
    """The job's, by which keys have their homes."""
    windows: Windows | None = None
    """The job's, by whose ends records are late."""

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Emit the partials of the task's rows; then write the partition's report."""
        batch, partition = task_position()
        meter = _Meter(self.name_keys, self.partitions, self.seed, self.windows)
        bad: list[pa.Table] = []
        names = [one.name for one in self.schema.fields]
        for rows in _gathered(batches):
            good, refused = _parted(rows)
            if refused.num_rows:
                bad.append(refused)
            started = time.perf_counter()
            partials = self.operator.partial(good)
            meter.add(good, partials, time.perf_counter() - started)
            yield from partials.select(names).to_batches()
        reasons = self._keep_bad(batch, partition, bad)
        self.journal.write_report(
            batch, partition, meter.report(reasons).to_snapshot(self.partitions)
        )

    def _keep_bad(self, batch: int, partition: int, bad: list[pa.Table]) -> dict[str, int]:
        if not bad:
            return {}
        table = pa.concat_tables(bad)
        self.journal.write_bad(batch, partition, table)
        counted = pc.value_counts(table["reason"])
        return {entry["values"]: entry["counts"] for entry in counted.to_pylist()}


def partial_stage(routed: DataFrame, stage: PartialStage) -> DataFrame:
    """`routed` as partials; its partitions are the routed ones, nothing moves in between."""
    return routed.mapInArrow(stage, stage.schema)


def _gathered(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows in pieces of CHUNK_ROWS or a little more."""
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


def _parted(rows: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The rows to work on, and the refused ones with their coordinates as columns."""
    refused = pc.is_valid(rows[BAD])
    if not pc.any(refused).as_py():
        return rows.drop_columns(BAD), pa.table({})
    bad = rows.filter(refused)[BAD].combine_chunks()
    if isinstance(bad, pa.ChunkedArray):
        bad = bad.chunk(0)
    return rows.filter(pc.invert(refused)).drop_columns(BAD), pa.Table.from_struct_array(bad)


@dataclass
class _Meter:
    """What a partition counts of its batch."""

    name_keys: bool
    partitions: int
    seed: int
    windows: Windows | None
    records: int = 0
    busy_seconds: float = 0.0
    state_bytes: int = 0
    latency_counts: "np.ndarray" = field(
        default_factory=lambda: np.zeros(len(LATENCY_BOUNDS_SECONDS) + 1, np.int64)
    )
    latency_seconds: float = 0.0
    counted: list[pa.Table] = field(default_factory=list)

    def add(self, rows: pa.Table, partials: pa.Table, seconds: float) -> None:
        """One chunk: its rows, what became of them, and how long that took."""
        self.records += rows.num_rows
        self.busy_seconds += seconds
        self.state_bytes += partials.nbytes
        panes = [PANE] if self.windows else []
        columns = [KEY_HASH, RECORDS, *panes, *self._named(), *_timed(partials)]
        self.counted.append(partials.select(columns))
        self._add_latencies(rows)

    def _add_latencies(self, rows: pa.Table) -> None:
        # Evenly spaced rows stand for their neighbours: a histogram needs no more.
        step = max(1, rows.num_rows // _LATENCIES_A_CHUNK)
        arrived = rows[ARRIVED].to_numpy()[::step].astype("datetime64[us]").astype(np.int64)
        if not arrived.size:
            return
        waited = np.maximum(time.time() - arrived / 1e6, 0.0)
        share = rows.num_rows / arrived.size
        places = np.searchsorted(LATENCY_BOUNDS_SECONDS, waited)
        counts = np.bincount(places, minlength=self.latency_counts.size) * share
        self.latency_counts += np.rint(counts).astype(np.int64)
        self.latency_seconds += float(waited.sum()) * share

    def _named(self) -> list[str]:
        return [KEY] if self.name_keys else []

    def _ends(self) -> tuple[Int64s, Int64s]:
        """The ends of the records' last windows, and how many records each."""
        if self.windows is None or not self.counted:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        panes = pa.concat_tables(self.counted).group_by(PANE).aggregate([(RECORDS, "sum")])
        ends = self.windows.last_ends(panes[PANE].to_numpy())
        return ends_of(ends, panes[f"{RECORDS}_sum"].to_numpy())

    def report(self, bad: dict[str, int]) -> PartitionReport:
        """The report of all chunks."""
        names = [KEY_HASH, *self._named()]
        if self.counted:
            table = pa.concat_tables(self.counted)
            sums = [(name, "sum") for name in (RECORDS, *_timed(table))]
            keys = table.group_by(names).aggregate(sums)
        else:
            keys = pa.table({name: [] for name in [*names, f"{RECORDS}_sum"]})
        hashes: UInt64s = keys[KEY_HASH].to_numpy().astype(np.int64).view(np.uint64)
        counts = keys[f"{RECORDS}_sum"].to_numpy().astype(np.int64)
        timed = f"{SECONDS}_sum" in keys.column_names
        seconds = keys[f"{SECONDS}_sum"].to_numpy() if timed else np.empty(0)
        homes = homes_of(hashes, counts, self.partitions, self.seed)
        ends = self._ends()
        heavy = np.argsort(-(seconds if timed else counts), kind="stable")[:HEAVY_KEYS]
        return PartitionReport(
            self.records,
            hashes.size,
            self.busy_seconds,
            self.state_bytes,
            latency_counts=self.latency_counts,
            latency_seconds=self.latency_seconds,
            heavy_hashes=hashes[heavy],
            heavy_records=counts[heavy],
            heavy_seconds=seconds[heavy] if timed else seconds,
            heavy_names=_texts(keys[KEY].take(heavy[:16])) if self.name_keys else (),
            sample_hashes=np.sort(hashes)[:SAMPLED_KEYS],
            home_partitions=homes[0],
            home_records=homes[1],
            window_ends=ends[0],
            window_records=ends[1],
            bad=bad,
            place=_executor(),
        )


def _executor() -> str:
    """Where this task runs: the executor's host, and the process there that forks its workers."""
    return f"{platform.node()}/{os.getppid()}"


def _timed(partials: pa.Table) -> list[str]:
    """Does the operator say what its keys took?"""
    return [SECONDS] if SECONDS in partials.column_names else []


def _texts(keys: pa.ChunkedArray) -> tuple[str, ...]:
    """Keys as texts; Spark's strings may hold bytes that are none."""
    return tuple(one.decode(errors="replace") for one in keys.cast(pa.binary()).to_pylist())
