"""D-Choices: d from the inequality, and the figures 4, 5, 6, 9 and 10 of the paper."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.algorithms.d_choices import fill
from unskew.grouping.base import Float64s, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import salts
from unskew.grouping.parts.choices import solve_choices
from unskew.grouping.parts.two_choices import two_choices
from unskew.grouping.registry import create

EPSILON = 1e-4


def shares_of_zipf(z: float, keys: int = 10_000) -> Float64s:
    weights = np.arange(1, keys + 1, dtype=np.float64) ** -z
    return weights / weights.sum()


def head_of(z: float, partitions: int) -> Float64s:
    shares = shares_of_zipf(z)
    return shares[shares >= 1 / (5 * partitions)]


def holds_exactly(shares: list[Fraction], d: int, n: int, epsilon: Fraction, h: int) -> bool:
    b = n - n * Fraction(n - 1, n) ** (h * d)
    load = sum(shares[:h])
    load += (b / n) ** d * sum(shares[h:])
    load += (b / n) ** 2 * (1 - sum(shares))
    return load <= b * (Fraction(1, n) + epsilon)


def brute_force(shares: list[Fraction], n: int, epsilon: Fraction) -> int:
    """Inequality (3) in exact arithmetic, every d from 2 and every prefix."""
    for d in range(2, n):
        prefixes = range(1, len(shares) + 1)
        if shares[0] * n <= d and all(holds_exactly(shares, d, n, epsilon, h) for h in prefixes):
            return d
    return n


@given(
    weights=st.lists(st.integers(1, 40), min_size=1, max_size=6),
    tail=st.integers(0, 200),
    n=st.integers(2, 14),
)
@settings(max_examples=100, deadline=None)
def test_choices_are_those_of_exact_arithmetic(weights: list[int], tail: int, n: int) -> None:
    total = sum(weights) + tail
    shares = [Fraction(weight, total) for weight in sorted(weights, reverse=True)]
    # An epsilon that no equality of small fractions meets: rounding cannot decide.
    solved = solve_choices(np.array([float(share) for share in shares]), n, 1.23456789e-4)

    assert solved == brute_force(shares, n, Fraction("1.23456789e-4"))


@pytest.mark.parametrize(
    ("partitions", "by_tenths_of_z"),
    [
        (5, {5: 2, 10: 2, 12: 2, 13: 4, 14: 5, 20: 5}),
        (10, {5: 2, 10: 2, 12: 3, 13: 7, 14: 8, 15: 9, 16: 10}),
        (20, {8: 2, 10: 3, 12: 7, 14: 10, 16: 13, 20: 20}),
        (50, {8: 2, 10: 6, 12: 13, 14: 22, 16: 31, 20: 49}),
        (100, {6: 2, 8: 4, 10: 12, 12: 25, 14: 43, 16: 61, 20: 95}),
    ],
)
def test_choices_of_known_zipf_heads(partitions: int, by_tenths_of_z: dict[int, int]) -> None:
    solved = {
        tenths: solve_choices(head_of(tenths / 10, partitions), partitions, EPSILON)
        for tenths in by_tenths_of_z
    }

    assert solved == by_tenths_of_z


@pytest.mark.parametrize("partitions", [50, 100])
def test_at_larger_scales_fewer_than_all_partitions_are_enough(partitions: int) -> None:
    choices = [
        solve_choices(head_of(tenths / 10, partitions), partitions, EPSILON)
        for tenths in range(1, 21)
    ]

    assert choices == sorted(choices)
    assert max(choices) < partitions
    assert choices[0] == 2


def test_memory_is_at_most_a_third_above_two_choices_and_a_fifth_of_shuffle() -> None:
    for partitions in (50, 100):
        for tenths in range(1, 21):
            counts = shares_of_zipf(tenths / 10) * 1e7
            head = head_of(tenths / 10, partitions)
            d = solve_choices(head, partitions, EPSILON)

            def pairs(choices: int, counts: Float64s = counts, size: int = head.size) -> float:
                hot, cold = np.minimum(counts[:size], choices), np.minimum(counts[size:], 2)
                return float(hot.sum() + cold.sum())

            assert pairs(2) <= pairs(d) <= pairs(partitions) <= 1.3 * pairs(2)
            assert pairs(d) <= 0.21 * np.minimum(counts, partitions).sum()


@pytest.mark.parametrize(
    ("shares", "partitions", "expected"),
    [([], 10, 2), ([], 1, 1), ([1.0], 1, 1), ([1.0], 10, 10), ([0.9], 2, 2), ([0.2, 0.1], 50, 14)],
)
def test_choices_at_the_edges(shares: list[float], partitions: int, expected: int) -> None:
    assert solve_choices(np.array(shares, np.float64), partitions, EPSILON) == expected


def zipf(z: float, records: int, seed: int = 0) -> UInt64s:
    upto = np.cumsum(shares_of_zipf(z))
    draws = np.random.default_rng(seed).random(records)
    return np.minimum(np.searchsorted(upto, draws, side="right"), 9999).astype(np.uint64)


@pytest.mark.parametrize(("z", "exact"), [(1.0, 12), (1.4, 43), (2.0, 95)])
def test_choices_found_in_the_stream_are_near_those_of_the_exact_head(z: float, exact: int) -> None:
    grouping = create("d_choices", partitions=100, seed=1)
    grouping.route(zipf(z, 200_000))

    assert grouping.signals()["head_choices"] == pytest.approx(exact, rel=0.1, abs=1)


def candidates_of(key: int, choices: int, partitions: int, seed: int) -> list[int]:
    row = np.empty(partitions, np.int32)
    every = np.arange(partitions, dtype=np.int32)
    mask, taken = np.ones(partitions, np.uint8), np.zeros(partitions, np.uint8)
    fill(row, np.uint64(key), choices, salts(seed, partitions), mask, every, taken)
    assert not taken.any()
    return row[:choices].tolist()


def test_candidates_are_nested_and_begin_with_the_cold_two() -> None:
    mask, every = np.ones(30, np.uint8), np.arange(30, dtype=np.int32)
    for key in range(50):
        most = candidates_of(key, 29, 30, seed=1)
        assert len(set(most)) == 29
        assert tuple(most[:2]) == two_choices(np.uint64(key), salts(1, 30), mask, every)
        for choices in range(2, 29):
            assert candidates_of(key, choices, 30, seed=1) == most[:choices]


def test_hot_key_stays_near_its_choices_and_a_cold_one_on_two() -> None:
    keys = zipf(1.4, 200_000)
    grouping = create("d_choices", partitions=100, seed=1)
    routes = grouping.route(keys)

    # Somewhat more than the final d of 43: it is found from shares that vary at first.
    assert all(np.unique(routes[keys == rank]).size <= 60 for rank in range(20))
    assert max(np.unique(routes[keys == rank]).size for rank in range(300, 500)) == 2


@pytest.mark.parametrize(("z", "partitions"), [(1.2, 40), (2.0, 10), (0.8, 20)])
def test_record_goes_to_the_first_of_the_least_loaded_candidates(z: float, partitions: int) -> None:
    grouping = create("d_choices", partitions=partitions, seed=2)
    grouping.route(zipf(z, 60_000))
    loads = grouping.state["loads"].copy()
    choices = grouping.choices
    for key in zipf(z, 400, seed=1).tolist():
        (chosen,) = grouping.route(np.array([key], np.uint64))
        hot = key in grouping.hot_keys().tolist()
        candidates = candidates_of(key, choices if hot else 2, partitions, seed=2)
        if hot and choices >= partitions:
            candidates = list(range(partitions))
        assert chosen == min(candidates, key=lambda partition: loads[partition])
        loads[chosen] += 1
    assert grouping.choices == choices


def hot_sets(keys: range, choices: int, partitions: int, active: list[int]) -> list[set[int]]:
    mask, row = np.zeros(partitions, np.uint8), np.empty(partitions, np.int32)
    mask[active] = 1
    taken, those = np.zeros(partitions, np.uint8), np.array(active, np.int32)
    sets = []
    for key in keys:
        size = fill(row, np.uint64(key), choices, salts(2, choices), mask, those, taken)
        sets.append(set(row[:size].tolist()))
    return sets


@pytest.mark.parametrize(
    ("partitions", "choices", "away"), [(20, 6, 0), (20, 19, 0), (300, 3, 295)]
)
def test_hot_key_gives_up_one_candidate_for_the_one_that_left_and_keeps_the_others(
    partitions: int, choices: int, away: int
) -> None:
    """One of d partitions for d in n of the hot keys, also where nearly all others are away."""
    active = list(range(partitions - away))
    fewer = [p for p in active if p != 4]
    keys = range(500)
    before = hot_sets(keys, choices, partitions, active)
    after = hot_sets(keys, choices, partitions, fewer)

    for had, has in zip(before, after, strict=True):
        assert len(has) == choices
        assert had - has == had & {4}
        assert len(has - had) == len(had & {4})
    met = np.mean([4 in had for had in before])
    assert met == pytest.approx(choices / len(active), abs=0.07)


def test_choices_follow_the_active_partitions() -> None:
    keys = zipf(1.4, 300_000)
    grouping = create("d_choices", partitions=100, seed=1)
    grouping.route(keys[:200_000])
    grouping.set_active(range(50))
    routes = grouping.route(keys[200_000:])

    assert grouping.choices == pytest.approx(22, abs=2)
    assert set(routes.tolist()) == set(range(50))


def imbalance(name: str, z: float, partitions: int, seed: int, **options: object) -> float:
    keys, total = zipf(z, 300_000, seed), np.zeros(partitions, np.int64)
    for source in range(5):
        grouping = create(
            name, partitions=partitions, source=source, sources=5, seed=seed, **options
        )
        total += np.bincount(grouping.route(keys[source::5]), minlength=partitions)
    return float((total.max() - total.mean()) / total.sum())


@pytest.mark.parametrize("z", [1.2, 1.6, 2.0])
def test_w_choices_balances_best_then_d_choices_then_two(z: float) -> None:
    w, d, two = (
        imbalance(name, z, 100, seed=1) for name in ("w_choices", "d_choices", "partial_key")
    )

    # Five sources, each of which rounds on its own.
    assert w <= d + 5 / 300_000
    assert d <= 1e-3
    assert two > 0.05


def test_raised_choices_close_the_cell_where_the_inequality_is_not_enough() -> None:
    papers = [imbalance("d_choices", 1.2, 10, seed) for seed in range(5)]
    raised = [imbalance("d_choices", 1.2, 10, seed, raise_choices=True) for seed in range(5)]

    assert max(papers) > 1e-3
    assert max(raised) < 5e-4


@pytest.mark.parametrize(("partitions", "choices", "expected"), [(50, 5, 5), (50, 2, 2), (3, 9, 3)])
def test_choices_may_be_fixed(partitions: int, choices: int, expected: int) -> None:
    keys = zipf(2.0, 50_000)
    grouping = create("d_choices", partitions=partitions, seed=1, choices=choices)
    routes = grouping.route(keys)

    assert grouping.signals()["head_choices"] == expected
    hottest = grouping.hot_keys()[0]
    assert np.unique(routes[keys == hottest]).size == expected


def test_fixed_choices_are_not_raised() -> None:
    with pytest.raises(GroupingError, match=r"raise_choices and choices .* \(got true and 5\)"):
        create("d_choices", partitions=4, choices=5, raise_choices=True)
