"""A batch's stats: the sums over the reports of its partitions."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.choice.key_counts import ReportedKeys
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import (
    LATENCY_BOUNDS_SECONDS,
    PartitionReport,
    estimate_replication,
)
from unskew.jobs.checkpoint.hash_key import hash_with_key, read_hash_key
from unskew.jobs.checkpoint.spark_log import read_late_watermark
from unskew.jobs.observe.batches.written import read_written_files

HOT_KEYS = 10
KEY_TEXT_MAX = 80
_NOTHING_IS_LATE = -(1 << 63)
_NUMBERS = tuple(
    field.name for field in fields(PartitionReport) if isinstance(field.default, int | float)
)
"""The fields of a report that are one number each, and are only shown."""


@dataclass(frozen=True)
class HotKey:
    """A key with many records: its hash for displays, its name if reported, its records."""

    hash: int
    name: str | None
    records: int


@dataclass(frozen=True)
class BatchStats:
    """The stats of one batch; arrays have one entry a partition."""

    batch: int
    records: Int64s
    busy_seconds: Float64s
    numbers: Mapping[str, Int64s | Float64s]
    """The reports' numbers that are for display only, by name."""
    latency_counts: Int64s
    """For each partition, records by bucket of latency."""
    under_key: Int64s
    """Records that each partition would have had under the grouping `key`."""
    under_key_seconds: Float64s
    """How long each would have been busy with them, by the times that were measured here."""
    replication: float
    rejected: Mapping[str, int]
    """Rejected records by reason."""
    hot_keys: tuple[HotKey, ...]
    late_records: int | None = None
    """Records all whose windows were over; None if the watermark is no longer known."""
    executors: Mapping[int, str] = field(default_factory=dict)
    """The executor that each partition was on, as HOST/PROCESS."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Records by result, in a job with several."""
    result_rejected: Mapping[str, int] = field(default_factory=dict)
    """Records that one result alone rejected, by result."""
    result_late: Mapping[str, int] | None = None
    """Records by result all of whose windows were over; None if that is not known."""
    reported_keys: tuple[ReportedKeys, ...] = ()
    """What each partition says of its keys; none where it is of an earlier version."""

    @property
    def total(self) -> int:
        """Records of the batch."""
        return int(self.records.sum())

    @property
    def max_over_mean(self) -> float:
        """Records of the fullest partition over the mean: the slowdown if records cost the same."""
        return _divide_max_by_mean(self.records)

    @property
    def imbalance(self) -> float:
        """How far the fullest partition is above the mean, as a share of all records."""
        return float((self.records.max() - self.records.mean()) / self.total) if self.total else 0.0

    @property
    def under_key_max_over_mean(self) -> float:
        """What `max_over_mean` would have been under the grouping `key`."""
        return _divide_max_by_mean(self.under_key)

    @property
    def busy_max_over_mean(self) -> float:
        """The time of the slowest partition over the mean."""
        return _divide_max_by_mean(self.busy_seconds)

    @property
    def slowest(self) -> int:
        """The partition with the longest time at work."""
        return int(self.busy_seconds.argmax())


def read_batch_stats(
    checkpoint: str, journal: Journal, batch: int, hot_keys: int = HOT_KEYS
) -> BatchStats | None:
    """Read the stats of one batch; None if no partition reported.

    So many hot keys are in them, whose hashes are made with the checkpoint's secret.
    """
    snapshots = journal.reports(batch)
    if not snapshots:
        return None
    reports = {
        partition: PartitionReport.from_snapshot(snapshot)
        for partition, snapshot in snapshots.items()
    }
    size = next(iter(snapshots.values())).partitions
    latencies = np.zeros((size, len(LATENCY_BOUNDS_SECONDS) + 1), np.int64)
    numbers: dict[str, Int64s | Float64s] = {
        name: np.zeros(size, type(getattr(PartitionReport, name))) for name in _NUMBERS
    }
    measured: dict[str, Any] = {
        "records": np.zeros(size, np.int64),
        "busy_seconds": np.zeros(size, np.float64),
    }
    under_key = np.zeros(size, np.int64)
    late = _read_late_watermark(checkpoint, batch, reports.values())
    for partition, report in reports.items():
        for name, column in (measured | numbers).items():
            column[partition] = getattr(report, name)
        if report.latency_counts.size == latencies.shape[1]:
            latencies[partition] = report.latency_counts
        under_key[report.home_partitions] += report.home_records
    measured |= _read_writers_seconds(journal, batch, size)
    busy: Float64s = measured["busy_seconds"]
    return BatchStats(
        batch,
        **measured,
        numbers=numbers,
        latency_counts=latencies,
        under_key=under_key,
        under_key_seconds=_share_out_seconds(reports, busy),
        replication=estimate_replication(reports),
        rejected=_sum_counts(report.rejected for report in reports.values()),
        results=_sum_counts(report.results for report in reports.values()),
        result_rejected=_sum_counts(report.result_rejected for report in reports.values()),
        result_late=_count_late_by_result(late, reports.values()),
        hot_keys=_merge_hot_keys(reports, hot_keys, read_hash_key(checkpoint)),
        late_records=_count_late_records(late, reports.values()),
        executors={partition: report.executor for partition, report in reports.items()},
        reported_keys=tuple(_list_reported_keys(reports.values())),
    )


def _share_out_seconds(reports: Mapping[int, PartitionReport], busy: Float64s) -> Float64s:
    """Share out the time of each partition among where its records would be under `key`.

    By the time of each key where the operator measures it, else by records: those of a partition
    cost the same then, but another partition's may cost more.
    """
    seconds = np.zeros(busy.size, np.float64)
    for partition, report in reports.items():
        timed = report.home_seconds.any()
        weights = report.home_seconds if timed else report.home_records.astype(np.float64)
        if weights.any():
            seconds[report.home_partitions] += busy[partition] * weights / weights.sum()
    return seconds


def _read_writers_seconds(journal: Journal, batch: int, partitions: int) -> dict[str, Float64s]:
    """How long writers were busy, outside of Python: reports have the time to receive the rows."""
    written = read_written_files(journal, batch)
    seconds = None if written is None else written.seconds
    return {} if seconds is None or seconds.size != partitions else {"busy_seconds": seconds}


def _list_reported_keys(reports: Iterable[PartitionReport]) -> Iterator[ReportedKeys]:
    for each in reports:
        if each.sample_records.size == each.sample_hashes.size:
            yield ReportedKeys(
                each.heavy_hashes, each.heavy_records, each.sample_hashes, each.sample_records
            )


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    return dict(total)


def show_key(key: HotKey) -> str:
    """Name a hot key for a display: by its name if it has one, else by its hash."""
    if key.name is None:
        return f"{key.hash:016x}"
    return key.name if len(key.name) <= KEY_TEXT_MAX else f"{key.name[:KEY_TEXT_MAX]}..."


def _read_late_watermark(
    checkpoint: str, batch: int, reports: Iterable[PartitionReport]
) -> int | None:
    """Windows that end by then were over; None if that is no longer known."""
    windowed = any(report.window_ends.size for report in reports)
    return read_late_watermark(checkpoint, batch) if windowed else _NOTHING_IS_LATE


def _count_late_records(watermark: int | None, reports: Iterable[PartitionReport]) -> int | None:
    if watermark is None:
        return None
    return sum(
        int(report.window_records[report.window_ends <= watermark].sum()) for report in reports
    )


def _count_late_by_result(
    watermark: int | None, reports: Iterable[PartitionReport]
) -> dict[str, int] | None:
    late: Counter[str] = Counter()
    for report in (each for each in reports if each.results):
        records = report.result_window_records
        if watermark is None or len(report.results) != len(records):
            return None  # also where a report is of an earlier version
        own = records[:, report.window_ends <= watermark].sum(axis=1).tolist()
        late.update(dict(zip(report.results, own, strict=True)))
    return dict(late)


def _divide_max_by_mean(loads: Int64s | Float64s) -> float:
    return float(loads.max() / loads.mean()) if loads.any() else 1.0


def _merge_hot_keys(
    reports: Mapping[int, PartitionReport], limit: int, hash_key: bytes | None
) -> tuple[HotKey, ...]:
    records: Counter[int] = Counter()
    names: dict[int, str] = {}
    for report in reports.values():
        hashes = [int(key) for key in report.heavy_hashes]
        records.update(dict(zip(hashes, map(int, report.heavy_records), strict=True)))
        names.update(zip(hashes, report.heavy_names, strict=False))
    return tuple(
        HotKey(hash_with_key(key, hash_key), names.get(key), count)
        for key, count in records.most_common(limit)
    )
