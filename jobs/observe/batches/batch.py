"""A finished batch: Spark's progress, the reports in the journal, and how it was routed."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from statistics import fmean
from typing import Any

from unskew.grouping.choice.records import BatchChoice
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.merge_state import MergePartition
from unskew.jobs.observe.batches.batch_stats import BatchStats
from unskew.jobs.observe.batches.rejected_samples import RejectedSample
from unskew.jobs.observe.batches.stages import BatchStages
from unskew.jobs.observe.batches.written import WrittenFiles
from unskew.jobs.operators.base import FILTERED_BY_RESULT, FILTERED_RECORDS, OBSERVED

PARTS = {
    "latestOffset": "latest_offset",
    "getBatch": "get_batch",
    "queryPlanning": "query_planning",
    "walCommit": "wal_commit",
    "addBatch": "add_batch",
    "commitOffsets": "commit_offsets",
}
"""Spark's names of a batch's parts, and the names in the figures."""

OWN = "own"
"""The name of the batch's own grouping among several."""
Lag = dict[tuple[str, str], int]
"""Records behind, by topic and Kafka partition."""


@dataclass(frozen=True)
class Routing:
    """How a batch was routed, all sources together."""

    sources: int
    seconds: float
    hot_keys: int | None = None
    """Distinct keys that the grouping treats as hot; None if its states were not read."""
    signals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    """Mean and greatest over the sources, by the signal's name."""


@dataclass(frozen=True)
class Accounts:
    """What became of a batch's records. If a task ran twice, `read` may count both runs."""

    read: int
    counted: int
    filtered: int
    rejected: int
    late: int


@dataclass(frozen=True)
class BatchDone:
    """A finished batch: Spark's progress, and the stats of the reports (None without rows)."""

    progress: dict[str, Any]
    stats: BatchStats | None
    routing: Routing | None = None
    merge: tuple[MergePartition, ...] = ()
    journal_bytes: int = 0
    journal_batches: int = 0
    written: WrittenFiles | None = None
    """What the batch added to a table; None if the job has no table, or it is not known."""
    stages: BatchStages | None = None
    """When Spark's stages ran; None if that is not known."""
    samples: tuple[RejectedSample, ...] = ()
    """Some of the rejected records."""
    choice: BatchChoice | None = None
    """What `grouping: auto` had taken, and what it takes next."""
    beside_work: Mapping[str, float] = field(default_factory=dict)
    """Seconds beside its work by the cost model, under `OWN` and other groupings; may be empty."""

    @property
    def batch(self) -> int:
        """The batch's number."""
        return int(self.progress["batchId"])

    @property
    def seconds(self) -> float:
        """How long the batch took."""
        return self._read_milliseconds("triggerExecution") / 1000

    @property
    def began(self) -> float:
        """When the batch was triggered, as Unix time."""
        return datetime.fromisoformat(self.progress["timestamp"]).timestamp()

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of the batch's parts, by the names in the figures."""
        return {part: self._read_milliseconds(name) / 1000 for name, part in PARTS.items()}

    @property
    def source_records(self) -> int:
        """Records read, before keys are taken out of them; a retried task may count twice."""
        return int(self.progress.get("numInputRows", 0))

    @property
    def records(self) -> int:
        """Records by the reports; where there are none, by Spark."""
        return self.stats.total if self.stats else self.source_records

    @property
    def has_rows(self) -> bool:
        """Were there rows? By a batch without rows Spark only moves the watermark on."""
        return self.source_records > 0 or self.records > 0

    @property
    def late_partials(self) -> int:
        """Results of keys that the merge dropped as late; each may be of many records."""
        return self._sum_over_merge("numRowsDroppedByWatermark")

    @property
    def late_records(self) -> int | None:
        """Records all whose windows were over; None if that is not known."""
        return self.stats.late_records if self.stats else None

    @property
    def filters(self) -> bool:
        """Were filtered records counted? They are in a job with a `where`."""
        return OBSERVED in (self.progress.get("observedMetrics") or {})

    @property
    def filtered_records(self) -> int:
        """Records of which a `where` of the job is not true; a retried task may count twice."""
        observed = self.progress.get("observedMetrics") or {}
        return int((observed.get(OBSERVED) or {}).get(FILTERED_RECORDS) or 0)

    @property
    def filtered_by_result(self) -> dict[str, int]:
        """Records that each result's `where` did not want, in a job with several."""
        observed = (self.progress.get("observedMetrics") or {}).get(OBSERVED) or {}
        return {
            name.removeprefix(FILTERED_BY_RESULT): int(count or 0)
            for name, count in observed.items()
            if name.startswith(FILTERED_BY_RESULT)
        }

    @property
    def result_accounts(self) -> dict[str, Accounts] | None:
        """The accounts of each of several results, by its name.

        A record that no result can use counts as rejected for each.
        """
        stats, filtered = self.stats, self.filtered_by_result
        if stats is None or not stats.results or stats.result_late is None:
            return None
        late, own = stats.result_late, stats.result_rejected
        of_all = sum(stats.rejected.values()) - sum(own.values())
        return {
            name: Accounts(
                self.source_records,
                counted - late[name],
                self.filtered_records + filtered.get(name, 0),
                of_all + own.get(name, 0),
                late[name],
            )
            for name, counted in stats.results.items()
        }

    @property
    def watermark(self) -> float | None:
        """The watermark of the batch as Unix time; None without windows, or before it first moved.

        It closes the windows that end before it; what comes for those is late in the next batch.
        """
        text = (self.progress.get("eventTime") or {}).get("watermark")
        try:
            return (datetime.fromisoformat(text).timestamp() or None) if text else None
        except ValueError:  # a year beyond 9999, of a checkpoint from before those were rejected
            return None

    @property
    def lag(self) -> Lag:
        """Records behind when the batch began; empty for a source that is not Kafka."""
        return compute_lag(self.progress)

    @property
    def merge_rows(self) -> int:
        """Rows in the merge's state."""
        return self._sum_over_merge("numRowsTotal")

    @property
    def merge_bytes(self) -> int:
        """Memory of the merge's state."""
        return self._sum_over_merge("memoryUsedBytes")

    def limit_hot_keys(self, limit: int, *, names: bool) -> "BatchDone":
        """The batch with its largest keys only, by name or without."""
        if self.stats is None:
            return self
        keys = self.stats.hot_keys[:limit]
        if not names:
            keys = tuple(replace(key, name=None) for key in keys)
        return replace(self, stats=replace(self.stats, hot_keys=keys))

    def _read_milliseconds(self, name: str) -> float:
        return float(self.progress.get("durationMs", {}).get(name, 0))

    def _sum_over_merge(self, name: str) -> int:
        operators = self.progress.get("stateOperators") or ()
        return sum(int(operator.get(name, 0)) for operator in operators)


def compute_lag(progress: Mapping[str, Any]) -> Lag:
    """Compute how far behind the Kafka source was when Spark made this progress."""
    behind: Lag = {}
    for source in progress.get("sources") or ():
        read, latest = (
            _read_offsets(source.get("endOffset")),
            _read_offsets(source.get("latestOffset")),
        )
        for topic, partitions in latest.items():
            for partition, offset in partitions.items():
                end = read.get(topic, {}).get(partition)
                if end is not None:
                    behind[topic, partition] = max(0, int(offset) - int(end))
    return behind


def _read_offsets(value: Any) -> dict[str, dict[str, int]]:
    """Kafka's offsets by topic and partition; empty for another source's, or for none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, dict):
        return {}
    return {topic: offsets for topic, offsets in value.items() if isinstance(offsets, dict)}


def read_routing(journal: Journal, batch: int) -> Routing | None:
    """Read how a batch was routed from what its sources wrote; None if nothing was routed."""
    sources = journal.read_routing_stats(batch).values()
    if not sources:
        return None
    hot = {key for source in sources for key in source.hot_keys.tolist()}
    signals = _sum_up_signals(source.signals for source in sources)
    return Routing(len(sources), sum(source.seconds for source in sources), len(hot), signals)


def _sum_up_signals(signals: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    values: dict[str, list[float]] = {}
    for source in signals:
        for name, value in source.items():
            values.setdefault(name, []).append(value)
    return {name: (fmean(parts), max(parts)) for name, parts in values.items()}
