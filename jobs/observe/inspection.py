"""Reads a checkpoint without Spark: balance, hot keys and sizes by batch."""

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from unskew.config.errors import ExternalError
from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.spark.choice_file import read_batch_choice, read_choices
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS
from unskew.jobs.checkpoint.files import list_names, open_journal_in
from unskew.jobs.checkpoint.merge_state import MergePartition, read_merge_state
from unskew.jobs.checkpoint.spark_log import read_watermark
from unskew.jobs.observe.batches.batch import BatchDone, read_routing
from unskew.jobs.observe.batches.batch_stats import HOT_KEYS, BatchStats, read_batch_stats
from unskew.jobs.observe.batches.spark_counts import read_spark_counts
from unskew.jobs.observe.batches.written import read_written_files
from unskew.jobs.observe.figure import PARTITION, Figure, take_value
from unskew.jobs.observe.figures import FIGURES

_HOT_KEYS_A_BATCH = 100


@dataclass(frozen=True)
class Batch:
    """One batch of the journal."""

    done: BatchDone
    """The batch with what the checkpoint keeps of Spark's progress: number and watermark."""
    stats: BatchStats
    dead_letters_written: bool


@dataclass(frozen=True)
class Inspection:
    """A checkpoint's journal, read once."""

    checkpoint: str
    grouping: str | None
    batches: tuple[Batch, ...]
    merge: tuple[MergePartition, ...]
    journal_bytes: int
    journal_batches: int
    state_bytes: int
    """The size of all sources' newest states."""
    figures: tuple[Figure, ...] = FIGURES

    @property
    def loads(self) -> Int64s:
        """Records of each partition over the batches."""
        loads: Int64s = _sum_over_batches([batch.stats.records for batch in self.batches])
        return loads

    @property
    def busy_seconds(self) -> Float64s:
        """Time of each partition over the batches."""
        seconds: Float64s = _sum_over_batches([batch.stats.busy_seconds for batch in self.batches])
        return seconds

    def data(self) -> dict[str, Any]:
        """Give everything as JSON has it."""
        loads = self.loads
        return {
            "checkpoint": self.checkpoint,
            "grouping": self.grouping,
            "records": int(loads.sum()),
            "max_over_mean": _compute_max_over_mean(loads),
            "journal": {
                "bytes": self.journal_bytes,
                "batches": self.journal_batches,
                "routing_state_bytes": self.state_bytes,
            },
            "batches": [
                {
                    **self._take_figures(batch.done, ()),
                    "dead_letters_published": batch.dead_letters_written,
                }
                for batch in self.batches
            ],
            "partitions": self._list_partitions(),
            "hot_keys": self._list_hot_keys(),
            "merge": [
                {"partition": part.partition, "rows": part.rows, "bytes": part.bytes}
                for part in self.merge
            ],
        }

    def _take_figures(self, done: BatchDone, labels: tuple[str, ...]) -> dict[str, Any]:
        """The chosen figures of a batch: with PARTITION those by partition, else all others."""
        return {
            figure.inspect: take_value(figure, done)
            for figure in self.figures
            if figure.inspect and (figure.labels == PARTITION) is (labels == PARTITION)
        }

    def _list_partitions(self) -> list[dict[str, Any]]:
        if not self.batches:
            return []
        loads, busy, last = self.loads, self.busy_seconds, self.batches[-1]
        latencies = _sum_over_batches([batch.stats.latency_counts for batch in self.batches])
        partitions = last.stats.records.size
        columns = {
            name: [None] * partitions if values is None else values.tolist()
            for name, values in self._take_figures(last.done, PARTITION).items()
        }
        return [
            {
                "partition": partition,
                "records": int(loads[partition]),
                "busy_seconds": float(busy[partition]),
                "latency_p99_seconds": _estimate_quantile(latencies[partition], 0.99),
                "last_batch": {
                    **{name: column[partition] for name, column in columns.items()},
                    "executor": last.stats.executors.get(partition, ""),
                },
            }
            for partition in range(partitions)
        ]

    def _list_hot_keys(self) -> list[dict[str, Any]]:
        records: Counter[int] = Counter()
        names: dict[int, str | None] = {}
        for batch in self.batches:
            for key in batch.stats.hot_keys:
                records[key.hash] += key.records
                names[key.hash] = key.name or names.get(key.hash)
        total = max(1, int(self.loads.sum()))
        return [
            {"hash": f"{key:016x}", "name": names[key], "records": count, "share": count / total}
            for key, count in records.most_common(HOT_KEYS)
        ]


def inspect(checkpoint: str, limit: int | None = None) -> Inspection:
    """Read a checkpoint's journal, the newest `limit` batches of it."""
    journal = open_journal_in(checkpoint)
    try:
        numbers = journal.batches()
        newest = numbers[-limit if limit else None :]
        read = [_read(checkpoint, journal, number) for number in newest]
        batches = [batch for batch in read if batch is not None]
        states = next((states for states in map(journal.states, reversed(numbers)) if states), {})
        if not batches and not states:
            raise ExternalError(_describe_missing_journal(checkpoint, journal))
        return Inspection(
            checkpoint,
            next((state.grouping for state in states.values()), None),
            tuple(_keep_same_partitions(batches)),
            read_merge_state(checkpoint),
            journal.sum_size_bytes(),
            len(numbers),
            sum(len(state.to_bytes()) for state in states.values()),
        )
    except SnapshotError as error:
        raise ExternalError(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"inspect: {checkpoint}: cannot be read: {reason}") from error


def _describe_missing_journal(checkpoint: str, journal: Journal) -> str:
    names = list_names(checkpoint)
    if not names:
        return f"inspect: {checkpoint}: is not there, or empty; name a job's checkpoint folder"
    if "offsets" in names:
        choices = read_choices(journal)
        why = "no batch was routed (with grouping none, nothing is)"
        if choices:
            why = f"no batch was routed: grouping auto took {choices[-1].way}: {choices[-1].why}"
        return f"inspect: {checkpoint}: has nothing to show: {why}"
    return f"inspect: {checkpoint}: is not a job's checkpoint: there is no journal in it"


def _read(checkpoint: str, journal: Journal, number: int) -> Batch | None:
    stats = read_batch_stats(checkpoint, journal, number, _HOT_KEYS_A_BATCH)
    if stats is None:
        return None
    routing = read_routing(journal, number)
    written = journal.are_dead_letters_written(number) or not stats.rejected
    files = read_written_files(journal, number)
    progress = _read_progress(checkpoint, number) | read_spark_counts(journal, number)
    done = BatchDone(progress, stats, routing, written=files)
    return Batch(replace(done, choice=read_batch_choice(journal, number)), stats, written)


def _read_progress(checkpoint: str, number: int) -> dict[str, Any]:
    """The number and watermark of a batch, from the checkpoint's logs."""
    progress: dict[str, Any] = {"batchId": number}
    watermark = read_watermark(checkpoint, number)
    if watermark:
        with suppress(ValueError, OverflowError):  # a year that is none, as a damaged file has it
            at = datetime.fromtimestamp(watermark / 1e6, UTC)
            progress["eventTime"] = {"watermark": at.isoformat()}
    return progress


def _keep_same_partitions(batches: list[Batch]) -> list[Batch]:
    """The newest batches with the same number of partitions, whose sums mean the same."""
    if not batches:
        return []
    size = batches[-1].stats.records.size
    since = max(
        (index + 1 for index, batch in enumerate(batches) if batch.stats.records.size != size),
        default=0,
    )
    return batches[since:]


def _sum_over_batches(values: list[Any]) -> Any:
    return np.sum(values, axis=0) if values else np.zeros(0, np.int64)


def _compute_max_over_mean(loads: Int64s) -> float:
    return float(loads.max() / loads.mean()) if loads.sum() else 1.0


def _estimate_quantile(counts: Int64s, share: float) -> float | None:
    """The bound below which such a share of the records is; None if it is above all bounds."""
    total = counts.sum()
    bucket = int(np.searchsorted(np.cumsum(counts), share * total)) if total else counts.size
    return LATENCY_BOUNDS_SECONDS[bucket] if bucket < len(LATENCY_BOUNDS_SECONDS) else None
