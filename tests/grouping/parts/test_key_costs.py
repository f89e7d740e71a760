"""Costs by key and speeds of partitions, learnt from reports."""

import numpy as np
import pytest

from unskew.grouping.base import Feedback
from unskew.grouping.parts.key_costs import SPEED_RATIO_MAX, empty_costs, learn


def feedback(
    records: list[int], seconds: list[float], rows: list[tuple[int, int, int, float]]
) -> Feedback:
    """`rows` are (partition, key, records, seconds)."""
    partitions, keys, counts, times = zip(*rows, strict=True) if rows else ((), (), (), ())
    return Feedback(
        np.array(records, np.int64),
        np.array(seconds, np.float64),
        np.array(partitions, np.int32),
        np.array(keys, np.uint64),
        np.array(counts, np.int64),
        np.array(times, np.float64),
    )


def test_a_keys_cost_is_its_seconds_over_its_records_in_all_partitions() -> None:
    state = empty_costs(4, 2)
    learn(state, feedback([4, 6], [8, 6], [(0, 9, 1, 3.0), (1, 9, 1, 1.0)]), 0.5, speeds=False)
    assert state["cost_keys"].tolist() == [9, 0, 0, 0]
    assert state["cost_per_record"].tolist() == [2.0, 0.0, 0.0, 0.0]
    assert state["cost_mean"].tolist() == [10 / 8]
    assert state["speeds"].tolist() == [1.0, 1.0]


def test_new_measurements_are_mixed_with_the_old_by_the_smoothing() -> None:
    state = empty_costs(4, 1)
    learn(state, feedback([2], [4.0], [(0, 5, 1, 2.0)]), 0.25, speeds=False)
    learn(state, feedback([2], [8.0], [(0, 5, 1, 6.0)]), 0.25, speeds=False)
    assert state["cost_per_record"][0] == 3.0
    assert state["cost_mean"][0] == 2.0


def test_keys_with_the_most_seconds_stay_and_absent_ones_fade() -> None:
    state = empty_costs(2, 1)
    rows = [(0, 1, 1, 1.0), (0, 2, 1, 5.0), (0, 2**64 - 1, 1, 9.0)]
    learn(state, feedback([9], [99.0], rows), 0.5, speeds=False)
    assert state["cost_keys"].tolist() == [2, 2**64 - 1]
    for _ in range(8):
        learn(state, feedback([9], [99.0], [(0, 0, 1, 1.0), (0, 2, 1, 5.0)]), 0.5, speeds=False)
    assert state["cost_keys"].tolist() == [0, 2]


def test_a_dear_key_does_not_make_its_partition_slow() -> None:
    state = empty_costs(4, 2)
    learn(state, feedback([100, 100], [1090.0, 100.0], [(0, 7, 10, 1000.0)]), 1.0, speeds=True)
    assert state["speeds"].tolist() == pytest.approx([1.0, 1.0])


def test_a_slow_partition_is_found_by_a_key_that_others_have_too() -> None:
    state = empty_costs(4, 3)
    rows = [(0, 7, 10, 10.0), (1, 7, 10, 10.0), (2, 7, 10, 40.0)]
    learn(state, feedback([10, 10, 10], [10.0, 10.0, 40.0], rows), 1.0, speeds=True)
    assert state["speeds"].tolist() == pytest.approx([4 / 3, 4 / 3, 1 / 3])


def test_speeds_stay_within_their_bounds() -> None:
    state = empty_costs(4, 2)
    learn(state, feedback([10**9, 1], [1e-6, 1e6], []), 1.0, speeds=True)
    assert state["speeds"].min() == 1 / SPEED_RATIO_MAX
    assert np.isfinite(state["speeds"]).all()


@pytest.mark.parametrize("seconds", [1e308, 5e-324])
def test_reports_beyond_floats_teach_nothing(seconds: float) -> None:
    state = empty_costs(4, 2)
    report = feedback([10**9, 10**9], [seconds, seconds], [(0, 1, 1, 1e308), (1, 1, 1, 1e308)])
    learn(state, report, 0.5, speeds=True)
    assert state["costs_known"][0] == 0
    assert state["speeds"].tolist() == [1.0, 1.0]


def test_an_idle_partition_keeps_its_speed() -> None:
    state = empty_costs(4, 3)
    learn(state, feedback([10, 20, 0], [10.0, 10.0, 0.0], []), 1.0, speeds=True)
    assert state["speeds"][2] == 1.0


def test_the_table_does_not_outgrow_its_room() -> None:
    state = empty_costs(8, 2)
    sizes = {name: array.nbytes for name, array in state.items()}
    for batch in range(20):
        rows = [(0, 100 * batch + i, 1, 1.0) for i in range(100)]
        learn(state, feedback([200, 0], [200.0, 0.0], rows), 0.5, speeds=True)
    assert {name: array.nbytes for name, array in state.items()} == sizes
    assert state["costs_known"][0] == 8
