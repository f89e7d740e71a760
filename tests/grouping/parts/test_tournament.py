"""The tournament against a scan."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.parts.tournament import find_winner, replay, tournament


@settings(deadline=None, max_examples=60)
@given(
    values=st.lists(st.integers(0, 3).map(float), min_size=1, max_size=70),
    changes=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 5).map(float)), max_size=60),
    data=st.data(),
)
def test_winner_is_the_first_of_the_least(
    values: list[float], changes: list[tuple[int, float]], data: st.DataObject
) -> None:
    n = len(values)
    away = data.draw(st.sets(st.integers(0, n - 1), max_size=n - 1))
    mask = np.array([i not in away for i in range(n)], np.uint8)
    twin = np.where(mask == 1, values, np.inf)
    tree = tournament(np.array(values), mask)
    assert find_winner(tree) == int(twin.argmin())

    for position, value in changes:
        chosen = int(np.flatnonzero(mask)[position % mask.sum()])
        twin[chosen] = value
        assert replay(tree, chosen, value) == int(twin.argmin())


@pytest.mark.parametrize("n", [1, 2, 4, 5, 16, 17, 100, 1000, 10_000])
def test_greedy_with_equal_costs_is_round_robin(n: int) -> None:
    tree = tournament(np.zeros(n), np.ones(n, np.uint8))
    order = [find_winner(tree)]
    for i in range(2 * n - 1):
        order.append(replay(tree, order[-1], float(i // n + 1)))

    assert order == [*range(n), *range(n)]
