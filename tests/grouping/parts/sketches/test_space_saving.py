"""SpaceSaving against a twin in plain Python, and its guarantees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sketches import estimate, guaranteed, observe_all
from unskew.grouping.parts.sketches.space_saving import (
    Counters,
    admit,
    arrays,
    count,
    find,
    minimum,
    scale,
    view,
)

MAX_KEY = 2**64 - 1
few_keys = st.lists(
    st.sampled_from([0, 1, 2, 3, 5, 8, 13, 21, 2**32, 2**63, MAX_KEY - 1, MAX_KEY]), max_size=200
)


def fresh(capacity: int) -> Counters:
    return view(arrays(capacity))


class Twin:
    """The paper's algorithm over a dictionary; which of equal least counts goes is left open."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.counts: dict[int, float] = {}
        self.errors: dict[int, float] = {}

    def observe(self, key: int, victim: int | None) -> None:
        if key in self.counts:
            assert victim is None
            self.counts[key] += 1
            return
        least = 0.0
        if len(self.counts) == self.capacity:
            assert victim is not None
            least = min(self.counts.values())
            assert self.counts.pop(victim) == least
            del self.errors[victim]
        else:
            assert victim is None
        self.counts[key] = least + 1
        self.errors[key] = least


def content(counters: Counters) -> tuple[dict[int, float], dict[int, float]]:
    used = int(counters.used[0])
    keys = counters.keys[:used].tolist()
    return (
        dict(zip(keys, counters.counts[:used].tolist(), strict=True)),
        dict(zip(keys, counters.errors[:used].tolist(), strict=True)),
    )


def follow(counters: Counters, twin: Twin, key: int) -> None:
    before = set(content(counters)[0])
    slot, _ = count(counters, np.uint64(key))
    assert counters.keys[slot] == key
    gone = before - set(content(counters)[0])
    twin.observe(key, gone.pop() if gone else None)
    assert not gone


@given(capacity=st.integers(1, 6), keys=few_keys)
@settings(max_examples=200, deadline=None)
def test_every_step_is_the_papers(capacity: int, keys: list[int]) -> None:
    counters, twin = fresh(capacity), Twin(capacity)
    for key in keys:
        follow(counters, twin, key)
        assert content(counters) == (twin.counts, twin.errors)
        expected = min(twin.counts.values()) if len(twin.counts) == capacity else 0.0
        assert minimum(counters) == expected


@given(capacity=st.integers(1, 40), keys=st.lists(st.integers(0, 60), max_size=400))
@settings(max_examples=100, deadline=None)
def test_counts_bound_the_truth_from_both_sides(capacity: int, keys: list[int]) -> None:
    counters = fresh(capacity)
    observe_all(counters, np.array(keys, np.uint64))

    for key in set(keys):
        true = keys.count(key)
        assert guaranteed(counters, key) <= true
        if find(counters, np.uint64(key)) >= 0:
            assert true <= estimate(counters, key) <= true + len(keys) / capacity
        else:
            assert true <= len(keys) / capacity
    assert counters.counts.sum() == len(keys)


def test_long_stream_finds_its_own_keys_again() -> None:
    rng = np.random.default_rng(7)
    counters, twin = fresh(300), Twin(300)
    for key in (rng.zipf(1.2, 6000) % 2000).tolist():
        follow(counters, twin, key)

    assert content(counters) == (twin.counts, twin.errors)
    for slot in range(300):
        assert find(counters, counters.keys[slot]) == slot
    assert sorted(counters.heap.tolist()) == list(range(300))
    assert np.count_nonzero(counters.table) == 300


def test_extreme_keys_are_keys_like_any_other() -> None:
    counters = fresh(4)
    observe_all(counters, np.array([0, MAX_KEY, 0, MAX_KEY, MAX_KEY], np.uint64))

    assert estimate(counters, 0) == 2.0
    assert estimate(counters, MAX_KEY) == 3.0
    assert find(counters, np.uint64(1)) == -1


def test_one_counter_follows_the_last_key() -> None:
    counters = fresh(1)
    observe_all(counters, np.arange(100, dtype=np.uint64))

    assert content(counters) == ({99: 100.0}, {99: 99.0})


def test_all_distinct_keys_leave_no_guaranteed_count_above_one() -> None:
    counters = fresh(64)
    sizes = [array.size for array in counters]
    observe_all(counters, np.arange(100_000, dtype=np.uint64))

    assert (counters.counts - counters.errors == 1.0).all()
    assert [array.size for array in counters] == sizes


@pytest.mark.parametrize("factor", [0.2, 0.5, 0.999])
def test_counters_times_a_factor_keep_their_order(factor: float) -> None:
    rng = np.random.default_rng(3)
    counters = fresh(50)
    for _ in range(20):
        for key in (rng.zipf(1.1, 300) % 400).astype(np.uint64):
            if find(counters, key) < 0 and counters.used[0] == 50:
                least = counters.counts.min()
                slot = admit(counters, key)
                assert counters.errors[slot] == least
                assert counters.counts[slot] == least + 1.0
            else:
                count(counters, key)
        for array in (counters.counts, counters.errors, counters.heap_counts):
            np.multiply(array, factor, out=array)
        assert minimum(counters) == counters.counts.min()


def test_state_is_as_large_as_stated() -> None:
    for capacity in (1, 2, 3, 1000, 1024, 1025, 20_000):
        size = sum(array.nbytes for array in arrays(capacity).values())
        assert size <= 68 * capacity + 8


def test_prefix_names_the_arrays() -> None:
    state = arrays(3, prefix="hot_")

    assert sorted(state) == sorted(f"hot_{name}" for name in Counters._fields)
    observe_all(view(state, prefix="hot_"), np.array([4, 4], np.uint64))
    assert state["hot_counts"][0] == 2.0


def test_counts_that_have_faded_away_are_zero() -> None:
    counters = fresh(4)
    observe_all(counters, np.array([1, 1, 2], np.uint64))
    scale(counters, 0.5)
    assert counters.counts.tolist() == [1.0, 0.5, 0.0, 0.0]
    for _ in range(2):
        scale(counters, 1e-60)
    assert not counters.counts.any()
    assert not counters.heap_counts.any()
