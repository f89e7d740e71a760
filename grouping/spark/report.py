"""A partition's report of one batch: what routing depends on, and what is only shown.

The two are kept apart in the journal. The measured load is feedback of the next batch's routing: it
has a version and is read strictly, since a retried task must route by the same numbers as the first
attempt. All other fields are read by name: unknown ones are ignored and missing ones have their
defaults, so that a new figure leaves existing checkpoints readable.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Feedback, Float64s, Int32s, Int64s, UInt64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.hashing import hash_partitions
from unskew.grouping.snapshot import Snapshot

VERSION = 4
"""Version of the measured load's layout. Fields that are only shown do not change it."""
KIND = "report"
HEAVY_KEYS = 256
SAMPLED_KEYS = 4096
HALF_WEIGHT_SECONDS = 0.25
"""A partition busy for this long has its own time a record weighted equally with the mean."""
WINDOW_ENDS = 4096
LATENCY_BOUNDS_SECONDS = (
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
)  # fmt: skip
_LOAD_TYPES = {
    "records": np.int64,
    "busy_seconds": np.float64,
    "heavy_hashes": np.uint64,
    "heavy_records": np.int64,
    "heavy_seconds": np.float64,
}
_SHOWN = "shown"


@dataclass(frozen=True, kw_only=True)
class MeasuredLoad:
    """The input of routing: a partition's records and times, in total and of its largest keys."""

    records: int
    busy_seconds: float
    heavy_hashes: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    heavy_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    heavy_seconds: Float64s = field(default_factory=lambda: np.empty(0, np.float64))
    """Empty where the operator does not measure the time of each key."""

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Read the load strictly; a `SnapshotError` says what is wrong with it."""
        return cls(**_load_values(snapshot))


@dataclass(frozen=True, kw_only=True)
class PartitionReport(MeasuredLoad):
    """One partition's batch; every field here is only shown, so every field has a default."""

    keys: int = 0
    state_bytes: int = 0
    latency_counts: Int64s = field(
        default_factory=lambda: np.zeros(len(LATENCY_BOUNDS_SECONDS) + 1, np.int64)
    )
    latency_seconds: float = 0.0
    heavy_names: tuple[str, ...] = ()
    sample_hashes: UInt64s = field(default_factory=lambda: np.empty(0, np.uint64))
    """The smallest key hashes of the partition, sorted: all of them if there are few."""
    sample_records: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    """The records of each; empty in reports of earlier versions."""
    home_partitions: Int32s = field(default_factory=lambda: np.empty(0, np.int32))
    """The partitions that its records would have gone to under the grouping `key`."""
    home_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """How many records each of `home_partitions` would have had of them."""
    home_seconds: Float64s = field(default_factory=lambda: np.empty(0, np.float64))
    """The time of those records; empty where the operator does not measure that of each key."""
    window_ends: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """When the last windows of its records end, sorted; empty in a job without windows."""
    window_records: Int64s = field(default_factory=lambda: np.empty(0, np.int64))
    """How many records have each of `window_ends`, as `sum_by_window_end` limits them."""
    rejected: Mapping[str, int] = field(default_factory=dict)
    """Rejected records by reason."""
    results: Mapping[str, int] = field(default_factory=dict)
    """Records by result, in a job with several."""
    result_window_records: Int64s = field(default_factory=lambda: np.empty((0, 0), np.int64))
    """A row for each of `results`: its part of `window_records`."""
    result_rejected: Mapping[str, int] = field(default_factory=dict)
    """Records that one result alone rejected, by result."""
    executor: str = ""
    """Where the partition's task ran, as HOST/PROCESS."""
    open_hits: int = 0
    """How often the operator found open what it needs for a key."""
    open_misses: int = 0
    """How often it had to open it."""
    open_seconds: float = 0.0
    """How long that took; `busy_seconds` is without it."""

    def to_snapshot(self, partitions: int) -> Snapshot:
        """The report as the journal keeps it."""
        arrays: dict[str, NDArray[Any]] = {
            name: np.atleast_1d(np.asarray(getattr(self, name), kind))
            for name, kind in _LOAD_TYPES.items()
        }
        values: dict[str, Any] = {}
        for name in _list_shown_fields():
            value = getattr(self, name)
            if isinstance(value, np.ndarray):
                arrays[f"{_SHOWN}.{name}"] = value
            else:
                values[name] = dict(value) if isinstance(value, Mapping) else value
        arrays[_SHOWN] = np.frombuffer(json.dumps(values).encode(), np.uint8)
        return Snapshot(KIND, VERSION, partitions, 0, arrays)

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Self:
        """Read what `to_snapshot` made, now or in version 3; else a `SnapshotError`."""
        load = _load_values(snapshot)
        read = _read_shown_values_of_version_3 if snapshot.version == 3 else _read_shown_values
        try:
            values = read(snapshot)
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise SnapshotError(
                f"journal: {KIND}: what is shown cannot be read: {error}"
            ) from error
        values = {name: value for name, value in values.items() if name in _list_shown_fields()}
        values["heavy_names"] = tuple(values.get("heavy_names", ()))
        report = cls(**load, **values)
        _check_shown(report, snapshot.partitions)
        return report


def _list_shown_fields() -> frozenset[str]:
    return frozenset(field.name for field in fields(PartitionReport)) - _LOAD_TYPES.keys()


def _load_values(snapshot: Snapshot) -> dict[str, Any]:
    if snapshot.grouping != KIND or snapshot.version not in {3, VERSION}:
        raise SnapshotError(
            f"journal: {snapshot.grouping} of version {snapshot.version}, but this is written"
            f" as {KIND} of version {VERSION}: another Unskew wrote it; use a new checkpoint"
        )
    arrays = dict(snapshot.arrays)
    if snapshot.version == 3:
        for name, old in {"records": "counts", "busy_seconds": "seconds"}.items():
            arrays[name] = arrays.get(old, np.empty(0))[:1]
    for name, kind in _LOAD_TYPES.items():
        if name not in arrays or arrays[name].dtype != kind:
            raise SnapshotError(f"journal: {KIND}: {name}: missing, or not of type {kind.__name__}")
    load: dict[str, Any] = {name: arrays[name] for name in _LOAD_TYPES}
    _check_load(load)
    return load | {
        "records": int(load["records"][0]),
        "busy_seconds": float(load["busy_seconds"][0]),
    }


def _check_load(load: Mapping[str, NDArray[Any]]) -> None:
    """A SnapshotError if sizes do not agree, or a number can be none of a batch."""
    size = load["heavy_hashes"].size
    sizes = {
        "records": {1},
        "busy_seconds": {1},
        "heavy_hashes": {size},
        "heavy_records": {size},
        "heavy_seconds": {0, size},
    }
    for name, values in load.items():
        if values.ndim != 1 or values.size not in sizes[name]:
            raise SnapshotError(f"journal: {KIND}: {name}: of shape {values.shape}")
        if not np.isfinite(values).all() or (values < 0).any():
            raise SnapshotError(f"journal: {KIND}: {name}: below 0, or no number")


def _check_shown(report: PartitionReport, partitions: int) -> None:
    """A SnapshotError if the displays could not use a field."""
    homes, counts = report.home_partitions, report.latency_counts
    wrong = {
        "keys": type(report.keys) is not int,
        "state_bytes": type(report.state_bytes) is not int,
        "open_hits": type(report.open_hits) is not int,
        "open_misses": type(report.open_misses) is not int,
        "open_seconds": not isinstance(report.open_seconds, int | float),
        "latency_counts": counts.ndim != 1 or counts.dtype.kind != "i",
        "heavy_names": not all(isinstance(name, str) for name in report.heavy_names),
        "sample_hashes": report.sample_hashes.ndim != 1 or report.sample_hashes.dtype != np.uint64,
        "sample_records": report.sample_records.dtype.kind != "i"
        or report.sample_records.shape not in {(0,), report.sample_hashes.shape},
        "home_partitions": homes.ndim != 1
        or homes.dtype.kind != "i"
        or bool(((homes < 0) | (homes >= partitions)).any()),
        "home_records": report.home_records.shape != homes.shape,
        "home_seconds": report.home_seconds.dtype != np.float64
        or report.home_seconds.shape not in {(0,), homes.shape},
        "window_records": report.window_records.shape != report.window_ends.shape,
        "result_window_records": report.result_window_records.shape
        not in {(0, 0), (len(report.results), report.window_ends.size)},
        **{
            name: not all(type(count) is int for count in dict(getattr(report, name)).values())
            for name in ("rejected", "results", "result_rejected")
        },
    }
    for name in (name for name, is_wrong in wrong.items() if is_wrong):
        raise SnapshotError(f"journal: {KIND}: {name}: inconsistent values")


def check_partition(number: int, report: Snapshot, others: Mapping[int, Snapshot]) -> None:
    """A SnapshotError if a report cannot be that of this partition, beside others of its batch."""
    if number >= report.partitions:
        raise SnapshotError(f"journal: {KIND}: there are {report.partitions} partitions")
    if any(other.partitions != report.partitions for other in others.values()):
        raise SnapshotError(f"journal: {KIND}: another number of partitions than its batch has")


def _read_shown_values(snapshot: Snapshot) -> dict[str, Any]:
    texts = snapshot.arrays.get(_SHOWN)
    values: dict[str, Any] = {} if texts is None else json.loads(texts.tobytes())
    for name, array in snapshot.arrays.items():
        if name.startswith(f"{_SHOWN}."):
            values[name.removeprefix(f"{_SHOWN}.")] = array
    return values


def _read_shown_values_of_version_3(snapshot: Snapshot) -> dict[str, Any]:
    arrays = snapshot.arrays
    texts = json.loads(arrays["text"].tobytes())
    return {
        **arrays,
        "keys": int(arrays["counts"][1]),
        "state_bytes": int(arrays["counts"][2]),
        "latency_seconds": float(arrays["seconds"][1]),
        "heavy_names": texts["names"],
        "rejected": texts["bad"],
        "executor": texts["place"],
    }


def make_feedback(reports: Mapping[int, Snapshot], partitions: int) -> Feedback | None:
    """Make the reports of a batch into what a grouping takes.

    None if no report is of that many partitions: then the number has changed.
    """
    loads = {
        partition: MeasuredLoad.from_snapshot(snapshot)
        for partition, snapshot in sorted(reports.items())
        if snapshot.partitions == partitions and partition < partitions
    }
    if not loads:
        return None
    records = np.zeros(partitions, np.int64)
    busy = np.zeros(partitions, np.float64)
    for partition, load in loads.items():
        records[partition] = load.records
        busy[partition] = load.busy_seconds
    busy = _damp_seconds(records, busy)
    timed = [(partition, load) for partition, load in loads.items() if load.heavy_seconds.size]
    if not timed:
        return Feedback(records, busy)
    return Feedback(
        records,
        busy,
        np.concatenate(
            [np.full(load.heavy_hashes.size, partition, np.int32) for partition, load in timed]
        ),
        np.concatenate([load.heavy_hashes for _, load in timed]),
        np.concatenate([load.heavy_records for _, load in timed]),
        np.concatenate([load.heavy_seconds for _, load in timed]),
    )


def _damp_seconds(records: Int64s, busy: Float64s) -> Float64s:
    """Draw each partition's time a record towards the mean, the more the shorter it is.

    In a batch of milliseconds a task's fixed cost outweighs its records, so the partition with the
    fewest records would look slow and would be given fewer still.
    """
    own = busy / np.maximum(records, 1)
    mean = busy.sum() / max(int(records.sum()), 1)
    weight = busy / (busy + HALF_WEIGHT_SECONDS)
    return np.where(records > 0, records * (weight * own + (1 - weight) * mean), busy)


class UnderKey(NamedTuple):
    """What partitions would have under the grouping `key`."""

    partitions: Int32s
    """Those that would have records."""
    records: Int64s
    seconds: Float64s
    """Their time; empty where that of keys is not known."""


def compute_loads_under_key(
    hashes: UInt64s, records: Int64s, seconds: Float64s, partitions: int, seed: int
) -> UnderKey:
    """Compute where the grouping `key` would send these records of each key, and their time.

    Each distinct key is routed once (5 ns), so a record costs nothing.
    """
    homes = hash_partitions(hashes, partitions, seed)
    loads = np.zeros(partitions, np.int64)
    np.add.at(loads, homes, records)
    used = np.flatnonzero(loads)
    if seconds.size:
        times = np.zeros(partitions, np.float64)
        np.add.at(times, homes, seconds)
        seconds = times[used]
    return UnderKey(used.astype(np.int32), loads[used], seconds)


def sum_by_window_end(ends: Int64s, records: Int64s) -> tuple[Int64s, Int64s]:
    """Records by the end of their last window, earliest first, of no more than WINDOW_ENDS ends.

    Records of later ends are counted at the latest end of all. So the count of late records is
    never too high, and too low only where a partition has records of that many windows that are
    over.
    """
    distinct, positions = np.unique(ends, return_inverse=True)
    if distinct.size > WINDOW_ENDS:
        positions = np.minimum(positions, WINDOW_ENDS - 1)
        distinct = np.append(distinct[: WINDOW_ENDS - 1], distinct[-1])
    sums = np.zeros(distinct.size, np.int64)
    np.add.at(sums, positions, records)
    return distinct, sums


def estimate_replication(reports: Mapping[int, PartitionReport]) -> float:
    """(key, partition) pairs over distinct keys: exact where partitions have few keys.

    Otherwise over the keys whose hash is below the largest sampled hash of every full sample. The
    same keys are in the numerator and the denominator, so most of the sampling error cancels.
    """
    full = [r.sample_hashes[-1] for r in reports.values() if r.sample_hashes.size >= SAMPLED_KEYS]
    bound = min(full) if full else np.uint64(2**64 - 1)
    sampled = [r.sample_hashes[r.sample_hashes <= bound] for r in reports.values()]
    pairs = sum(hashes.size for hashes in sampled)
    distinct = np.unique(np.concatenate(sampled)).size if pairs else 0
    return pairs / distinct if distinct else 1.0
