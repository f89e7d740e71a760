"""The exact counting table against a dictionary."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sketches import bytes_held
from unskew.grouping.parts.sketches.exact_counts import WORDS_MIN, ExactCounts

KEY_MAX = 2**64 - 1
SALT = np.uint64(0x5EED)


def as_keys(values: list[int]) -> np.ndarray:
    return np.array(values, np.uint64)


@settings(deadline=None)  # the first example compiles the kernels
@given(st.lists(st.lists(st.sampled_from([0, 1, 2, 3, 2**32, 2**63, KEY_MAX]), max_size=30)))
def test_counts_and_numbers_are_those_of_a_dictionary(streams: list[list[int]]) -> None:
    table = ExactCounts(SALT)
    expected: Counter[int] = Counter()
    first_seen: dict[int, int] = {}
    for stream in streams:
        numbers = table.count(as_keys(stream))
        expected.update(stream)
        for key in stream:
            first_seen.setdefault(key, len(first_seen))
        assert numbers.tolist() == [first_seen[key] for key in stream]
    assert dict(zip(table.keys.tolist(), table.counts.tolist(), strict=True)) == expected
    assert table.keys.tolist() == list(first_seen)


def test_growing_keeps_counts_and_numbers() -> None:
    values = np.random.default_rng(3).integers(0, 20_000, 100_000).astype(np.uint64)
    table = ExactCounts(SALT)
    numbers = table.count(values)
    keys, counts = np.unique(values, return_counts=True)
    order = np.argsort(table.keys)
    assert np.array_equal(table.keys[order], keys)
    assert np.array_equal(table.counts[order], counts)
    assert np.array_equal(table.keys[numbers], values)


def test_find_tells_known_keys_from_unknown() -> None:
    table = ExactCounts(SALT)
    table.count(as_keys([5, 0, 5, KEY_MAX]))
    assert table.find(as_keys([KEY_MAX, 6, 0, 5])).tolist() == [2, -1, 1, 0]


def test_find_in_an_empty_table_knows_nothing() -> None:
    assert ExactCounts(SALT).find(as_keys([0, 1])).tolist() == [-1, -1]


def test_clear_forgets_and_gives_back_room_bit_by_bit() -> None:
    table = ExactCounts(SALT)
    table.count(np.arange(100_000, dtype=np.uint64))
    full = bytes_held(table)
    for _ in range(20):
        table.clear()
        assert len(table) == 0
        assert table.count(as_keys([9, 9])).tolist() == [0, 0]
        assert table.counts.tolist() == [2]
    assert bytes_held(table) == WORDS_MIN * 16
    assert full > bytes_held(table)


@pytest.mark.parametrize("distinct", [1_000, 100_000])
def test_memory_is_bounded_by_distinct_keys_not_records(distinct: int) -> None:
    table = ExactCounts(SALT)
    for _ in range(5):
        table.count(np.arange(distinct, dtype=np.uint64))
    assert bytes_held(table) <= 64 * distinct


def test_consecutive_and_strided_keys_do_not_cluster() -> None:
    for stride in (1, 1024, 2**32, 2**48):
        table = ExactCounts(SALT)
        values = np.arange(50_000, dtype=np.uint64) * np.uint64(stride)
        table.count(values)
        assert len(table) == np.unique(values).size


def test_copies_of_counts_do_not_change_the_input() -> None:
    values = as_keys([3, 1, 3])
    ExactCounts(SALT).count(values)
    assert values.tolist() == [3, 1, 3]
