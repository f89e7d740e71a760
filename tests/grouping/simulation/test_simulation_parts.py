"""The simulator's own kernels against plain Python: pairs, queues, percentiles."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.errors import GroupingError
from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.simulation.queueing import Queues, percentile


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_pair_counter_is_exact(data: st.DataObject) -> None:
    extremes = st.sampled_from([0, 1, 2**64 - 1, 2**63])
    keys = data.draw(st.lists(st.one_of(extremes, st.integers(0, 2**64 - 1)), max_size=60))
    routes = data.draw(st.lists(st.integers(0, 4), min_size=len(keys), max_size=len(keys)))
    counter = PairCounter(5)

    numbers = counter.count(np.array(keys, np.uint64), np.array(routes, np.int32))

    assert counter.keys == len(set(keys))
    assert counter.pairs == len(set(zip(keys, routes, strict=True)))
    assert counter.hashes(numbers.astype(np.int64)).tolist() == keys
    assert counter.counts.tolist() == [*Counter(keys).values()]


def test_pair_counter_grows_and_has_a_bound() -> None:
    keys = np.repeat(np.arange(30_000, dtype=np.uint64), 3)
    routes = np.tile(np.arange(3, dtype=np.int32), 30_000)
    counter = PairCounter(3)

    counter.count(keys, routes)

    assert (counter.keys, counter.pairs) == (30_000, 90_000)
    with pytest.raises(GroupingError, match="cannot be counted exactly"):
        PairCounter(3, entries_max=2**13).count(keys, routes)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.integers(0, 50), st.integers(1, 9)), min_size=1, max_size=40
    )
)
def test_queues_serve_first_in_first_out(records: list[tuple[int, int, int]]) -> None:
    arrivals = np.sort([float(arrival) for _, arrival, _ in records])
    free, latencies = [0.0] * 3, []
    for (partition, _, cost), arrival in zip(records, arrivals, strict=True):
        free[partition] = max(free[partition], arrival) + cost / (partition + 1)
        latencies.append(free[partition] - arrival)
    queues = Queues(3)

    queues.serve(
        np.array([partition for partition, _, _ in records], np.int32),
        arrivals,
        np.array([float(cost) for _, _, cost in records]),
        np.array([1.0, 2.0, 3.0]),
    )

    assert queues.free_at.tolist() == free
    assert queues.totals.tolist() == pytest.approx([sum(latencies), max(latencies)])
    middle = sorted(latencies)[(len(latencies) + 1) // 2 - 1]
    assert percentile(queues.histogram, 0.5) == pytest.approx(middle, rel=0.004)


def test_percentile_of_nothing_is_zero() -> None:
    assert percentile(np.zeros(8, np.int64), 0.99) == 0.0
