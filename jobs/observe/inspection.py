"""What a checkpoint says of its job without Spark: balance, hot keys, sizes, batch by batch."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from unskew.config.errors import ExternalError
from unskew.grouping.base import Float64s, Int64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.spark.journal import FOLDER, Journal
from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS
from unskew.jobs.checkpoint.files import names_in
from unskew.jobs.checkpoint.merge_state import MergePartition, merge_state
from unskew.jobs.observe.batch_stats import HOT_KEYS, BatchStats, read_batch_stats

_HOT_KEYS_A_BATCH = 100


@dataclass(frozen=True)
class Batch:
    """One batch of the journal."""

    stats: BatchStats
    routing_seconds: float
    sources: int
    published: bool


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
    """Of all sources' newest states."""

    @property
    def loads(self) -> Int64s:
        """Records of each partition over the batches."""
        loads: Int64s = _over_batches([one.stats.records for one in self.batches])
        return loads

    @property
    def busy_seconds(self) -> Float64s:
        """Time of each partition over the batches."""
        seconds: Float64s = _over_batches([one.stats.busy_seconds for one in self.batches])
        return seconds

    def data(self) -> dict[str, Any]:
        """All of it, for programs."""
        loads = self.loads
        return {
            "checkpoint": self.checkpoint,
            "grouping": self.grouping,
            "records": int(loads.sum()),
            "max_over_mean": _max_over_mean(loads),
            "journal": {
                "bytes": self.journal_bytes,
                "batches": self.journal_batches,
                "routing_state_bytes": self.state_bytes,
            },
            "batches": [_batch(one) for one in self.batches],
            "partitions": self._partitions(),
            "hot_keys": self._hot_keys(),
            "merge": [
                {"partition": one.partition, "rows": one.rows, "bytes": one.bytes}
                for one in self.merge
            ],
        }

    def _partitions(self) -> list[dict[str, Any]]:
        if not self.batches:
            return []
        loads, busy, last = self.loads, self.busy_seconds, self.batches[-1].stats
        latencies = _over_batches([one.stats.latency_counts for one in self.batches])
        return [
            {
                "partition": number,
                "records": int(loads[number]),
                "busy_seconds": float(busy[number]),
                "latency_p99_seconds": _quantile(latencies[number], 0.99),
                "last_batch": {
                    "records": int(last.records[number]),
                    "under_key_records": int(last.under_key[number]),
                    "busy_seconds": float(last.busy_seconds[number]),
                    "state_keys": int(last.keys[number]),
                    "state_bytes": int(last.state_bytes[number]),
                    "executor": last.executors.get(number, ""),
                },
            }
            for number in range(last.records.size)
        ]

    def _hot_keys(self) -> list[dict[str, Any]]:
        records: Counter[int] = Counter()
        names: dict[int, str | None] = {}
        for one in self.batches:
            for key in one.stats.hot_keys:
                records[key.hash] += key.records
                names[key.hash] = key.name or names.get(key.hash)
        total = max(1, int(self.loads.sum()))
        return [
            {"hash": f"{key:016x}", "name": names[key], "records": count, "share": count / total}
            for key, count in records.most_common(HOT_KEYS)
        ]


def inspect(checkpoint: str, limit: int | None = None) -> Inspection:
    """Read a checkpoint's journal, the newest `limit` batches of it."""
    journal = Journal(f"{checkpoint.rstrip('/')}/{FOLDER}")
    try:
        numbers = journal.batches()
        if not numbers:
            raise ExternalError(_nothing(checkpoint))
        batches = [_read(journal, number) for number in numbers[-limit if limit else None :]]
        states = next((found for found in map(journal.states, reversed(numbers)) if found), {})
        return Inspection(
            checkpoint,
            next((state.grouping for state in states.values()), None),
            tuple(_same_partitions([one for one in batches if one is not None])),
            merge_state(checkpoint),
            journal.size_bytes(),
            len(numbers),
            sum(len(state.to_bytes()) for state in states.values()),
        )
    except SnapshotError as error:
        raise ExternalError(str(error)) from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"inspect: {checkpoint}: cannot be read: {reason}") from error


def _nothing(checkpoint: str) -> str:
    found = names_in(checkpoint)
    if not found:
        return f"inspect: {checkpoint}: is not there, or empty; name a job's checkpoint folder"
    if "offsets" in found:
        why = "no batch was routed (with grouping none, nothing is)"
        return f"inspect: {checkpoint}: has no journal: {why}"
    return f"inspect: {checkpoint}: is not a job's checkpoint: there is no journal in it"


def _read(journal: Journal, number: int) -> Batch | None:
    stats = read_batch_stats(journal, number, hot_keys=_HOT_KEYS_A_BATCH)
    if stats is None:
        return None
    seconds = journal.routing_seconds(number)
    published = journal.dead_letters_written(number) or not stats.rejected
    return Batch(stats, sum(seconds.values()), len(seconds), published)


def _same_partitions(batches: list[Batch]) -> list[Batch]:
    """The newest batches with one number of partitions: sums over others would mix them up."""
    if not batches:
        return []
    size = batches[-1].stats.records.size
    since = max(
        (place + 1 for place, one in enumerate(batches) if one.stats.records.size != size),
        default=0,
    )
    return batches[since:]


def _batch(one: Batch) -> dict[str, Any]:
    stats = one.stats
    return {
        "batch": stats.batch,
        "records": stats.total,
        "max_over_mean": stats.max_over_mean,
        "under_key_max_over_mean": stats.under_key_max_over_mean,
        "busy_max_over_mean": stats.busy_max_over_mean,
        "busy_seconds": float(stats.busy_seconds.sum()),
        "slowest_partition": stats.slowest,
        "slowest_busy_seconds": float(stats.busy_seconds.max()),
        "replication": stats.replication,
        "sources": one.sources,
        "routing_seconds": one.routing_seconds,
        "state_keys": int(stats.keys.sum()),
        "state_bytes": int(stats.state_bytes.sum()),
        "late_records": stats.late_records,
        "dead_letters": dict(stats.rejected),
        "dead_letters_published": one.published,
    }


def _over_batches(values: list[Any]) -> Any:
    return np.sum(values, axis=0) if values else np.zeros(0, np.int64)


def _max_over_mean(loads: Int64s) -> float:
    return float(loads.max() / loads.mean()) if loads.sum() else 1.0


def _quantile(counts: Int64s, share: float) -> float | None:
    """The bound below which so many of the records were done; None if none was, or above all."""
    total = counts.sum()
    place = int(np.searchsorted(np.cumsum(counts), share * total)) if total else counts.size
    return LATENCY_BOUNDS_SECONDS[place] if place < len(LATENCY_BOUNDS_SECONDS) else None
