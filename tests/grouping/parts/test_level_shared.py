"""A source's shared keys, each of which fills the lowest of its partitions."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from unskew.grouping.base import Int64s
from unskew.grouping.parts.level.shared_keys import fill_shared


def fill(records: list[int], where: list[list[int]], loads: Int64s) -> list[Int64s]:
    """What each key gives to each of its partitions; `loads` are with it."""
    first = np.cumsum([0, *map(len, where)])
    partitions = np.array([p for each in where for p in each], np.int32)
    given_ = fill_shared(np.array(records, np.int64), first, partitions, 0, loads)
    return np.split(given_, first[1:-1])


def test_a_key_fills_the_lowest_of_its_partitions() -> None:
    loads = np.array([5, 1, 9, 2], np.int64)
    (given_,) = fill([9], [[0, 1, 3]], loads)
    assert given_.tolist() == [1, 5, 3]
    assert loads.tolist() == [6, 6, 9, 5]


def test_a_key_makes_room_for_another_that_cannot_go_elsewhere() -> None:
    loads = np.zeros(3, np.int64)
    given_ = fill([6, 6], [[0, 1], [1, 2]], loads)
    assert loads.tolist() == [4, 4, 4]
    assert [each.tolist() for each in given_] == [[4, 2], [2, 4]]


def test_large_keys_that_share_a_partition_are_level_in_all_of_theirs() -> None:
    """What a partition has too much goes to forty others, of which one alone leads to the rest."""
    loads = np.zeros(48, np.int64)
    fill([7_500, 40_500], [[*range(8)], [*range(7, 48)]], loads)
    assert loads.max() <= 1.001 * loads.mean()


KEYS = st.lists(
    st.tuples(st.integers(0, 5_000), st.lists(st.integers(0, 15), min_size=2, unique=True)),
    min_size=1,
    max_size=6,
)


@settings(deadline=None, max_examples=200)  # the first example compiles the kernel
@given(KEYS, st.lists(st.integers(0, 1_000), min_size=16, max_size=16))
@example([(1_000, [0, 1, 2, 3]), (9_000, [*range(3, 16)])], [0] * 16)
def test_no_record_would_be_better_off_elsewhere(
    keys: list[tuple[int, list[int]]], base: list[int]
) -> None:
    """Up to a part in a hundred of the mean: rounds are bounded."""
    loads = np.array(base, np.int64)
    where = [partitions for _, partitions in keys]
    given_ = fill([records for records, _ in keys], where, loads)
    assert [each.sum() for each in given_] == [records for records, _ in keys]
    assert (
        loads.tolist()
        == (base + np.bincount(np.concatenate(where), np.concatenate(given_), 16))
        .astype(int)
        .tolist()
    )
    for parts, partitions in zip(given_, where, strict=True):
        full = [loads[p] for part, p in zip(parts, partitions, strict=True) if part]
        assert max(full, default=0) <= loads[partitions].min() + 2 + 0.01 * loads.mean()
