"""A finished batch as every display sees it: Spark's progress beside what the journal says."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from unskew.grouping.registry import create
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.route import Router
from unskew.jobs.checkpoint.merge_state import MergePartition
from unskew.jobs.observe.batch_stats import BatchStats

PARTS = {
    "latestOffset": "latest_offset",
    "getBatch": "get_batch",
    "queryPlanning": "query_planning",
    "walCommit": "wal_commit",
    "addBatch": "add_batch",
    "commitOffsets": "commit_offsets",
}
"""Spark's names of a batch's parts, and ours."""

Lag = dict[tuple[str, str], int]
"""Records behind, by topic and Kafka partition."""


@dataclass(frozen=True)
class Routing:
    """How a batch was routed, all sources together."""

    sources: int
    seconds: float
    hot_keys: int
    signals: Mapping[str, tuple[float, float]]
    """Mean and greatest over the sources, by the signal's name."""


@dataclass(frozen=True)
class BatchDone:
    """A finished batch: Spark's progress, and the stats by the reports (none without rows)."""

    progress: dict[str, Any]
    stats: BatchStats | None
    routing: Routing | None = None
    merge: tuple[MergePartition, ...] = ()
    journal_bytes: int = 0
    journal_batches: int = 0

    @property
    def batch(self) -> int:
        """Its number."""
        return int(self.progress["batchId"])

    @property
    def seconds(self) -> float:
        """How long it took."""
        return float(self.progress["durationMs"].get("triggerExecution", 0)) / 1000

    @property
    def parts(self) -> dict[str, float]:
        """Seconds of its parts, by our names."""
        taken = self.progress["durationMs"]
        return {ours: float(taken.get(name, 0)) / 1000 for name, ours in PARTS.items()}

    @property
    def source_records(self) -> int:
        """Records read, before keys are taken out of them; Spark may count a retry twice."""
        return int(self.progress.get("numInputRows", 0))

    @property
    def records(self) -> int:
        """Records by the reports; where there are none, by Spark."""
        return self.stats.total if self.stats else self.source_records

    @property
    def has_rows(self) -> bool:
        """Was there anything to do? By a batch without rows Spark only moves the watermark on."""
        return self.source_records > 0 or self.records > 0

    @property
    def late_partials(self) -> int:
        """Keys' results the merge dropped, their window being over; each may be many records."""
        return self._merge_sum("numRowsDroppedByWatermark")

    @property
    def late_records(self) -> int | None:
        """Records all whose windows were over; None where no report tells."""
        return self.stats.late_records if self.stats else None

    @property
    def merge_rows(self) -> int:
        """Rows in the merge's state."""
        return self._merge_sum("numRowsTotal")

    @property
    def merge_bytes(self) -> int:
        """Memory of the merge's state."""
        return self._merge_sum("memoryUsedBytes")

    def _merge_sum(self, name: str) -> int:
        operators = self.progress.get("stateOperators") or ()
        return sum(int(operator.get(name, 0)) for operator in operators)


def lag_of(progress: Mapping[str, Any]) -> Lag:
    """How far behind the Kafka source was when this progress was made."""
    behind: Lag = {}
    for source in progress.get("sources") or ():
        read, there = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for topic, partitions in there.items():
            for partition, offset in partitions.items():
                done = read.get(topic, {}).get(partition)
                if done is not None:
                    behind[topic, partition] = max(0, int(offset) - int(done))
    return behind


def _offsets(value: Any) -> dict[str, dict[str, int]]:
    """Kafka's offsets by topic and partition; nothing for another source's, or none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, dict):
        return {}
    return {topic: found for topic, found in value.items() if isinstance(found, dict)}


def routing_of(router: Router | None, journal: Journal, batch: int) -> Routing | None:
    """How a batch was routed, by what its sources left; None if nothing was."""
    seconds = journal.routing_seconds(batch)
    if router is None or not seconds:
        return None
    hot: set[int] = set()
    signals: list[dict[str, float]] = []
    for source, state in journal.states(batch).items():
        grouping = create(
            router.grouping,
            partitions=router.partitions,
            source=source,
            sources=max(len(seconds), source + 1),
            seed=router.seed,
            **router.options,
        )
        grouping.restore(state)
        hot.update(int(key) for key in grouping.hot_keys())
        signals.append(grouping.signals())
    return Routing(len(seconds), sum(seconds.values()), len(hot), _over_sources(signals))


def _over_sources(signals: Iterable[Mapping[str, float]]) -> dict[str, tuple[float, float]]:
    values: dict[str, list[float]] = {}
    for one in signals:
        for name, value in one.items():
            values.setdefault(name, []).append(value)
    return {name: (fmean(found), max(found)) for name, found in values.items()}
