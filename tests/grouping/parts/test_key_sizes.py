"""What a key costs beside its records: once a share, for those that have records of a size."""

import numpy as np
import pytest

from unskew.grouping.base import Chunk
from unskew.grouping.parts import key_sizes
from unskew.grouping.parts.key_sizes import add_key_size


def chunk(keys: list[int], sizes: list[int]) -> Chunk:
    return np.array(keys, np.uint64), np.array(sizes, np.int64)


def sizes_of(chunks: list[Chunk], size: int) -> list[list[int]]:
    return [sizes.tolist() for _, sizes in add_key_size(chunks, size, 1) if sizes is not None]


def test_the_first_record_of_each_key_in_a_share_costs_more() -> None:
    chunks = [chunk([5, 7, 5], [1, 2, 3]), chunk([7, 9, 9, 5], [4, 5, 6, 7]), chunk([], [])]
    assert sizes_of(chunks, 100) == [[101, 102, 3], [4, 105, 6, 7], []]
    assert chunks[0][1] is not None
    assert chunks[0][1].tolist() == [1, 2, 3]


def test_a_record_without_a_size_is_in_no_file() -> None:
    assert sizes_of([chunk([5, 5, 6], [0, 2, 0]), chunk([6], [1])], 10) == [[0, 12, 0], [11]]


def test_nothing_is_added_where_nothing_is_asked() -> None:
    times = np.array([3], np.uint64), None
    assert list(add_key_size([times], 10, 1)) == [times]
    assert sizes_of([chunk([5], [1])], 0) == [[1]]


def test_memory_is_bounded_whatever_a_share_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_sizes, "_KEYS_MAX", 3)
    chunks = [chunk([1, 2], [1, 1]), chunk([1, 3], [1, 1]), chunk([3, 1], [1, 1])]
    # The first two chunks' keys are too many together, so the second's are remembered alone.
    assert sizes_of(chunks, 10) == [[11, 11], [1, 11], [1, 1]]


def test_each_source_adds_its_part_rounded_up() -> None:
    ((_, sizes),) = add_key_size([chunk([5], [1])], 10, 3)
    assert sizes is not None
    assert sizes.tolist() == [5]
