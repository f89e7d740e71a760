"""What a batch's stats make of its partitions' reports."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from unskew.grouping.hashing import hash_partitions
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.report import PartitionReport
from unskew.jobs.observe.batches.batch_stats import BatchStats, read_batch_stats
from unskew.jobs.operators.base import KEY, KEY_HASH, RECORDS, SECONDS
from unskew.jobs.query.meter import Meter
from unskew.jobs.query.prepare import ARRIVED

KEYS = np.arange(4, dtype=np.uint64)
HOMES = hash_partitions(KEYS, 2, 0).tolist()


def read_stats(folder: Path, *reports: PartitionReport) -> BatchStats:
    journal = Journal(str(folder))
    for partition, report in enumerate(reports):
        journal.write_report(0, partition, report.to_snapshot(2))
    stats = read_batch_stats(str(folder), journal, 0)
    assert stats is not None
    return stats


def measure(records: list[int], seconds: list[float] | None, busy: float) -> PartitionReport:
    """The report of a partition that had so many records of each of `KEYS`."""
    meter = Meter(False, 2, 0, None)
    partials = pa.table({KEY: ["k"] * 4, KEY_HASH: KEYS.view(np.int64), RECORDS: records})
    if seconds is not None:
        partials = partials.append_column(SECONDS, pa.array(seconds))
    times = pa.array([0] * sum(records), pa.timestamp("us"))
    meter.add(pa.table({ARRIVED: times}), partials, busy)
    return meter.report({})


def sum_by_home(values: list[float]) -> list[float]:
    return [sum(v for v, home in zip(values, HOMES, strict=True) if home == p) for p in (0, 1)]


def test_under_key_a_record_costs_what_those_of_its_partition_did(tmp_path: Path) -> None:
    """Of partition 0 a record took 0.1 s, of partition 1 as many took ten times as long."""
    cheap, costly = measure([4, 3, 2, 1], None, 1.0), measure([1, 2, 3, 4], None, 10.0)

    stats = read_stats(tmp_path, cheap, costly)

    assert sorted(set(HOMES)) == [0, 1]
    expected = sum_by_home([0.4 + 1.0, 0.3 + 2.0, 0.2 + 3.0, 0.1 + 4.0])
    assert stats.under_key_seconds.tolist() == pytest.approx(expected)
    assert stats.under_key.tolist() == sum_by_home([5, 5, 5, 5])


def test_under_key_a_key_costs_what_was_measured_of_it(tmp_path: Path) -> None:
    """All keys have as many records; the times of keys are shares of the partition's busy time."""
    timed = measure([5, 5, 5, 5], [0.1, 0.2, 0.3, 1.4], 4.0)

    stats = read_stats(tmp_path, timed, measure([0, 0, 0, 0], None, 0.0))

    assert stats.under_key_seconds.tolist() == pytest.approx(sum_by_home([0.2, 0.4, 0.6, 2.8]))
