"""A report: what one partition says of one batch, kept as metrics and as feedback."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unskew.grouping.base import Feedback, Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.registry import create
from unskew.grouping.snapshot import Snapshot

VERSION = 3
KIND = "report"
HEAVY_KEYS = 256
SAMPLED_KEYS = 4096
HALF_BELIEVED_SECONDS = 0.25
"""Of a partition that worked so long, its own time a record counts as much as that of all."""
WINDOW_ENDS = 4096
LATENCY_BOUNDS_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip


@dataclass(frozen=True)
class PartitionReport:
    """One partition's batch. `place` is the executor, as HOST/PROCESS; `bad` counts by reason."""

    records: int
    keys: int
    busy_seconds: float
    state_bytes: int
    latency_counts: Int64s = field(
        default_factory=lambda: np.zeros(len(LATENCY_BOUNDS_SECONDS) + 1, np.int64)
    )
    latency_seconds: float = 0.0
    heavy_hashes: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    heavy_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    heavy_seconds: Float64s = field(default_factory=lambda: np.empty(0, np.float64))
    heavy_names: tuple[str, ...] = ()
    sample_hashes: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    """The smallest key hashes of the partition, sorted: all of them if they are few."""
    home_partitions: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    """Where its records would be under the grouping `key`: these partitions would have had..."""
    home_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """...so many of them each."""
    window_ends: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """When the last windows of its records end, sorted; none in a job without windows..."""
    window_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """...and how many records that is the end for, as `ends_of` folds them."""
    bad: Mapping[str, int] = field(default_factory=dict)
    place: str = ""

    def to_snapshot(self, partitions: int) -> Snapshot:
        """The report as the journal keeps it."""
        text = json.dumps(
            {"bad": dict(self.bad), "place": self.place, "names": list(self.heavy_names)}
        )
        arrays: dict[str, Any] = {
            "counts": np.array([self.records, self.keys, self.state_bytes], dtype=np.int64),
            "seconds": np.array([self.busy_seconds, self.latency_seconds], dtype=np.float64),
            "latency_counts": self.latency_counts,
            "heavy_hashes": self.heavy_hashes,
            "heavy_records": self.heavy_records,
            "heavy_seconds": self.heavy_seconds,
            "sample_hashes": self.sample_hashes,
            "home_partitions": self.home_partitions,
            "home_records": self.home_records,
            "window_ends": self.window_ends,
            "window_records": self.window_records,
            "text": np.frombuffer(text.encode(), np.uint8),
        }
        return Snapshot(KIND, VERSION, partitions, 0, arrays)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> "PartitionReport":
        """Read what `to_snapshot` made."""
        if (snapshot.grouping, snapshot.version) != (KIND, VERSION):
            raise SnapshotError(
                f"journal: {snapshot.grouping} of version {snapshot.version}, but this is written"
                f" as {KIND} of version {VERSION}: another Unskew wrote it; use a new checkpoint"
            )
        arrays = snapshot.arrays
        records, keys, state_bytes = (int(count) for count in arrays["counts"])
        text = json.loads(arrays["text"].tobytes())
        return cls(
            records,
            keys,
            float(arrays["seconds"][0]),
            state_bytes,
            arrays["latency_counts"],
            float(arrays["seconds"][1]),
            arrays["heavy_hashes"],
            arrays["heavy_records"],
            arrays["heavy_seconds"],
            tuple(text["names"]),
            arrays["sample_hashes"],
            arrays["home_partitions"],
            arrays["home_records"],
            arrays["window_ends"],
            arrays["window_records"],
            text["bad"],
            text["place"],
        )


def feedback_of(reports: Mapping[int, Snapshot], partitions: int) -> Feedback | None:
    """The reports of a batch as a grouping takes them; None if there are none that fit."""
    fitting = {
        partition: PartitionReport.from_snapshot(snapshot)
        for partition, snapshot in sorted(reports.items())
        if snapshot.partitions == partitions and partition < partitions
    }
    if not fitting:
        return None
    records = np.zeros(partitions, np.int64)
    busy = np.zeros(partitions, np.float64)
    for partition, report in fitting.items():
        records[partition] = report.records
        busy[partition] = report.busy_seconds
    busy = _believed(records, busy)
    timed = [
        (partition, report) for partition, report in fitting.items() if report.heavy_seconds.size
    ]
    if not timed:
        return Feedback(records, busy)
    return Feedback(
        records,
        busy,
        np.concatenate(
            [np.full(report.heavy_hashes.size, partition, np.int32) for partition, report in timed]
        ),
        np.concatenate([report.heavy_hashes for _, report in timed]),
        np.concatenate([report.heavy_records for _, report in timed]),
        np.concatenate([report.heavy_seconds for _, report in timed]),
    )


def _believed(records: Int64s, busy: Float64s) -> Float64s:
    """Times as far as they say something of speeds.

    Of a batch of milliseconds they say next to nothing: what a task costs whatever is in it
    outweighs the records, so the partition with the fewest would look slow, and get fewer still.
    """
    own = busy / np.maximum(records, 1)
    mean = busy.sum() / max(int(records.sum()), 1)
    trust = busy / (busy + HALF_BELIEVED_SECONDS)
    return np.where(records > 0, records * (trust * own + (1 - trust) * mean), busy)


def homes_of(hashes: UInt64s, records: Int64s, partitions: int, seed: int) -> tuple[Int32s, Int64s]:
    """Where the grouping `key` would send so many records of each key: partitions, and loads.

    It is asked itself, once a distinct key (5 ns), so nothing is paid for a record.
    """
    homes = create("key", partitions=partitions, seed=seed).route(hashes)
    loads = np.zeros(partitions, np.int64)
    np.add.at(loads, homes, records)
    used = np.flatnonzero(loads)
    return used.astype(np.int32), loads[used]


def ends_of(ends: Int64s, records: Int64s) -> tuple[Int64s, Int64s]:
    """Records by the end of their last window, earliest first, of no more than WINDOW_ENDS ends.

    Those of later ends count to the latest of all. So what is late is never counted too high, and
    too low only where a partition has records of that many windows that are over.
    """
    found, places = np.unique(ends, return_inverse=True)
    if found.size > WINDOW_ENDS:
        places = np.minimum(places, WINDOW_ENDS - 1)
        found = np.append(found[: WINDOW_ENDS - 1], found[-1])
    sums = np.zeros(found.size, np.int64)
    np.add.at(sums, places, records)
    return found, sums


def replication_of(reports: Mapping[int, PartitionReport]) -> float:
    """(key, partition) pairs over distinct keys: exact where partitions have few keys.

    Otherwise over the keys whose hash is below what every partition kept of its own; the same
    keys make numerator and denominator, so that the sampling error all but cancels.
    """
    full = [r.sample_hashes[-1] for r in reports.values() if r.sample_hashes.size >= SAMPLED_KEYS]
    bound = min(full) if full else np.uint64(2**64 - 1)
    kept = [r.sample_hashes[r.sample_hashes <= bound] for r in reports.values()]
    pairs = sum(hashes.size for hashes in kept)
    distinct = np.unique(np.concatenate(kept)).size if pairs else 0
    return pairs / distinct if distinct else 1.0
