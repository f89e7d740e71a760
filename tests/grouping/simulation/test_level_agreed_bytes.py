"""Several sources of `level` that agree on homes by the bytes that all of them had before."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.level_sources import KEYS, make, play, replication, stream
from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.errors import SnapshotError
from unskew.grouping.parts.key_sizes import add_key_size
from unskew.grouping.parts.level.size_sums import compute_unit, sum_squares
from unskew.grouping.simulation.simulate import begin_all
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.router import Router

FEW = KEYS[:1000]
SIZE_OF_KEY = np.random.default_rng(3).integers(20, 401, FEW.size)


def sizes_of(batch: UInt64s) -> Int64s:
    order = np.argsort(FEW)
    return SIZE_OF_KEY[order[np.searchsorted(FEW[order], batch)]]


def play_sizes(routers: list, batch: UInt64s, sizes: Int64s, cost: int = 0) -> Int32s:
    begin_all(routers, None)
    routes = np.empty(batch.size, np.int32)
    for source, router in enumerate(routers):
        mine = slice(source, None, len(routers))
        share = batch[mine].copy(), sizes[mine].copy()
        (whole,) = add_key_size([share], cost, len(routers))
        routes[mine] = router.route(*whole)
    return routes


def fullest(routes: Int32s, weights: Int64s, partitions: int) -> float:
    loads = np.bincount(routes, weights, partitions)
    return float(loads.max() / loads.mean())


def weigh(batch: UInt64s, routes: Int32s, sizes: Int64s, cost: int, partitions: int) -> float:
    """Bytes and files' cost of the fullest partition, over the mean."""
    pairs = np.unique(np.stack([batch, routes.astype(np.uint64)]), axis=1)[1].astype(int)
    loads = np.bincount(routes, sizes, partitions) + cost * np.bincount(pairs, None, partitions)
    return float(loads.max() / loads.mean())


@pytest.mark.parametrize("sources", [4, 16, pytest.param(48, marks=pytest.mark.slow)])
def test_from_the_second_batch_on_flat_keys_cost_few_files(sources: int) -> None:
    routers = make(16, sources, balance="bytes")
    for number in range(3):
        batch = stream(0.0, 200_000, number, FEW)
        sizes = sizes_of(batch)
        routes = play_sizes(routers, batch, sizes)
        if number == 0:
            assert replication(batch, routes) > 1.08
        else:
            assert routers[0].state["plan_used"][0] == 1
            assert replication(batch, routes) <= 1.045
            assert fullest(routes, sizes, 16) <= 1.02


@pytest.mark.parametrize("part", [0.125, 9.0])
def test_files_that_cost_are_level_as_well(part: float) -> None:
    """A file costs so many times the bytes of a mean key; none has more than a file of it."""
    cost = int(part * 200_000 * 210 / FEW.size)
    routers = make(16, 6, balance="bytes")
    for number in range(3):
        batch = stream(0.0, 200_000, number, FEW)
        sizes = sizes_of(batch)
        routes = play_sizes(routers, batch, sizes, cost)
    assert routers[0].state["plan_used"][0] == 1
    assert replication(batch, routes) <= 1.045
    assert weigh(batch, routes, sizes, cost, 16) <= 1.05


def test_records_of_a_byte_are_routed_as_records_are_by_a_plan_too() -> None:
    by_records, by_bytes = make(20, 6), make(20, 6, balance="bytes")
    without_sizes = make(20, 6, balance="bytes")
    for number in range(3):
        batch = stream(0.0, 200_000, number, FEW)
        expected = play(by_records, batch)
        routes = play_sizes(by_bytes, batch, np.ones(batch.size, np.int64))
        assert np.array_equal(routes, expected)
        assert np.array_equal(play(without_sizes, batch), expected)
    assert by_bytes[0].state["plan_used"][0] == 1


def test_a_large_record_that_nobody_expected_leaves_its_source_exact() -> None:
    routers = make(16, 6, balance="bytes")
    for number in range(2):
        batch = stream(0.0, 200_000, number, FEW)
        play_sizes(routers, batch, sizes_of(batch))
    batch = stream(0.0, 200_000, 2, FEW)
    sizes = sizes_of(batch)
    sizes[0] = int(sizes.sum()) // 6 // 16 // 2  # half of a partition's part of its source
    routes = play_sizes(routers, batch, sizes)
    exact = make(16, 6, balance="bytes", slack=0.0)
    begin_all(exact, None)
    by_plan = [
        not np.array_equal(routes[i::6], exact[i].route(batch[i::6].copy(), sizes[i::6].copy()))
        for i in range(6)
    ]
    assert by_plan == [False, True, True, True, True, True]


@settings(deadline=None, max_examples=30)  # the first example compiles the kernels
@given(
    st.integers(2, 6),
    st.integers(2, 12),
    st.floats(0.01, 0.5),
    st.floats(0.0, 2.0),
    st.integers(1, 5000),
    st.integers(0, 2**32),
)
def test_no_source_goes_above_its_slack_by_more_than_a_record_a_split_key(
    sources: int, partitions: int, slack: float, z: float, most: int, seed: int
) -> None:
    routers = make(partitions, sources, balance="bytes", slack=slack)
    for number in range(3):
        batch = stream(z, 6_000, seed + number, FEW[:500])
        sizes = np.random.default_rng(seed + number).integers(1, most + 1, batch.size)
        routes = play_sizes(routers, batch, sizes)
        for source in range(sources):
            mine = slice(source, None, sources)
            own = np.bincount(routes[mine], sizes[mine], partitions)
            split = 0
            for partition in range(partitions):
                here = set(batch[mine][routes[mine] == partition].tolist())
                split = max(split, len(here & set(routers[source].hot_keys().tolist())))
            assert own.max() <= np.ceil(own.sum() / partitions * (1.0 + slack)) + split * most


def test_a_job_goes_on_from_states_without_sums(tmp_path: Path) -> None:
    """Until 2026-11 sources left no counts of bytes."""
    options = {"balance": "bytes"}
    fresh, journal = make(16, 4, **options), Journal(str(tmp_path))
    batches = [stream(0.0, 200_000, number, FEW) for number in range(3)]
    begin_all(fresh, None)
    for source, grouping in enumerate(fresh):
        now = grouping.snapshot()
        arrays = {
            name: array
            for name, array in now.arrays.items()
            if name not in {"size_sums", "plan_unit"}
        }
        journal.write_state(0, source, replace(now, arrays=arrays))
    router = Router("level", 16, 1, 4, options, journal)
    for number in (1, 2):
        for source in range(4):
            grouping = router.restore_grouping(number, source)
            mine = batches[number][source::4].copy()
            grouping.route(mine, sizes_of(mine))
            journal.write_state(number, source, grouping.snapshot())
    assert grouping.state["plan_used"][0] == 1
    assert 200 < grouping.state["plan_unit"][0] < 400
    wrong = grouping.snapshot()
    wrong.arrays["plan_unit"][0] = 0
    with pytest.raises(SnapshotError, match="plan_unit: from 1"):
        grouping.restore(wrong)


def test_squares_leave_out_what_a_file_adds_to_a_first_record() -> None:
    numbers = np.array([0, 1, 0, 2, 0, 1], np.int32)
    sizes = np.array([5000, 9000, 30, 7, 40, 10])
    squares = sum_squares(numbers, sizes, np.array([3, 2, 1]))
    assert squares.tolist() == [(900 + 1600) * 1.5, 200.0, 49.0]
    assert sum_squares(numbers, sizes[:0], np.array([3, 2, 1])).tolist() == [3.0, 2.0, 1.0]
    assert compute_unit(300.0, 3000.0) == 10
    assert compute_unit(0.0, 0.0) == 1
