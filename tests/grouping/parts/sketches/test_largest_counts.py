"""Counts that are joined of parts: bounds that hold however the records were cut."""

from collections import Counter
from collections.abc import Iterable
from itertools import chain

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.parts.sketches import largest_counts
from unskew.grouping.parts.sketches.largest_counts import LargestCounts, joined, of_piece


def alike(keys: UInt64s) -> Int64s:
    return np.ones(keys.size, np.int64)


def dear(keys: UInt64s) -> Int64s:
    """Key k has k + 1 ticks a record."""
    return keys.astype(np.int64) + 1


def piece(keys: list[int]) -> LargestCounts:
    return of_piece(*np.unique(np.array(keys, np.uint64), return_counts=True))


def all_of(lists: Iterable[list[int]]) -> list[int]:
    return list(chain.from_iterable(lists))


def assert_bounds(counts: LargestCounts, stream: list[int], ticks: int = 1) -> None:
    """True counts are within the bounds, and no key that is not listed has more than it says."""
    true = Counter(stream)
    for key, records, error in zip(counts.keys, counts.records, counts.errors, strict=True):
        assert records <= true.pop(int(key), 0) <= records + error
    for key, records in true.items():
        assert records * (1 if ticks == 1 else key + 1) <= counts.unlisted


KEYS = st.lists(st.integers(0, 12), max_size=40)


@settings(max_examples=150, deadline=None)
@given(sources=st.lists(st.lists(KEYS, max_size=3), min_size=1, max_size=4), room=st.integers(1, 6))
def test_bounds_hold_for_pieces_of_sources_and_for_all_sources(
    sources: list[list[list[int]]], room: int
) -> None:
    parts = []
    for pieces in sources:
        own = largest_counts.NOTHING
        for keys in pieces:
            own = joined([own, piece(keys)], room, alike)
        assert_bounds(own, all_of(pieces))
        parts.append(own)
    stream = all_of(all_of(pieces) for pieces in sources)

    counts = joined(parts, room, alike)

    assert_bounds(counts, stream)
    assert counts.keys.size <= room
    assert counts.unlisted <= len(stream) / (room + 1)


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(KEYS, min_size=1, max_size=4), room=st.integers(1, 6))
def test_bounds_hold_by_work_where_records_cost_differently(
    pieces: list[list[int]], room: int
) -> None:
    counts = largest_counts.NOTHING
    for keys in pieces:
        counts = joined([counts, piece(keys)], room, dear)

    assert_bounds(counts, all_of(pieces), ticks=2)


def test_dear_keys_stay_before_frequent_ones() -> None:
    counts = joined([piece([0] * 9 + [9] * 2)], 1, dear)

    assert (counts.keys.tolist(), counts.records.tolist(), counts.unlisted) == ([9], [2], 9)


def test_counts_go_through_a_state_unchanged() -> None:
    state = largest_counts.arrays(3)
    counts = joined([piece([5, 5, 5, 6, 7, 7, 8])], 2, alike)

    largest_counts.write(state, joined([piece([1, 2, 3])], 3, alike))
    largest_counts.write(state, counts)

    again = largest_counts.read(state)
    assert [array.tolist() for array in again[:3]] == [array.tolist() for array in counts[:3]]
    assert again.unlisted == counts.unlisted == 1
