"""Keys packed into as few partitions as their sizes allow, where keeping homes costs too much."""

import itertools

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks import level_batches
from tests.support.level_sources import KEYS, largest, make, play, replication, stream
from unskew.grouping.algorithms.level import Level, LevelParams
from unskew.grouping.base import Int64s, Setting, UInt64s
from unskew.grouping.hashing import hash_partitions
from unskew.grouping.parts.level.packing import pack

SALT = np.uint64(7)


def packed(
    records: Int64s, rooms: Int64s, spares: Int64s, whole_most: int | None = None
) -> tuple[Int64s, Int64s, Int64s]:
    active = np.flatnonzero(rooms).astype(np.int32)
    keys, mask = KEYS[: records.size], (rooms > 0).astype(np.uint8)
    most = int(rooms.max()) if whole_most is None else whole_most
    return pack(keys, np.sort(records)[::-1].copy(), rooms, spares, most, SALT, mask, active)


def lone(partitions: int, **options: object) -> Level:
    return Level(Setting(partitions, 0, 1, 1), LevelParams(**options))


def extra_pairs(keys: UInt64s, routes: Int64s) -> int:
    pairs = set(zip(keys.tolist(), routes.tolist(), strict=True))
    return len(pairs) - np.unique(keys).size


@settings(deadline=None, max_examples=200)  # the first example compiles the kernel
@given(
    st.lists(st.integers(1, 400), min_size=1, max_size=60),
    st.lists(st.booleans(), min_size=1, max_size=9).filter(any),
    st.integers(0, 20),
)
def test_every_record_has_room_and_cuts_are_bounded(
    records: list[int], used: list[bool], more: int
) -> None:
    """`more` is what every room has beyond the mean."""
    counts, active = np.array(records, np.int64), np.array(used)
    rooms = np.where(active, -(-counts.sum() // active.sum()) + more, 0)
    first, partitions, given_ = packed(counts, rooms, np.zeros(active.sum() + 1, np.int64))

    sizes = np.add.reduceat(given_, first[:-1])
    assert sizes.tolist() == sorted(records, reverse=True)
    assert (np.bincount(partitions, given_, active.size) <= rooms).all()
    assert partitions.size <= counts.size + active.sum() - 1
    assert partitions.size >= np.ceil(counts / rooms.max()).sum()
    assert all(np.unique(partitions[a:b]).size == b - a for a, b in itertools.pairwise(first))


@pytest.mark.parametrize("z", [1.4, 1.9, 2.0])
@pytest.mark.parametrize("seed", range(5))
def test_where_small_keys_are_there_no_key_is_cut_more_than_it_must(z: float, seed: int) -> None:
    keys = stream(z, 1_000_000, seed)
    counts = np.unique(keys, return_counts=True)[1]
    rooms = np.full(100, 10_000)
    _, partitions, given_ = packed(counts, rooms, np.zeros(101, np.int64))

    assert np.bincount(partitions, given_).tolist() == rooms.tolist()
    assert partitions.size == np.ceil(counts / 10_000).sum()


def test_what_keys_leave_free_depends_on_their_parts() -> None:
    """Rooms of 100: whole keys leave 20, a key in two parts 10, one in three or more 5."""
    spares = np.array([20, 20, 10, 5, 5, 5, 5], np.int64)
    records = np.array([190, 175, 80, 40, 40], np.int64)
    first, partitions, given_ = packed(records, np.full(6, 100), spares, 80)

    parts = [given_[a:b].tolist() for a, b in itertools.pairwise(first)]
    assert parts == [[95, 95], [90, 85], [80], [40], [40]]
    assert sorted(np.bincount(partitions, given_).tolist()) == [80, 80, 85, 90, 95, 95]


def test_whole_keys_have_no_more_than_they_may_beside_a_part_of_another() -> None:
    _, partitions, given_ = packed(
        np.array([130, *[7] * 12], np.int64), np.full(3, 100), np.zeros(4, np.int64), 50
    )
    of_whole = np.bincount(partitions[2:], given_[2:], 3)
    assert given_[:2].tolist() == [100, 30]
    assert of_whole.max() <= 50
    assert of_whole.sum() == 84


def test_keys_that_do_not_fit_are_not_packed() -> None:
    first, partitions, given_ = packed(
        np.array([90, 90], np.int64), np.array([100, 100]), np.full(3, 20, np.int64)
    )
    assert (first.size, partitions.size, given_.size) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("z", "partitions"), [(1.9, 100), (2.0, 68), (2.0, 74)])
def test_a_lone_source_is_exact_with_few_pairs_where_homes_cost_many(
    z: float, partitions: int, seed: int
) -> None:
    batch = stream(z, 1_000_000, seed)
    source = lone(partitions)
    source.begin_batch()
    routes = source.route(batch)

    assert replication(batch, routes) <= 1.05
    assert np.bincount(routes, minlength=partitions).max() == -(-batch.size // partitions)
    assert source.signals()["extra_pairs"] == extra_pairs(batch, routes)
    homes = hash_partitions(batch, partitions, 1)
    assert source.signals()["moved_records"] == np.count_nonzero(routes != homes)


def test_where_exact_loads_would_cost_more_a_lone_source_uses_its_slack() -> None:
    batch = stream(2.0, 1_000_000, 0)
    routes = {slack: lone(78, slack=slack).route(batch) for slack in (None, 0.0, 0.005)}

    assert replication(batch, routes[None]) <= 1.05
    assert 1.01 < largest(routes[None], 78) <= 1.02
    for slack in (0.0, 0.005):
        assert replication(batch, routes[slack]) > 1.05
        assert largest(routes[slack], 78) <= 1.0001


def test_homes_are_kept_where_giving_them_up_would_not_do() -> None:
    """Of 1,340 keys at z = 2 more than 1.05 pairs each are needed, whoever routes."""
    batch = stream(2.0, 1_000_000, 0)
    routes = lone(100).route(batch)
    homes = hash_partitions(batch, 100, 1)
    keys, numbers = np.unique(batch, return_inverse=True)
    away = np.bincount(numbers, routes != homes, keys.size) == np.bincount(numbers)
    assert 1.05 < replication(batch, routes) <= 1 + 99 / keys.size
    assert away.sum() < keys.size / 4


@settings(deadline=None, max_examples=40)
@given(
    st.integers(1, 30),
    st.integers(1, 600),
    st.floats(0.5, 2.5),
    st.integers(0, 2**32),
    st.sampled_from([None, 0.0, 0.1]),
)
@example(100, 10_000, 1.9, 0, None)
def test_no_share_takes_a_lone_source_above_its_bounds(
    partitions: int, keys: int, z: float, seed: int, slack: float | None
) -> None:
    batch = stream(z, 20_000, seed, KEYS[:keys])
    routes = lone(partitions, slack=slack).route(batch)
    loads, extra = np.bincount(routes, minlength=partitions), extra_pairs(batch, routes)

    exact, distinct = -(-batch.size // partitions), np.unique(batch).size
    assert extra <= partitions - 1
    most = (1.0 + (0.02 if slack is None else slack)) * batch.size / partitions
    assert loads.max() <= max(exact, most)
    if loads.max() > exact:
        assert extra <= 0.05 * distinct


def test_how_a_share_is_cut_into_chunks_changes_no_route() -> None:
    batch = stream(1.9, 200_000, 3)
    whole = lone(44).route(batch)
    chunks = [(part, None) for part in np.split(batch, [1, 777, 50_000, 199_999])]
    assert replication(batch, whole) <= 1.05 < 1 + 43 / np.unique(batch).size
    assert np.concatenate(list(lone(44).route_chunks(chunks))).tolist() == whole.tolist()


def test_a_share_of_several_pieces_keeps_homes() -> None:
    batch = stream(1.9, 200_000, 3)
    kept = []
    for options in ({}, {"chunk_records": 100_000}):
        routes = lone(44, **options).route(batch)
        assert largest(routes, 44) <= 1.001
        at_home = routes == hash_partitions(batch, 44, 1)
        kept.append(np.unique(batch[at_home]).size / np.unique(batch).size)
    assert kept[0] < 0.5 < kept[1]


@pytest.mark.parametrize("sources", [5, pytest.param(48, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", range(2))
def test_sources_agree_on_packed_homes_from_the_second_batch_on(sources: int, seed: int) -> None:
    routers = make(100, sources)
    for number in range(4):
        batch = stream(1.9, 1_000_000, 100 * seed + number)
        routes = play(routers, batch)
        if number == 0:
            assert replication(batch, routes) > 1.05
        else:
            assert routers[0].state["plan_used"][0] == 1
            assert replication(batch, routes) <= 1.05
            assert largest(routes, 100) <= 1.02


def test_packed_keys_that_share_a_partition_leave_none_above_the_others() -> None:
    """The hottest key has 41 partitions here, and in one of those are parts of others."""
    _, later = level_batches.play("zipf:z=2.0,keys=10000", 1_000_000, 2, 68, 5, 4)
    assert later.replication <= 1.05
    assert later.max_over_mean <= 1.02
