"""The ring against a twin in plain Python that searches all nodes for every step."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unskew.grouping.hashing import mix64
from unskew.grouping.parts.fish import ring

SALT = np.uint64(12345)


def brute_nodes(partitions, virtual_nodes, active):
    nodes = []
    for partition in active:
        for number in range(virtual_nodes):
            value = int(mix64(np.uint64((partition << 32) | number) ^ SALT))
            nodes.append((value >> 32, partition))
    return sorted(nodes)


def brute_candidates(nodes, start):
    clockwise = [n for n in nodes if n[0] >= start] + [n for n in nodes if n[0] < start]
    return list(dict.fromkeys(partition for _, partition in clockwise))


def make_ring(partitions, virtual_nodes, active):
    mask = np.zeros(partitions, np.uint8)
    mask[list(active)] = 1
    return ring.make_ring(ring.packed_nodes(SALT, partitions, virtual_nodes), mask)


def candidates(nodes, start, count, partitions):
    out = np.empty(count, np.int32)
    size = ring.walk(nodes, np.int64(start), ring.new_marks(partitions), out)
    return out[:size].tolist()


def two(nodes, start):
    node = ring.at(nodes.positions, nodes.firsts, nodes.shift, np.int64(start))
    return [int(nodes.owners[node]), int(nodes.seconds[node])]


@settings(max_examples=150, deadline=None)
@given(
    partitions=st.integers(1, 12),
    virtual_nodes=st.integers(1, 9),
    starts=st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=8),
    data=st.data(),
)
def test_candidates_are_the_next_distinct_partitions_clockwise(
    partitions, virtual_nodes, starts, data
):
    active = data.draw(st.sets(st.integers(0, partitions - 1), min_size=1))
    nodes = make_ring(partitions, virtual_nodes, active)
    twin = brute_nodes(partitions, virtual_nodes, active)
    edges = [position for position, _ in twin[:3]]
    for start in [*starts, *edges, 0, 2**32 - 1]:
        expected = brute_candidates(twin, start)
        assert candidates(nodes, start, partitions, partitions) == expected
        assert candidates(nodes, start, 2, partitions) == expected[:2]
        assert two(nodes, start) == (expected * 2)[:2]


def test_two_nodes_at_one_position_lie_in_the_order_of_their_partitions():
    packed = np.array([(7 << 32) | 1, (7 << 32) | 2, (9 << 32) | 0], np.uint64)
    nodes = ring.make_ring(packed, np.ones(3, np.uint8))
    assert candidates(nodes, 7, 3, 3) == [1, 2, 0]
    assert candidates(nodes, 8, 3, 3) == [0, 1, 2]
    assert two(nodes, 8) == [0, 1]


def test_a_partition_that_leaves_moves_only_its_own_arcs():
    starts = np.random.default_rng(1).integers(0, 2**32, 20_000)
    before = make_ring(20, 64, range(20))
    after = make_ring(20, 64, [p for p in range(20) if p != 7])
    moved = 0
    for start in starts.tolist():
        old, new = candidates(before, start, 5, 20), candidates(after, start, 5, 20)
        assert new[: len(old) - (7 in old)] == [p for p in old if p != 7]
        moved += old[0] != new[0]
        assert (old[0] != new[0]) == (old[0] == 7)
    assert 0.03 < moved / starts.size < 0.07


def test_a_partition_that_comes_back_restores_the_ring():
    packed = ring.packed_nodes(SALT, 9, 16)
    before = ring.make_ring(packed, np.ones(9, np.uint8))
    mask = np.ones(9, np.uint8)
    mask[4] = 0
    ring.make_ring(packed, mask)
    again = ring.make_ring(packed, np.ones(9, np.uint8))
    assert all(np.array_equal(a, b) for a, b in zip(before, again, strict=True))


def test_nodes_of_a_partition_do_not_depend_on_how_many_there_are():
    few, many = ring.packed_nodes(SALT, 5, 8), ring.packed_nodes(SALT, 50, 8)
    assert set(few.tolist()) <= set(many.tolist())


@pytest.mark.parametrize(("virtual_nodes", "share_max"), [(1, 0.6), (64, 0.16)])
def test_virtual_nodes_even_out_the_arcs(virtual_nodes, share_max):
    nodes = make_ring(10, virtual_nodes, range(10))
    starts = np.random.default_rng(2).integers(0, 2**32, 20_000).tolist()
    shares = np.bincount([two(nodes, start)[0] for start in starts], minlength=10) / len(starts)
    assert shares.max() < share_max
    assert (shares.max() > 0.2) == (virtual_nodes == 1)
