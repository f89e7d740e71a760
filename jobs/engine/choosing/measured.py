"""A finished batch as the decider takes it, by the partitions' reports."""

import numpy as np

from unskew.grouping.choice.key_counts import count_under_hash, merge_reports
from unskew.grouping.choice.ways import MeasuredBatch
from unskew.grouping.spark.report import SAMPLED_KEYS
from unskew.jobs.observe.batches.batch import BatchDone

_PARTIAL_BYTES_MIN = 48
"""The bytes of key, hash, time and count."""


def measure(done: BatchDone, way: str, slots: int) -> MeasuredBatch | None:
    """Measure a batch; None if it has no rows, or no reports of this version."""
    stats = done.stats
    if stats is None or not stats.total or not stats.reported_keys:
        return None
    keys = stats.numbers["keys"].astype(np.int64)
    misses = stats.numbers["open_misses"].astype(np.int64)
    # What is kept open for a key is paid for once, and then by the ways that bring the key to a
    # worker that does not have it.
    opens = misses.any() or stats.numbers["open_hits"].any()
    carried = float(stats.numbers["state_bytes"].sum()) / max(1, int(keys.sum()))
    return MeasuredBatch(
        way=way,
        seconds=done.seconds,
        records=stats.records,
        keys=keys,
        opened=misses if opens else keys,
        busy_seconds=stats.busy_seconds + stats.numbers["open_seconds"],
        under_key=stats.under_key,
        under_hash=count_under_hash(stats.reported_keys, SAMPLED_KEYS, stats.records),
        key_counts=merge_reports(stats.reported_keys, SAMPLED_KEYS),
        partial_bytes=max(0.0, carried - _PARTIAL_BYTES_MIN),
        slots=slots,
    )
