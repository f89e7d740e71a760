"""`level` with `balance: seconds`: time is level where records cost different amounts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from unskew.grouping.algorithms.level import Level, LevelParams
from unskew.grouping.base import Feedback, Setting, UInt64s
from unskew.grouping.parts.key_costs import TICKS_A_MEAN_RECORD

KEY_MAX = 2**64 - 1
KEYS = np.array([0, KEY_MAX, 7, 8, 9, 10], np.uint64)


def make(partitions: int, **options: object) -> Level:
    return Level(Setting(partitions, seed=1), LevelParams(balance="seconds", **options))


def report(
    keys: UInt64s,
    routes: NDArray[np.int32],
    costs: NDArray[np.float64],
    speeds: NDArray[np.float64],
    rows: int = 1000,
) -> Feedback:
    """What partitions of these speeds report, with rows for their `rows` first keys."""
    distinct, number_of = np.unique(keys, return_inverse=True)
    pairs, records = np.unique(
        np.stack([routes.astype(np.int64), number_of]), axis=1, return_counts=True
    )
    partition, number = pairs
    seconds = records * costs[number] / speeds[partition]
    shown = number < rows
    return Feedback(
        np.bincount(routes, minlength=speeds.size).astype(np.int64),
        np.bincount(partition, seconds, speeds.size),
        partition[shown].astype(np.int32),
        distinct[number[shown]],
        records[shown].astype(np.int64),
        seconds[shown],
    )


def test_before_any_report_it_routes_as_with_records() -> None:
    keys = np.random.default_rng(0).zipf(1.5, 5_000).astype(np.uint64)
    plain = Level(Setting(9, seed=1), LevelParams())
    assert np.array_equal(make(9).route(keys), plain.route(keys))


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=120),
    st.lists(st.floats(0.001, 50.0), min_size=6, max_size=6),
    st.integers(1, 8),
    st.integers(1, 60),
)
def test_no_partition_has_more_than_the_mean_work_and_one_record(
    share: list[int], costs: list[float], partitions: int, chunk_records: int
) -> None:
    level = make(partitions, chunk_records=chunk_records)
    learnt = report(
        KEYS,
        np.zeros(6, np.int32),
        np.array(costs)[np.argsort(np.argsort(KEYS))],
        np.ones(partitions),
    )
    level.begin_batch(learnt)
    keys = KEYS[share]
    routes = level.route(keys)
    level._counts.clear()
    numbers = level._counts.count(keys)
    ticks = level._ticks(level._counts)[numbers]
    work = np.bincount(routes, ticks, partitions)
    assert work.max() < ticks.sum() / partitions + ticks.max() + 1
    assert work.tolist() == level.state["loads"].tolist()
    if chunk_records >= keys.size:
        split = len(set(zip(keys.tolist(), routes.tolist(), strict=True)))
        assert split - np.unique(keys).size <= partitions - 1


def test_reports_are_wanted_only_to_balance_seconds() -> None:
    assert make(2).wants_feedback
    assert not Level(Setting(2), LevelParams()).wants_feedback


def test_a_dear_key_takes_the_room_of_many_cheap_records() -> None:
    level = make(2)
    keys = np.repeat(np.array([1, 2], np.uint64), [100, 900])
    costs = np.array([9.0, 1.0])
    level.begin_batch(report(keys, level.route(keys), costs, np.ones(2)))
    routes = level.route(keys)
    times = np.bincount(routes, costs[(keys == 2).astype(int)])
    assert times.tolist() == pytest.approx([900.0, 900.0], abs=9.0)


def test_keys_without_a_cost_take_that_of_the_other_records() -> None:
    level = make(2)
    keys = np.repeat(np.array([1, 2, 3], np.uint64), [100, 50, 50])
    costs = np.array([4.0, 2.0, 1.0])
    level.begin_batch(report(keys, level.route(keys), costs, np.ones(2), rows=1))
    level._counts.count(keys)
    expected = [round(TICKS_A_MEAN_RECORD * 4.0 / 1.5), TICKS_A_MEAN_RECORD, TICKS_A_MEAN_RECORD]
    level._counts.clear()
    level._counts.count(keys)
    assert level._ticks(level._counts).tolist() == expected


def run_batches(level: Level, speeds: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
    """The time of each partition in the last of ten batches."""
    generator = np.random.default_rng(3)
    costs = generator.uniform(1e-4, 1e-3, 200)
    weights = np.arange(1, 201.0) ** -1.2
    for _ in range(10):
        ids = generator.choice(200, 40_000, p=weights / weights.sum())
        ids[:200] = np.arange(200)
        keys = ids.astype(np.uint64)
        routes = level.route(keys)
        feedback = report(keys, routes, costs, speeds, rows)
        level.begin_batch(feedback)
    return feedback.busy_seconds


def test_time_is_level_with_costs_by_key() -> None:
    times = run_batches(make(10), np.ones(10), rows=1000)
    assert times.max() / times.mean() < 1.02


@pytest.mark.parametrize("rows", [5, 1000])
def test_time_is_level_on_partitions_of_different_speed(rows: int) -> None:
    speeds = np.array([1.0, 1.0, 0.5, 2.0, 1.0, 1.0, 0.25, 1.0, 1.0, 1.5])
    equal = run_batches(make(10), speeds, rows)
    measured = run_batches(make(10, speeds="measured"), speeds, rows)
    assert measured.max() / measured.mean() < 1.10 < equal.max() / equal.mean()


def test_faster_partitions_get_their_share_within_a_record() -> None:
    level = make(3, speeds="measured", smoothing=1.0)
    keys = np.arange(3000, dtype=np.uint64)
    speeds = np.array([1.0, 1.0, 2.0])
    level.begin_batch(report(keys, level.route(keys), np.ones(3000), speeds, rows=0))
    assert sorted(np.bincount(level.route(keys)).tolist()) == [750, 750, 1500]


@pytest.mark.parametrize("zeros", ["records", "busy_seconds"])
def test_reports_of_zeros_teach_nothing(zeros: str) -> None:
    level = make(2, speeds="measured")
    before = level.snapshot().checksum()
    values = {"records": np.array([3, 4]), "busy_seconds": np.array([1.0, 1.0])}
    values[zeros] = 0 * values[zeros]
    level.begin_batch(Feedback(**values))
    assert level.snapshot().checksum() == before


def test_restored_after_reports_it_goes_on_the_same() -> None:
    level, other = make(10, speeds="measured"), make(10, speeds="measured")
    run_batches(level, np.linspace(0.5, 2, 10), rows=50)
    other.restore(level.snapshot())
    keys = np.random.default_rng(0).zipf(1.5, 5_000).astype(np.uint64)
    assert np.array_equal(level.route(keys), other.route(keys))
    assert level.signals()["known_costs"] == 50.0


@pytest.mark.parametrize("ratio", [0.01, 0.0073, 0.4, 3.3, 4000.0])
def test_costs_are_rounded_to_a_4096th_of_the_mean_record(ratio: float) -> None:
    level = make(4)
    for name, value in {"costs_known": 1, "cost_keys": 7, "cost_per_record": ratio}.items():
        level.state[name][0] = value
    level.state["cost_mean"][0] = 1.0
    level._counts.count(np.array([7], np.uint64))

    (ticks,) = level._ticks(level._counts) / TICKS_A_MEAN_RECORD

    assert ticks == pytest.approx(ratio, rel=0.02)
