import numpy as np
import pytest

from unskew.grouping.registry import create
from unskew.grouping.spark.report import (
    SAMPLED_KEYS,
    WINDOW_ENDS,
    PartitionReport,
    compute_loads_under_key,
    estimate_replication,
    make_feedback,
    sum_by_window_end,
)


def report(hashes: list[int], **changes: object) -> PartitionReport:
    keys = np.array(hashes, np.uint64)
    values: dict[str, object] = {
        "records": 10 * len(hashes),
        "keys": len(hashes),
        "busy_seconds": 0.5,
        "state_bytes": 64,
        "heavy_hashes": keys,
        "heavy_records": np.full(keys.size, 10, np.int64),
        "sample_hashes": np.sort(keys)[:SAMPLED_KEYS],
        **changes,
    }
    return PartitionReport(**values)  # type: ignore[arg-type]


def test_a_report_survives_the_journal() -> None:
    original = report(
        [3, 1, 2**64 - 1],
        rejected={"null_key": 2},
        executor="host/1",
        heavy_names=("a", "ü", ""),
        heavy_seconds=np.array([0.1, 0.2, 0.3]),
        latency_seconds=1.5,
        home_partitions=np.array([0, 5], np.int32),
        home_records=np.array([2, 1]),
        window_ends=np.array([-5, 20]),
        window_records=np.array([2, 1]),
    )
    copy = PartitionReport.from_snapshot(original.to_snapshot(8))
    for name, value in vars(original).items():
        value_read = getattr(copy, name)
        assert (
            np.array_equal(value_read, value)
            if isinstance(value, np.ndarray)
            else value_read == value
        )


def test_feedback_has_every_partition_also_those_without_a_report() -> None:
    snapshots = {number: report([7]).to_snapshot(4) for number in (0, 2)}
    feedback = make_feedback(snapshots, 4)
    assert feedback is not None
    assert feedback.records.tolist() == [10, 0, 10, 0]
    assert feedback.busy_seconds.tolist() == [0.5, 0.0, 0.5, 0.0]
    assert feedback.key_hashes.size == 0


def test_rows_come_in_the_order_of_partitions() -> None:
    timed = {
        number: report([number], heavy_seconds=np.array([0.25 * number])).to_snapshot(4)
        for number in (2, 1)
    }
    feedback = make_feedback(timed, 4)
    assert feedback is not None
    assert feedback.key_partitions.tolist() == [1, 2]
    assert feedback.key_hashes.tolist() == [1, 2]
    assert feedback.key_seconds.tolist() == [0.25, 0.5]


@pytest.mark.parametrize(("seconds", "seen"), [(0.002, 1.05), (20.0, 3.9)])
def test_times_of_milliseconds_say_little_of_speeds(seconds: float, seen: float) -> None:
    """Equally many records; one partition took four times as long as the other three."""
    reports = {
        number: PartitionReport(
            records=1000, busy_seconds=seconds * (4 if number == 0 else 1)
        ).to_snapshot(4)
        for number in range(4)
    }
    feedback = make_feedback(reports, 4)
    assert feedback is not None
    slow, *others = feedback.busy_seconds.tolist()
    assert others[0] == others[1] == others[2]
    assert (slow / others[0] < seen) is (seconds < 1)


def test_reports_of_another_number_of_partitions_are_no_feedback() -> None:
    assert make_feedback({0: report([1]).to_snapshot(8)}, 4) is None
    assert make_feedback({}, 4) is None


def test_replication_is_exact_for_few_keys() -> None:
    reports = {0: report([1, 2, 3]), 1: report([3, 4]), 2: report([])}
    assert estimate_replication(reports) == 5 / 4
    assert estimate_replication({}) == 1.0


def test_replication_of_many_keys_is_estimated_within_two_percent() -> None:
    generator = np.random.default_rng(1)
    keys = generator.integers(0, 2**64, 200_000, dtype=np.uint64)
    home = np.arange(keys.size) % 8
    split = generator.random(keys.size) < 0.3
    reports = {}
    for partition in range(8):
        here = keys[(home == partition) | (split & ((home + 1) % 8 == partition))]
        reports[partition] = report(here.tolist())
    exact = 1 + split.mean()
    assert abs(estimate_replication(reports) / exact - 1) < 0.02


def test_homes_are_what_the_grouping_key_would_have_done() -> None:
    keys = np.random.default_rng(0).zipf(1.3, 5000).astype(np.uint64)
    routed = create("key", partitions=7, seed=3).route(keys)
    hashes, records = np.unique(keys, return_counts=True)
    partitions, loads, _ = compute_loads_under_key(hashes, records, np.empty(0), 7, 3)
    assert partitions.tolist() == np.unique(routed).tolist()
    assert loads.tolist() == np.bincount(routed)[partitions].tolist()
    other = compute_loads_under_key(hashes, records, np.empty(0), 7, 4)
    assert other.records.tolist() != loads.tolist()


def test_without_keys_there_are_no_homes() -> None:
    none = np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0)
    assert [each.size for each in compute_loads_under_key(*none, 7, 3)] == [0, 0, 0]


def test_records_are_summed_by_the_end_of_their_last_window() -> None:
    ends, records = sum_by_window_end(np.array([20, -5, 20]), np.array([1, 2, 4]))
    assert (ends.tolist(), records.tolist()) == ([-5, 20], [2, 5])


def test_of_too_many_ends_the_later_ones_count_to_the_latest() -> None:
    many = np.arange(3 * WINDOW_ENDS)
    ends, records = sum_by_window_end(many[::-1], np.ones(many.size, np.int64))
    assert ends.size == records.size == WINDOW_ENDS
    assert ends[-2:].tolist() == [WINDOW_ENDS - 2, many[-1]]
    assert records[:-1].tolist() == [1] * (WINDOW_ENDS - 1)
    assert records.sum() == many.size
    exactly, _ = sum_by_window_end(many[:WINDOW_ENDS], np.ones(WINDOW_ENDS, np.int64))
    assert exactly.tolist() == many[:WINDOW_ENDS].tolist()
