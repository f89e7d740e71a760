"""Longest processing time first: its bound, hysteresis, and moves that are bounded."""

import heapq
from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.base import Float64s, Int32s
from unskew.grouping.parts.longest_first import assign

ANY = 10**6


def assigned(
    work: list[float],
    before: list[int],
    partitions: int,
    slack: float = 0.0,
    moves_max: int = ANY,
) -> Int32s:
    return assign(
        np.array(work, np.float64),
        np.array(before, np.int32),
        np.ones(partitions, np.uint8),
        slack,
        moves_max,
    )


def loads_of(work: list[float], to: Int32s, partitions: int) -> Float64s:
    return np.bincount(to, work, partitions)


def textbook(work: list[float], partitions: int) -> float:
    """The largest load of longest processing time first, with a heap."""
    loads = [(0.0, p) for p in range(partitions)]
    for each in sorted(work, reverse=True):
        load, p = heapq.heappop(loads)
        heapq.heappush(loads, (load + each, p))
    return max(loads)[0]


JOBS = st.lists(st.integers(1, 50), min_size=1, max_size=9).map(lambda w: sorted(w, reverse=True))


@settings(max_examples=60, deadline=None)
@given(work=JOBS, partitions=st.integers(1, 3), data=st.data())
def test_largest_load_is_within_grahams_bound_and_the_slack(
    work: list[int], partitions: int, data: st.DataObject
) -> None:
    before = data.draw(
        st.lists(st.integers(0, partitions - 1), min_size=len(work), max_size=len(work))
    )
    slack = data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    jobs = [float(each) for each in work]

    largest = loads_of(jobs, assigned(jobs, before, partitions, slack), partitions).max()

    ways = product(range(partitions), repeat=len(jobs))
    best = min(np.bincount(way, jobs, partitions).max() for way in ways) if len(jobs) < 7 else 0
    assert largest <= (1 + slack) * textbook(jobs, partitions) + 1e-9
    if best:
        assert largest <= (1 + slack) * (4 / 3 - 1 / (3 * partitions)) * best + 1e-9


def test_a_job_stays_where_it_was_while_that_is_no_later() -> None:
    assert assigned([4, 3, 2, 1], [1, 0, 0, 1], 2).tolist() == [1, 0, 0, 1]


def test_jobs_that_are_a_little_late_stay_within_the_slack() -> None:
    work, before = [50.0, 49.0, 2.0], [0, 1, 0]

    assert assigned(work, before, 2, slack=0.05).tolist() == [0, 1, 0]
    assert assigned(work, before, 2, slack=0.0).tolist() == [0, 1, 1]


def test_jobs_that_would_end_too_late_as_they_lie_are_assigned_anew() -> None:
    # Kept where they were while they fit, 3 3 2 2 2 would end at 7.
    to = assigned([3, 3, 2, 2, 2], [0, 1, 0, 0, 1], 2)

    assert loads_of([3, 3, 2, 2, 2], to, 2).max() == textbook([3, 3, 2, 2, 2], 2)


def test_a_partition_that_is_away_gets_nothing() -> None:
    work, before = np.array([3.0, 2.0, 1.0]), np.array([0, 0, 2], np.int32)

    to = assign(work, before, np.array([1, 0, 1], np.uint8), 0.0, ANY)

    assert to.tolist() == [0, 2, 2]


def test_no_more_jobs_move_than_are_allowed_and_the_fullest_partition_is_relieved_first() -> None:
    work, before = [8.0, 7.0, 6.0, 5.0, 4.0, 3.0], [0, 0, 0, 0, 1, 1]

    for moves_max in range(4):
        to = assigned(work, before, 3, moves_max=moves_max)
        assert np.count_nonzero(to != before) <= moves_max
    assert assigned(work, before, 3, moves_max=0).tolist() == before
    after = loads_of(work, assigned(work, before, 3, moves_max=1), 3)
    assert after.max() < loads_of(work, np.array(before), 3).max()


def test_a_move_that_would_make_the_fullest_fuller_waits() -> None:
    # Only both moves together help: 5 to where 4 is, and 4 away from there.
    work, before = [5.0, 4.0, 4.0, 3.0], [0, 1, 0, 1]

    to = assigned(work, before, 2, moves_max=1)

    assert loads_of(work, to, 2).max() <= 9
