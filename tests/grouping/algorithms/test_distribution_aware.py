"""distribution_aware: it learns, then maps whole keys, and never again."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.algorithms.distribution_aware import schedule
from unskew.grouping.base import UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.hashing import mix64
from unskew.grouping.registry import create


def zipf(z: float, records: int, seed: int, *, turned: bool = False) -> UInt64s:
    """10,000 keys in a Zipf law; `turned` gives them the reversed ranking."""
    shares = np.cumsum(np.arange(1, 10_001) ** -z)
    draws = np.random.default_rng(seed).random(records) * shares[-1]
    ranks = np.minimum(np.searchsorted(shares, draws), 9999)
    ids = np.array([mix64(np.uint64(i + 1)) for i in range(10_000)], np.uint64)
    return ids[9999 - ranks if turned else ranks]


def share_of_the_hottest(z: float) -> float:
    return float(1 / (np.arange(1, 10_001) ** -z).sum())


def largest(partitions: np.ndarray, n: int) -> float:
    loads = np.bincount(partitions, minlength=n)
    return float(loads.max() / loads.mean())


def test_learning_records_go_home_as_with_key_grouping() -> None:
    keys = zipf(1.0, 5000, 1)

    out = create("distribution_aware", partitions=7, seed=3).route(keys)

    assert out.tolist() == create("key", partitions=7, seed=3).route(keys).tolist()


def test_two_heavy_keys_get_a_partition_each_and_the_buckets_the_others() -> None:
    """Loads 300, 300 and 400 in buckets: greedy puts no bucket to a heavy key before it must."""
    heavy = np.repeat(np.array([11, 22], np.uint64), 300)
    keys = np.concatenate([heavy, np.arange(1000, 1400, dtype=np.uint64)])
    grouping = create("distribution_aware", partitions=4, seed=1, learning_records=1000, theta=0.1)
    grouping.route(keys)

    out = grouping.route(keys)

    loads = np.bincount(out, minlength=4)
    assert grouping.hot_keys().tolist() == [11, 22]
    assert np.unique(out[keys == 11]).size == np.unique(out[keys == 22]).size == 1
    assert loads[[out[0], out[300]]].tolist() == [300, 300]
    assert np.sort(loads)[:2].tolist() == pytest.approx([200, 200], abs=20)


def test_mapping_is_made_at_the_exact_record() -> None:
    keys = zipf(1.2, 2000, 1)
    grouping = create("distribution_aware", partitions=4, seed=1, learning_records=777)

    states = []
    for count in (776, 1, 1):
        grouping.route(keys[:count])
        states.append((grouping.signals()["learned_records"], grouping.signals()["mapped"]))

    assert states == [(776, 0), (777, 1), (777, 1)]


def test_balance_on_zipf_is_that_of_the_best_whole_key_mapping() -> None:
    """Near perfect where no key is above a partition's share; else exactly the hottest key's."""
    for n, z, limit in ((10, 0.5, 1.06), (10, 0.8, 1.08), (10, 1.0, 1.08), (50, 0.5, 1.12)):
        ratios = []
        for seed in range(3):
            grouping = create("distribution_aware", partitions=n, seed=seed)
            keys = zipf(z, 1000 * n + 400_000, seed)
            grouping.route(keys[: 1000 * n])
            ratios.append(largest(grouping.route(keys[1000 * n :]), n))
        assert np.median(ratios) < limit

    for n, z in ((50, 1.0), (10, 1.4)):
        grouping = create("distribution_aware", partitions=n, seed=1)
        keys = zipf(z, 1000 * n + 200_000, 1)
        grouping.route(keys[: 1000 * n])
        measured = largest(grouping.route(keys[1000 * n :]), n)
        assert measured == pytest.approx(n * share_of_the_hottest(z), rel=0.02)
        assert grouping.signals()["mapped_max_over_mean"] == pytest.approx(measured, rel=0.05)


def test_no_key_is_split_once_mapped() -> None:
    keys = zipf(1.4, 100_000, 1)
    grouping = create("distribution_aware", partitions=10, seed=1)
    grouping.route(keys[:10_000])

    out = grouping.route(keys[10_000:])

    pairs = np.unique(np.stack([keys[10_000:], out.astype(np.uint64)]), axis=1)
    assert pairs.shape[1] == np.unique(keys[10_000:]).size


def test_drift_breaks_the_frozen_mapping() -> None:
    """From 1.04 to 1.8 of the mean, and it stays there."""
    before, after, key = [], [], []
    for seed in range(3):
        grouping = create("distribution_aware", partitions=10, seed=seed)
        grouping.route(zipf(1.0, 10_000, seed))
        before.append(largest(grouping.route(zipf(1.0, 200_000, seed + 10)), 10))
        drifted = zipf(1.0, 200_000, seed + 20, turned=True)
        grouping.route(drifted)
        after.append(largest(grouping.route(drifted), 10))
        key.append(largest(create("key", partitions=10, seed=seed).route(drifted), 10))

    assert np.median(before) < 1.08
    assert np.median(after) > 1.4
    # No better than the plain hash then.
    assert np.median(after) > 0.8 * np.median(key)


def test_only_keys_of_partitions_that_left_move_and_they_return() -> None:
    keys = np.unique(zipf(0.8, 100_000, 1))
    grouping = create("distribution_aware", partitions=10, seed=1)
    grouping.route(zipf(0.8, 10_000, 2))
    before = grouping.route(keys)

    grouping.set_active([0, 1, 2, 4, 5, 6, 7, 9])
    without = grouping.route(keys)
    grouping.set_active(range(10))
    after = grouping.route(keys)

    gone = np.isin(before, [3, 8])
    assert np.array_equal(without != before, gone)
    assert gone.mean() == pytest.approx(0.2, abs=0.03)
    assert not np.isin(without, [3, 8]).any()
    assert np.array_equal(after, before)


def test_load_of_partitions_that_left_is_spread_evenly() -> None:
    grouping = create("distribution_aware", partitions=10, seed=1)
    grouping.route(zipf(0.8, 10_000, 2))

    grouping.set_active([0, 1, 2, 4, 5, 6, 7, 9])

    loads = np.bincount(grouping.route(zipf(0.8, 400_000, 3)), minlength=10)
    assert loads.max() < 1.12 * loads.sum() / 8


def test_partitions_away_while_learning_are_used_when_they_come() -> None:
    grouping = create("distribution_aware", partitions=10, seed=1)
    grouping.set_active([4, 5])
    out = grouping.route(zipf(0.5, 10_100, 2))
    assert np.unique(out).tolist() == [4, 5]

    grouping.set_active(range(10))

    assert largest(grouping.route(zipf(0.5, 400_000, 3)), 10) < 1.08


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=7), st.integers(1, 3))
def test_schedule_is_within_grahams_bound_of_the_best(weights: list[int], n: int) -> None:
    items, loads = np.array(weights, np.float64), np.zeros(n)
    assigned = np.full(items.size, -1, np.int32)

    schedule(
        items, np.argsort(-items, kind="stable"), np.arange(n, dtype=np.int32), loads, assigned
    )

    best = min(
        max(np.bincount(choice, weights=items, minlength=n))
        for choice in product(range(n), repeat=items.size)
    )
    assert loads.tolist() == np.bincount(assigned, weights=items, minlength=n).tolist()
    assert loads.max() <= (4 / 3 - 1 / (3 * n)) * best + 1e-9


def test_schedule_places_heaviest_first_ties_to_the_lowest() -> None:
    items, loads = np.array([7.0, 6, 5, 4, 3, 3]), np.zeros(3)
    assigned = np.full(6, -1, np.int32)

    schedule(items, np.arange(6), np.arange(3, dtype=np.int32), loads, assigned)

    assert assigned.tolist() == [0, 1, 2, 2, 1, 0]
    assert loads.tolist() == [10, 9, 9]


def test_near_home_moves_only_what_does_not_fit() -> None:
    moved, ratios = {}, {}
    for near_home in (False, True):
        grouping = create("distribution_aware", partitions=20, seed=1, near_home=near_home)
        grouping.route(zipf(0.7, 20_000, 2))
        keys = zipf(0.7, 400_000, 3)
        out = grouping.route(keys)
        home = create("key", partitions=20, seed=1).route(keys)
        moved[near_home], ratios[near_home] = (out != home).mean(), largest(out, 20)

    assert moved[False] > 0.9
    assert moved[True] < 0.3
    assert max(ratios.values()) < 1.1


@pytest.mark.parametrize(("near_home", "least", "most"), [(False, 3.5, 5), (True, 1, 2)])
def test_sources_with_mappings_of_their_own_split_keys(
    near_home: bool, least: float, most: float
) -> None:
    keys = zipf(0.5, 400_000, 1)
    pairs = set()
    for source in range(5):
        grouping = create(
            "distribution_aware", partitions=10, source=source, sources=5, near_home=near_home
        )
        own = keys[source::5]
        pairs.update(zip(own.tolist(), grouping.route(own).tolist(), strict=True))

    assert least < len(pairs) / np.unique(keys).size < most


def test_keys_never_seen_spread_over_all_partitions() -> None:
    """Buckets without a record weigh one: else they would all go to one partition."""
    grouping = create("distribution_aware", partitions=10, seed=1, learning_records=10)
    grouping.route(np.zeros(10, np.uint64))

    out = grouping.route(np.arange(1, 100_001, dtype=np.uint64))

    assert np.count_nonzero(np.bincount(out, minlength=10)) >= 9


def test_extreme_keys_are_keys() -> None:
    keys = np.tile(np.array([0, 2**64 - 1], np.uint64), 5000)
    grouping = create("distribution_aware", partitions=2, seed=1, learning_records=1000)
    grouping.route(keys[:1000])

    out = grouping.route(keys[1000:])

    assert sorted(grouping.hot_keys().tolist()) == [0, 2**64 - 1]
    assert np.bincount(out).tolist() == [4500, 4500]


def test_all_keys_distinct_makes_no_hitters() -> None:
    keys = np.arange(200_000, dtype=np.uint64)
    grouping = create("distribution_aware", partitions=10, seed=1)

    out = grouping.route(keys)

    assert grouping.hot_keys().size == 0
    assert largest(out[10_000:], 10) < 1.15


def test_cutting_the_input_changes_neither_routes_nor_state() -> None:
    keys = zipf(1.2, 30_000, 1)
    whole = create("distribution_aware", partitions=7, seed=3)
    cut = create("distribution_aware", partitions=7, seed=3)

    expected = whole.route(keys)
    parts = [cut.route(part) for part in np.split(keys, [0, 1, 6999, 7000, 7001, 20_000])]

    assert np.array_equal(expected, np.concatenate(parts))
    assert whole.snapshot().checksum() == cut.snapshot().checksum()


@pytest.mark.parametrize("at", [3000, 7000, 12_000])
def test_restored_grouping_goes_on_as_the_first(at: int) -> None:
    keys = zipf(1.2, 30_000, 1)
    first = create("distribution_aware", partitions=7, seed=3)
    first.set_active([0, 2, 3, 6])
    first.route(keys[:at])
    second = create("distribution_aware", partitions=7, seed=3)
    second.restore(first.snapshot())

    assert np.array_equal(first.route(keys[at:]), second.route(keys[at:]))
    assert first.hot_keys().tolist() == second.hot_keys().tolist()
    assert first.snapshot().checksum() == second.snapshot().checksum()


@pytest.mark.parametrize(("before", "after"), [(1, 5), (5, 1)])
@pytest.mark.parametrize("at", [500, 2500])
def test_learning_is_as_long_as_when_it_began_though_sources_change(
    before: int, after: int, at: int
) -> None:
    """10,000 records with one source, 2000 with five: neither longer nor less than nothing."""
    keys = zipf(1.2, 30_000, 1)
    first = create("distribution_aware", partitions=10, sources=before)
    first.route(keys[:at])
    second = create("distribution_aware", partitions=10, sources=after)
    second.restore(first.snapshot())

    parts = [second.route(part) for part in np.split(keys[at:], [1, 700, 1500, 9700])]

    assert np.array_equal(np.concatenate(parts), first.route(keys[at:]))
    assert second.snapshot().checksum() == first.snapshot().checksum()
    assert second.signals()["learned_records"] == 10_000 / before


def test_learning_that_has_not_begun_is_as_long_as_the_sources_want_now() -> None:
    grouping = create("distribution_aware", partitions=10, sources=5)
    grouping.restore(create("distribution_aware", partitions=10, sources=1).snapshot())

    grouping.route(zipf(1.2, 30_000, 1))

    assert grouping.signals()["learned_records"] == 2000


def test_state_does_not_grow_with_the_keys() -> None:
    grouping = create("distribution_aware", partitions=100, seed=1, learning_records=10**9)
    before = sum(array.nbytes for array in grouping.state.values())

    grouping.route(np.arange(300_000, dtype=np.uint64))

    assert sum(array.nbytes for array in grouping.state.values()) == before
    assert before < 68 * 1000 + 8 * 1000 + 200


def test_sources_share_the_learning() -> None:
    keys = zipf(1.0, 100_000, 1)
    grouping = create("distribution_aware", partitions=10, source=3, sources=5)

    grouping.route(keys)

    assert grouping.signals()["learned_records"] == 2000


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"theta": 0.0}, "distribution_aware.theta"),
        ({"theta": float("nan")}, "distribution_aware.theta"),
        ({"epsilon_factor": 0.5}, "distribution_aware.epsilon_factor"),
        ({"buckets_per_partition": 0}, "distribution_aware.buckets_per_partition"),
        ({"learning_records": 0}, "distribution_aware.learning_records"),
        ({"learning": 1}, "distribution_aware.learning"),
    ],
)
def test_wrong_options_are_named(options: dict[str, float], field: str) -> None:
    with pytest.raises(GroupingError, match=field):
        create("distribution_aware", partitions=4, **options)
