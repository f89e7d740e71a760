"""Sums a partition's figures of a batch chunk by chunk, and makes the report of them."""

import os
import platform
import time
from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unskew.config.models.window import Windows
from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.spark.report import (
    HEAVY_KEYS,
    LATENCY_BOUNDS_SECONDS,
    SAMPLED_KEYS,
    PartitionReport,
    compute_loads_under_key,
    sum_by_window_end,
)
from unskew.jobs.operators.base import EVENT_TIME, KEY, KEY_HASH, PANE, RECORDS, SECONDS
from unskew.jobs.operators.user_code.opened import OpenCounts
from unskew.jobs.query.prepare import ARRIVED

_LATENCIES_A_CHUNK = 4096
_NAMED_KEYS = 16
_RECORDS_MAX = 2**31 - 1


def add_panes(rows: pa.Table, windows: Windows | None) -> pa.Table:
    """Add the column `pane`, which rows do not bring along: it follows from their event time."""
    if PANE in rows.column_names:
        return rows
    if windows is None:
        return rows.append_column(PANE, pa.array(np.zeros(rows.num_rows, np.int64)))
    micros = rows[EVENT_TIME].cast(pa.int64()).to_numpy()
    return rows.append_column(PANE, pa.array(micros - np.mod(micros, windows.pane)))


def find_last_ends(windows: Windows, panes: Int64s) -> Int64s:
    """Find, for each pane, the end of the last window that its records are in."""
    ends: Int64s = panes - np.mod(panes, windows.slide.amount) + windows.duration.amount
    return ends


@dataclass
class Meter:
    """The sums over a partition's chunks, and its partials without their totals."""

    name_keys: bool
    partitions: int
    seed: int
    windows: Windows | None
    keys: tuple[str, ...] = (KEY,)
    """The columns of the key."""
    records: int = 0
    busy_seconds: float = 0.0
    state_bytes: int = 0
    latency_counts: Int64s = field(
        default_factory=lambda: np.zeros(len(LATENCY_BOUNDS_SECONDS) + 1, np.int64)
    )
    latency_seconds: float = 0.0
    results: tuple[str, ...] = ()
    """The results of a job with several: the column `key` names the result that a row is of."""
    result_rejected: Counter[str] = field(default_factory=Counter)
    counted: list[pa.Table] = field(default_factory=list)

    def add(self, rows: pa.Table, partials: pa.Table, seconds: float) -> None:
        """One chunk: its rows, the partials made of them, and how long that took."""
        self.records += rows.num_rows
        self.busy_seconds += seconds
        self.state_bytes += partials.nbytes
        names = [KEY_HASH, RECORDS, *self._list_name_columns()]
        names += [PANE] if self.windows else []
        names += [KEY] if self.results and KEY not in names else []
        names += [SECONDS] if SECONDS in partials.column_names else []
        self.counted.append(partials.select(names))
        self._add_latencies(rows)

    def add_rejected(self, rows: pa.Table) -> None:
        """Count the rejected rows by the result that could not use them; some are of no result."""
        if self.results and rows.num_rows:
            counts = pc.value_counts(rows[KEY].combine_chunks().drop_null()).to_pylist()
            self.result_rejected.update({each["values"]: each["counts"] for each in counts})

    def report(self, rejected: dict[str, int], opened: OpenCounts | None = None) -> PartitionReport:
        """The report of all chunks, with the rejected records by reason, and what was opened."""
        opened = opened or OpenCounts()
        keys = self._sum_by_key()
        hashes: UInt64s = keys[KEY_HASH].to_numpy().astype(np.int64).view(np.uint64)
        counts = keys[RECORDS].to_numpy().astype(np.int64)
        timed = SECONDS in keys.column_names
        seconds = keys[SECONDS].to_numpy() if timed else np.empty(0)
        homes = compute_loads_under_key(hashes, counts, seconds, self.partitions, self.seed)
        ends = self._count_window_ends()
        by_result = self._count_by_result(ends[0])
        sampled = _find_smallest(hashes, SAMPLED_KEYS)
        heavy = np.argsort(-(seconds if timed else counts), kind="stable")[:HEAVY_KEYS]
        return PartitionReport(
            records=self.records,
            busy_seconds=self.busy_seconds,
            keys=hashes.size,
            state_bytes=self.state_bytes,
            latency_counts=self.latency_counts,
            latency_seconds=self.latency_seconds,
            heavy_hashes=hashes[heavy],
            heavy_records=counts[heavy],
            heavy_seconds=seconds[heavy] if timed else seconds,
            heavy_names=self._read_names(keys.take(heavy[:_NAMED_KEYS])) if self.name_keys else (),
            sample_hashes=hashes[sampled],
            sample_records=np.minimum(counts[sampled], _RECORDS_MAX).astype(np.int32),
            home_partitions=homes.partitions,
            home_records=homes.records,
            home_seconds=homes.seconds,
            window_ends=ends[0],
            window_records=ends[1],
            rejected=rejected,
            executor=_name_executor(),
            results=dict(zip(self.results, by_result[0], strict=True)),
            result_window_records=by_result[1],
            result_rejected=self.result_rejected,
            open_hits=opened.hits,
            open_misses=opened.misses,
            open_seconds=opened.seconds,
        )

    def _add_latencies(self, rows: pa.Table) -> None:
        # Evenly spaced rows stand for their neighbours: a histogram needs no more.
        step = max(1, rows.num_rows // _LATENCIES_A_CHUNK)
        name = ARRIVED if ARRIVED in rows.column_names else EVENT_TIME
        arrived = rows[name].to_numpy()[::step].astype("datetime64[us]").astype(np.int64)
        if not arrived.size:
            return
        waited = np.maximum(time.time() - arrived / 1e6, 0.0)
        share = rows.num_rows / arrived.size
        bounds = np.searchsorted(LATENCY_BOUNDS_SECONDS, waited)
        counts = np.bincount(bounds, minlength=self.latency_counts.size) * share
        self.latency_counts += np.rint(counts).astype(np.int64)
        self.latency_seconds += float(waited.sum()) * share

    def _list_name_columns(self) -> list[str]:
        return list(self.keys) if self.name_keys else []

    def _read_names(self, keys: pa.Table) -> tuple[str, ...]:
        """The names of keys; of one of several columns, all of them."""
        columns = [_read_texts(keys[name]) for name in self.keys]
        return tuple(", ".join(filter(None, parts)) for parts in zip(*columns, strict=True))

    def _sum_by_key(self) -> pa.Table:
        """One row a key: its hash, its name if that is shown, its records, its time if measured."""
        names = [KEY_HASH, *self._list_name_columns()]
        if not self.counted:
            return pa.table({name: [] for name in [*names, RECORDS]})
        table = pa.concat_tables(self.counted)
        summed = [name for name in (RECORDS, SECONDS) if name in table.column_names]
        keys = table.group_by(names).aggregate([(name, "sum") for name in summed])
        return keys.rename_columns([*names, *summed])

    def _count_by_result(self, ends: Int64s) -> tuple[list[int], Int64s]:
        """The records of each result, and how many of them are at each end of last windows."""
        records = [0] * len(self.results)
        at_ends = np.zeros((len(self.results), ends.size), np.int64)
        if not self.results or not self.counted:
            return records, at_ends
        table = pa.concat_tables(self.counted)
        for number, name in enumerate(self.results):
            own = table.filter(pc.equal(table[KEY], name))
            counts = own[RECORDS].to_numpy().astype(np.int64)
            records[number] = int(counts.sum())
            if self.windows is not None:
                last = find_last_ends(self.windows, own[PANE].to_numpy())
                # Ends that are beyond those listed are counted at the latest, as in `ends`.
                positions = np.minimum(np.searchsorted(ends, last), ends.size - 1)
                np.add.at(at_ends[number], positions, counts)
        return records, at_ends

    def _count_window_ends(self) -> tuple[Int64s, Int64s]:
        """The ends of the records' last windows, and how many records each."""
        if self.windows is None or not self.counted:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        panes = pa.concat_tables(self.counted).group_by(PANE).aggregate([(RECORDS, "sum")])
        ends = find_last_ends(self.windows, panes[PANE].to_numpy())
        return sum_by_window_end(ends, panes[f"{RECORDS}_sum"].to_numpy())


def _find_smallest(hashes: UInt64s, count: int) -> Int64s:
    """Find the positions of the smallest hashes, in the order of the hashes."""
    chosen = np.arange(hashes.size)
    if hashes.size > count:
        chosen = np.argpartition(hashes, count)[:count]
    smallest: Int64s = chosen[np.argsort(hashes[chosen])]
    return smallest


def _name_executor() -> str:
    """Name where this task runs: the executor's host, and the process that forks its workers."""
    return f"{platform.node()}/{os.getppid()}"


def _read_texts(keys: pa.ChunkedArray) -> tuple[str, ...]:
    """Keys as texts, a null as an empty one; Spark's strings may hold bytes that are none."""
    texts = keys if pa.types.is_string(keys.type) else keys.cast(pa.string())
    keys_or_none = texts.cast(pa.binary()).to_pylist()
    return tuple((key or b"").decode(errors="replace") for key in keys_or_none)
