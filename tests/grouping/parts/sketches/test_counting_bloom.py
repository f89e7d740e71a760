"""The counting Bloom filter against an exact multiset."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.hashing import mix64
from unskew.grouping.parts.sketches.counting_bloom import Filter, add, contains, remove, sizes

KEYS = st.one_of(st.integers(0, 7), st.sampled_from([2**64 - 1, 2**63]), st.integers(0, 2**64 - 1))


def members_of(cells: int, hashes: int) -> Filter:
    return Filter(np.zeros(cells, np.uint32), hashes, np.uint64(17))


def cells_of(members: Filter, key: int) -> list[int]:
    """The twin of the hash: first + i x step."""
    value = int(mix64(np.uint64(key) ^ members.salt))
    step = (value >> 32) | 1
    return [(value + i * step) % 2**64 % members.cells.size for i in range(members.hashes)]


def share_of_strangers_in(members: Filter, tries: int = 20_000) -> float:
    strangers = np.arange(10**9, 10**9 + tries, dtype=np.uint64)
    return sum(contains(members, key) for key in strangers) / tries


@pytest.mark.parametrize(
    ("keys", "rate", "expected"),
    [(100, 0.01, (7, 1024)), (1000, 0.01, (7, 16384)), (1, 0.5, (1, 8)), (100, 1e-6, (20, 4096))],
)
def test_sizes_follow_blooms_formulas(keys: int, rate: float, expected: tuple[int, int]) -> None:
    assert sizes(keys, rate) == expected


@settings(deadline=None)
@given(st.lists(st.tuples(st.booleans(), KEYS), max_size=200), st.integers(1, 8))
def test_cells_are_those_of_an_exact_multiset(steps: list[tuple[bool, int]], hashes: int) -> None:
    members = members_of(16, hashes)
    inside: Counter[int] = Counter()

    for adding, key in steps:
        if adding:
            add(members, np.uint64(key))
            inside[key] += 1
        elif inside[key]:
            remove(members, np.uint64(key))
            inside[key] -= 1

    expected = [0] * 16
    for key, times in inside.items():
        for cell in cells_of(members, key):
            expected[cell] += times
    assert members.cells.tolist() == expected
    assert all(contains(members, np.uint64(key)) for key, times in inside.items() if times)


@pytest.mark.parametrize("rate", [0.1, 0.01, 0.001])
def test_rate_holds_at_the_expected_keys(rate: float) -> None:
    hashes, cells = sizes(700, rate)
    members = members_of(cells, hashes)

    for key in range(700):
        add(members, np.uint64(key))

    assert share_of_strangers_in(members) <= 1.2 * rate


def test_sixteen_cells_take_nearly_all_strangers_in_with_twenty_keys() -> None:
    members = members_of(cells=16, hashes=4)

    for key in range(20):
        add(members, np.uint64(key))

    assert share_of_strangers_in(members, tries=2000) > 0.9


def test_filter_is_empty_after_all_keys_left() -> None:
    members = members_of(64, 7)
    keys = [np.uint64(key) for key in (0, 1, 2**64 - 1, 1)]

    for key in keys:
        add(members, key)
    for key in keys:
        remove(members, key)

    assert not members.cells.any()
    assert not any(contains(members, key) for key in keys)
