"""`level` with `balance: bytes`: partitions get equal bytes, and small keys stay whole."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.algorithms.level import Level, LevelParams
from unskew.grouping.base import Int32s, Int64s, Setting, UInt64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.parts.level.sizes import SIZE_MAX
from unskew.grouping.simulation.simulate import begin_all

SIZES_OF_KEYS = np.array([1, 1, 10, 10, 300, 2000])
"""A record of a key has up to so many bytes."""


def make(partitions: int, source: int = 0, sources: int = 1, **options: object) -> Level:
    setting = Setting(partitions, source, sources, seed=1)
    return Level(setting, LevelParams(balance="bytes", **options))


def pairs(keys: UInt64s, routes: Int32s) -> set[tuple[int, int]]:
    return set(zip(keys.tolist(), routes.tolist(), strict=True))


def skewed(seed: int, records: int = 20_000) -> tuple[UInt64s, Int64s]:
    """Keys of a Zipf law, the largest of which have the smallest records."""
    rng = np.random.default_rng(seed)
    ranks = np.minimum(rng.zipf(1.3, records), 500)
    return ranks.astype(np.uint64), rng.integers(1, 40 + 2 * ranks)


@settings(deadline=None)  # the first example compiles the kernels
@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1, max_size=150),
    st.integers(1, 8),
    st.integers(1, 200),
    st.data(),
)
def test_no_partition_has_more_than_the_mean_and_a_record_of_each_split_key(
    share: list[tuple[int, float]], partitions: int, chunk_records: int, data: st.DataObject
) -> None:
    numbers = np.array([number for number, _ in share])
    parts = np.array([part for _, part in share])
    keys, sizes = numbers.astype(np.uint64), 1 + (parts * SIZES_OF_KEYS[numbers]).astype(np.int64)
    cuts = sorted(data.draw(st.lists(st.integers(0, keys.size), max_size=5)))
    chunks = zip(np.split(keys, cuts), np.split(sizes, cuts), strict=True)
    level = make(partitions, chunk_records=chunk_records)

    routes = np.concatenate(list(level.route_chunks(chunks)))

    assert np.array_equal(make(partitions, chunk_records=chunk_records).route(keys, sizes), routes)
    loads = np.bincount(routes, sizes, partitions).astype(int)
    assert level.state["loads"].tolist() == loads.tolist()
    if chunk_records < keys.size:
        return
    met = pairs(keys, routes)
    assert len(met) - np.unique(keys).size <= level.signals()["extra_pairs"] <= partitions - 1
    for partition, load in enumerate(loads):
        split = [key for key in level.hot_keys().tolist() if (key, partition) in met]
        over = sum(int(sizes[keys == key].max()) - 1 for key in split)
        assert load <= -(-sizes.sum() // partitions) + over


def test_records_of_a_byte_are_routed_as_records_are() -> None:
    keys, _ = skewed(1)
    by_records = Level(Setting(9, seed=1), LevelParams()).route(keys)
    assert np.array_equal(make(9).route(keys, np.ones(keys.size, np.int64)), by_records)
    assert np.array_equal(make(9).route(keys), by_records)  # no sizes: all alike


def test_bytes_are_level_where_the_largest_keys_have_small_records() -> None:
    keys, sizes = skewed(2)
    mean = sizes.sum() / 16

    by_bytes = np.bincount(make(16).route(keys, sizes), sizes, 16)
    by_records = np.bincount(Level(Setting(16, seed=1), LevelParams()).route(keys), sizes, 16)

    assert by_bytes.max() / mean < 1.02
    assert by_records.max() / mean > 1.2


def route_batches(
    batches: list[tuple[UInt64s, Int64s]], partitions: int, sources: int, **options: object
) -> list[Int32s]:
    """The routes of each batch, which the sources share evenly, record by record."""
    levels = [make(partitions, source, sources, **options) for source in range(sources)]
    routes = []
    for keys, sizes in batches:
        begin_all(levels, None)
        out = np.empty(keys.size, np.int32)
        for source, level in enumerate(levels):
            mine = slice(source, None, sources)
            out[mine] = level.route(keys[mine].copy(), sizes[mine].copy())
        routes.append(out)
    return routes


def even(seed: int, keys: int = 400) -> tuple[UInt64s, Int64s]:
    """Records of keys that are all alike, but for the sizes of their records."""
    chosen = np.random.default_rng(seed).integers(0, keys, 200_000)
    return chosen.astype(np.uint64), 20 + chosen * 7 % 200


def fullest(routes: Int32s, sizes: Int64s, partitions: int) -> float:
    loads = np.bincount(routes, sizes, partitions)
    return float(loads.max() / loads.mean())


@pytest.mark.parametrize("sources", [1, 4])
def test_a_key_below_the_target_is_whole_in_all_sources(sources: int) -> None:
    keys, sizes = skewed(3)
    target = int(sizes.sum()) // 40
    first, second = route_batches([(keys, sizes)] * 2, 8, sources, target_file_bytes=target)

    total = np.bincount(keys.astype(int), sizes)
    parts_first, parts = (
        np.bincount([key for key, _ in pairs(keys, routes)]) for routes in (first, second)
    )
    # Sources see about a part of each key: those near the target may first be judged otherwise.
    assert (parts_first[(total > 0) & (total < 0.7 * target)] == 1).all()
    assert (parts[(total > 0) & (total <= target)] == 1).all()
    assert parts[total > 2 * target].max() > 1
    assert fullest(second, sizes, 8) < 1.02


def test_a_lone_source_levels_the_homes_of_whole_keys() -> None:
    keys, sizes = even(5)
    (routes,) = route_batches([(keys, sizes)], 16, 1, target_file_bytes=10**9)
    assert len(pairs(keys, routes)) == 400
    assert fullest(routes, sizes, 16) < 1.01
    hashed = make(16, 0, 2, target_file_bytes=10**9).route(keys, sizes)
    assert fullest(hashed, sizes, 16) > 1.15


def test_sources_agree_on_level_homes_of_whole_keys_by_the_batch_before() -> None:
    first, second = route_batches([even(5), even(6)], 16, 6, target_file_bytes=10**9)
    (keys, sizes), (keys_then, sizes_then) = even(5), even(6)
    assert len(pairs(keys, first)) == len(pairs(keys_then, second)) == 400
    assert fullest(first, sizes, 16) > 1.15
    # A value has one writer, so what chance does between two batches stays.
    assert fullest(second, sizes_then, 16) < 1.04


def test_sources_agree_on_how_keys_above_the_target_are_cut() -> None:
    batches = [even(seed, 1000) for seed in range(3)]
    target = int(batches[0][1].sum()) // 1000
    routes = route_batches(batches, 16, 16, target_file_bytes=target)
    files = [len(pairs(keys, route)) for (keys, _), route in zip(batches, routes, strict=True)]
    assert files[0] > 1200
    assert max(files[1:]) <= 1045
    assert fullest(routes[2], batches[2][1], 16) < 1.05


def test_a_whole_key_that_grows_above_the_target_is_cut_at_once() -> None:
    keys, sizes = even(7)
    grown = np.where(np.arange(keys.size) % 2, np.uint64(3), keys)
    target = int(sizes.sum()) // 16
    _, routes = route_batches([(keys, sizes), (grown, sizes)], 16, 4, target_file_bytes=target)
    cut = grown == 3
    assert len(pairs(grown[cut], routes[cut])) > 6
    assert len(pairs(grown[~cut], routes[~cut])) == 399
    assert fullest(routes, sizes, 16) < 1.1


def test_pieces_of_a_share_have_the_same_homes_and_a_restored_source_goes_on_with_them() -> None:
    keys, sizes = even(8)
    level = make(16, target_file_bytes=10**9)
    first = level.route(keys[:150_000], sizes[:150_000])
    restored = make(16, target_file_bytes=10**9)
    restored.restore(level.snapshot())
    rest = level.route(keys[150_000:], sizes[150_000:])
    assert np.array_equal(restored.route(keys[150_000:], sizes[150_000:]), rest)
    routes = np.concatenate([first, rest])
    assert len(pairs(keys, routes)) == 400


def test_only_keys_below_the_target_make_a_partition_larger_than_the_mean() -> None:
    keys, sizes = skewed(4)
    total = np.bincount(keys.astype(int), sizes)
    (whole,) = route_batches([(keys, sizes)], 8, 1, target_file_bytes=int(sizes.sum()))
    assert len(pairs(keys, whole)) == np.unique(keys).size  # nothing is above it
    target = int(np.sort(total)[-3])  # two keys are above it

    (routes,) = route_batches([(keys, sizes)], 8, 1, target_file_bytes=target)

    small = total[keys.astype(int)] <= target
    assert len(pairs(keys[small], routes[small])) == np.unique(keys[small]).size
    alone = np.bincount(routes[small], sizes[small], 8)
    limit = np.maximum(sizes.sum() / 8 + 2 * sizes.max(), alone)
    assert (np.bincount(routes, sizes, 8) <= limit).all()


def test_odd_sizes_are_bounded_and_missing_ones_are_named() -> None:
    keys = np.array([1, 1, 2], np.uint64)
    level = make(2)
    level.route(keys, np.array([-5, 0, np.iinfo(np.int64).max]))
    assert level.state["loads"].sum() == 2 + SIZE_MAX
    for route in (make(2).route, lambda *given: list(make(2).route_chunks([given]))):
        with pytest.raises(GroupingError, match="sizes: as many as keys, 3"):
            route(keys, np.array([1, 2]))


def test_a_target_needs_bytes() -> None:
    with pytest.raises(ValueError, match="target_file_bytes: needs balance: bytes"):
        LevelParams(target_file_bytes=1)
