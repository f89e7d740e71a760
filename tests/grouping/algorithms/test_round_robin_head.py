"""Round robin for the head: whose turn it is, and what the tail's two choices see of it."""

import numpy as np

from unskew.grouping.base import Grouping, Int32s, UInt64s
from unskew.grouping.registry import create

HOT = np.zeros(1, np.uint64)


def learnt(**setting: int) -> Grouping:
    """One that knows the key 0 as hot, at the beginning of a batch."""
    grouping = create("round_robin_head", **{"partitions": 6, "seed": 1, **setting})
    grouping.route(np.repeat(HOT, 600))
    grouping.begin_batch()
    return grouping


def mixed(records: int) -> UInt64s:
    """Every other record is of the hot key, the others are all distinct."""
    keys = np.arange(1, records + 1, dtype=np.uint64)
    keys[::2] = 0
    return keys


def loads(routes: Int32s, partitions: int = 6) -> list[int]:
    return np.bincount(routes, minlength=partitions).tolist()


def test_hot_records_take_turns_through_batches_and_among_cold_ones() -> None:
    grouping = learnt()
    turn = int(grouping.state["turn"][0])

    routes = grouping.route(mixed(24))
    grouping.begin_batch()

    turns = [(turn + i) % 6 for i in range(18)]
    assert routes[::2].tolist() == turns[:12]
    assert grouping.route(np.repeat(HOT, 6)).tolist() == turns[12:]


def test_head_is_spread_to_within_one_record() -> None:
    routes = learnt().route(mixed(60_001))

    assert sorted(loads(routes[::2])) == [5000] * 5 + [5001]


def test_hot_records_do_not_look_at_the_loads() -> None:
    grouping = learnt()
    grouping.state["loads"][:] = [10**6, 0, 0, 0, 0, 0]

    assert loads(grouping.route(np.repeat(HOT, 600))) == [100] * 6


def test_cold_keys_see_what_the_head_has_put_on_a_partition() -> None:
    def cold_loads(head: list[int]) -> list[int]:
        grouping = learnt()
        grouping.state["loads"][:] = head
        return loads(grouping.route(np.arange(1, 3001, dtype=np.uint64)))

    even, uneven = cold_loads([0] * 6), cold_loads([2000, 0, 0, 0, 0, 0])

    assert max(even) - min(even) <= 2
    assert uneven[0] < 200


def test_sources_begin_at_spread_places() -> None:
    starts = [
        int(create("round_robin_head", partitions=6, source=s, sources=3).state["turn"][0])
        for s in range(3)
    ]

    assert starts == [0, 2, 4]


def test_the_turn_passes_over_partitions_that_are_away() -> None:
    grouping = learnt()
    grouping.set_active([1, 4])
    assert loads(grouping.route(np.repeat(HOT, 10))) == [0, 5, 0, 0, 5, 0]

    grouping.set_active(range(6))
    assert loads(grouping.route(np.repeat(HOT, 12))) == [2] * 6
