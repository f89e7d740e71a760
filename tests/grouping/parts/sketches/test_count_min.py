"""The Count-Min pair against a plain twin, and the facts of paper 004, sections III-A and IV-B."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.sketches import cost
from unskew.grouping.hashing import pick, salts
from unskew.grouping.parts.sketches.count_min import (
    add,
    freeze,
    frozen_cost,
    is_stable,
    mean_cost,
    ratios,
    shape,
    spread,
)

KEYS = st.integers(0, 2**64 - 1)
UPDATES = st.lists(st.tuples(KEYS, st.integers(1, 500), st.floats(0, 1e3)), max_size=40)


def empty_pair(rows: int = 3, columns: int = 5) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros((rows, columns)), np.zeros((rows, columns))


class Twin:
    """The definition, in lists and loops."""

    def __init__(self, salt: np.ndarray, columns: int) -> None:
        self.salt, self.columns = salt, columns
        self.cells = {(i, j): [0.0, 0.0] for i in range(salt.size) for j in range(columns)}

    def at(self, key: int) -> list[list[float]]:
        return [
            self.cells[i, pick(np.uint64(key), self.salt[i], self.columns)]
            for i in range(self.salt.size)
        ]

    def add(self, key: int, records: float, seconds: float) -> None:
        for cell in self.at(key):
            cell[0] += records
            cell[1] += seconds

    def cost(self, key: int, unseen: float) -> float:
        records, seconds = min(self.at(key), key=lambda cell: cell[0])
        return seconds / records if records else unseen


@pytest.mark.parametrize(
    ("epsilon", "delta", "expected"),
    [
        (0.05, 0.1, (4, 55)),  # the paper prints 54 columns
        (0.7, 0.25, (2, 4)),  # its figure 1
        (1.0, 0.5, (1, 3)),
        (0.001, 0.1, (4, 2719)),
        (3.0, 0.99, (1, 1)),
    ],
)
def test_shape_follows_epsilon_and_delta(
    epsilon: float, delta: float, expected: tuple[int, int]
) -> None:
    assert shape(epsilon, delta) == expected


@settings(deadline=None, max_examples=60)
@given(updates=UPDATES, asked=KEYS, seed=st.integers(0, 1000))
def test_pair_equals_its_plain_twin(
    updates: list[tuple[int, int, float]], asked: int, seed: int
) -> None:
    salt = salts(seed, 3)
    records, seconds = empty_pair()
    twin = Twin(salt, 5)
    for key, count, spent in updates:
        add(records, seconds, salt, np.uint64(key), float(count), spent)
        twin.add(key, count, spent)
    frozen = np.zeros((1, 3, 5, 2), np.float32)
    freeze(records, seconds, 0.25, frozen[0])

    for key in [asked, *(key for key, _, _ in updates)]:
        estimate = cost(records, seconds, salt, np.uint64(key), 0.25)
        assert estimate == twin.cost(key, 0.25)
        assert frozen_cost(frozen, 0, salt, np.uint64(key)) == pytest.approx(estimate, rel=1e-6)


@settings(deadline=None, max_examples=60)
@given(
    updates=st.lists(st.tuples(KEYS, st.floats(0.001, 64)), min_size=1, max_size=60),
    seed=st.integers(0, 1000),
)
def test_estimates_stay_between_the_least_and_the_largest_cost(
    updates: list[tuple[int, float]], seed: int
) -> None:
    salt = salts(seed, 2)
    records, seconds = empty_pair(2, 4)
    for key, spent in updates:
        add(records, seconds, salt, np.uint64(key), 1.0, spent)

    low = min(spent for _, spent in updates) * (1 - 1e-9)
    high = max(spent for _, spent in updates) * (1 + 1e-9)
    assert all(
        low <= cost(records, seconds, salt, np.uint64(key), 0.0) <= high for key, _ in updates
    )
    assert records.sum(axis=1).tolist() == [len(updates)] * 2


@pytest.mark.parametrize("key", [0, 2**64 - 1])
def test_key_alone_in_the_sketch_is_exact(key: int) -> None:
    records, seconds = empty_pair()
    add(records, seconds, salts(1, 3), np.uint64(key), 1.0, 0.5)
    add(records, seconds, salts(1, 3), np.uint64(key), 3.0, 2.5)

    assert cost(records, seconds, salts(1, 3), np.uint64(key), 9.0) == 0.75


def test_mean_of_the_estimate_follows_the_papers_formula() -> None:
    n, c, asked = 40, 8, 3
    costs = np.arange(1.0, n + 1)
    estimates = []
    for seed in range(4000):
        salt = salts(seed, 1)
        records, seconds = empty_pair(1, c)
        for key in range(n):
            add(records, seconds, salt, np.uint64(key), 1.0, costs[key])
        estimates.append(cost(records, seconds, salt, np.uint64(asked), 0.0))

    total, own = costs.sum(), costs[asked]
    expected = (total - own) / (n - 1) - c * (total - n * own) / (n * (n - 1)) * (
        1 - (1 - 1 / c) ** n
    )
    assert np.mean(estimates) == pytest.approx(expected, rel=0.02)


def test_records_of_unknown_keys_cost_the_mean() -> None:
    records, seconds = empty_pair(2, 4)
    spread(records, seconds, 8.0, 2.0)

    assert records.tolist() == [[2.0] * 4] * 2
    assert cost(records, seconds, salts(1, 2), np.uint64(5), 9.0) == 0.25
    assert mean_cost(records, seconds) == 0.25


def test_empty_pair_has_no_costs() -> None:
    records, seconds = empty_pair()
    out = np.ones_like(records)
    ratios(records, seconds, out)

    assert not out.any()
    assert mean_cost(records, seconds) == 0.0
    assert cost(records, seconds, salts(1, 3), np.uint64(5), 9.0) == 9.0


@pytest.mark.parametrize(
    ("now", "tolerance", "expected"),
    [
        ([2.0, 4.0, 0.0], 0.0, True),
        ([2.0, 4.3, 0.0], 0.05, True),  # 0.3 of 6
        ([2.0, 4.31, 0.0], 0.05, False),
        ([2.3, 3.7, 0.0], 0.05, False),  # changes do not cancel
        ([2.0, 4.0, 0.4], 0.05, False),  # a cell that was empty counts
    ],
)
def test_stability_is_the_change_of_all_ratios_relative_to_their_sum(
    now: list[float], tolerance: float, expected: bool
) -> None:
    before = np.array([[2.0, 4.0, 0.0]])
    records = np.array([[10.0, 5.0, 1.0 if now[2] else 0.0]])

    assert is_stable(records, np.array([now]) * records, before, tolerance + 1e-12) is expected
