"""Many sources with about a record a partition each: what they round must add up evenly."""

from collections.abc import Iterator

import numpy as np
import pytest

from unskew.grouping.base import Chunk, Grouping, Int32s, UInt64s
from unskew.grouping.registry import create
from unskew.grouping.simulation.reports import SimulationReport
from unskew.grouping.simulation.scenario import Scenario
from unskew.grouping.simulation.simulate import GroupingSpec, simulate
from unskew.grouping.simulation.streams.traces import open_trace

BATCHES = 10
SCENARIO = Scenario(partitions=100, sources=48, batch_records=5000, points=BATCHES)


def run(grouping: str, z: float, keys: int = 10_000) -> SimulationReport:
    trace = open_trace(f"zipf:z={z},keys={keys},records={5000 * BATCHES}")
    return simulate(trace, GroupingSpec.parse(grouping), SCENARIO, lambda: 0.0)


@pytest.mark.parametrize("z", [0.0, 0.8, 1.4, 2.0])
@pytest.mark.parametrize("grouping", ["w_choices", "d_choices", "level", "shuffle"])
def test_every_batch_is_level_from_the_first_on(grouping: str, z: float) -> None:
    assert run(grouping, z).batches.max_over_mean_max <= 1.1


def test_in_the_papers_form_chance_adds_up() -> None:
    assert run("w_choices:held_records=0", z=0.0).batches.max_over_mean_max > 1.15


def make(**options: object) -> Grouping:
    return create("w_choices", partitions=20, source=1, sources=4, seed=1, **options)


def answered(grouping: Grouping, chunks: list[UInt64s]) -> Int32s:
    grouping.begin_batch()
    return np.concatenate(list(grouping.route_chunks([(chunk, None) for chunk in chunks])))


KEYS = np.random.default_rng(5).integers(0, 2**64, 5000, dtype=np.uint64)


@pytest.mark.parametrize("records", [0, 1, 19, 20, 137, 334])
def test_a_small_share_is_level_to_one_record_however_it_is_cut(records: int) -> None:
    whole = answered(make(), [KEYS[:records]])
    loads = np.bincount(whole, minlength=20)
    assert loads.max() - loads.min() <= 1
    third = records // 3
    cut = [KEYS[:third], KEYS[:0], KEYS[third:records]]
    assert np.array_equal(answered(make(), cut), whole)


def test_records_go_to_their_own_two_choices_while_those_have_room() -> None:
    """Nothing is full before some partition has all of its records: here not before the third."""
    share = KEYS[:60]
    small, papers = answered(make(), [share]), answered(make(held_records=0), [share])
    full = np.flatnonzero(np.bincount(papers, minlength=20) > 3)
    assert full.size
    first = min(np.flatnonzero(papers == partition)[3] for partition in full)
    assert np.array_equal(small[:first], papers[:first])
    assert not np.array_equal(small, papers)


@pytest.mark.parametrize(
    ("options", "records"), [({}, 335), ({"memory": "stream"}, 100), ({"held_records": 100}, 100)]
)
def test_other_shares_are_routed_as_in_the_paper(options: dict[str, object], records: int) -> None:
    routes, papers = (
        answered(make(**chosen), [KEYS[:records]]) for chosen in (options, {"held_records": 0})
    )
    assert np.array_equal(routes, papers)
    assert not np.array_equal(routes, answered(make(held_records=5000), [KEYS[:records]]))


def test_one_source_alone_holds_nothing_back() -> None:
    asked = []

    def chunks() -> Iterator[Chunk]:
        for number in range(3):
            asked.append(number)
            yield KEYS[number * 10 : number * 10 + 10], None

    for sources, expected in ((1, [0]), (2, [0, 1, 2])):
        asked.clear()
        grouping = create("w_choices", partitions=20, sources=sources, seed=1)
        assert next(grouping.route_chunks(chunks())).size == 10
        assert asked == expected
