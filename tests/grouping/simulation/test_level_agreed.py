"""Several sources of `level` that agree on homes by what all of them counted before."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.level_sources import KEYS, largest, make, play, replication, stream
from unskew.grouping.parts.level.agreed_homes import add_counts, count_exact_extra
from unskew.grouping.parts.level.agreement import empty_memory
from unskew.grouping.simulation.simulate import begin_all
from unskew.grouping.spark.journal import Journal
from unskew.grouping.spark.router import Router

LATER = ("plan_waits", "part_loads")
"""What versions after 2 of the state added."""


@pytest.mark.parametrize(
    ("z", "sources", "partitions", "before"),
    [
        (0.0, 48, 100, 1.8),
        (0.1, 5, 50, 1.08),
        (0.2, 5, 50, 1.045),
        pytest.param(0.3, 48, 100, 1.5, marks=pytest.mark.slow),
        pytest.param(0.0, 5, 100, 1.1, marks=pytest.mark.slow),
    ],
)
def test_from_the_second_batch_on_flat_keys_cost_few_pairs(
    z: float, sources: int, partitions: int, before: float
) -> None:
    routers = make(partitions, sources)
    for number in range(3):
        batch = stream(z, 1_000_000, number)
        routes = play(routers, batch)
        if number == 0:
            assert replication(batch, routes) > before
        else:
            assert replication(batch, routes) <= 1.05
            assert largest(routes, partitions) <= 1.02


@pytest.mark.parametrize(("z", "sources"), [(0.8, 5), (1.4, 48), (0.0, 1)])
def test_where_exactness_costs_little_every_source_is_exact(z: float, sources: int) -> None:
    routers, others = make(20, sources), make(20, sources, slack=0.0)
    for number in range(3):
        batch = stream(z, 200_000, number)
        routes = play(routers, batch)
        assert np.array_equal(routes, play(others, batch))
        for source in range(sources):
            loads = np.bincount(routes[source::sources], minlength=20)
            assert loads.max() - loads.min() <= 1


def test_where_keys_change_with_every_batch_loads_stay_exact() -> None:
    routers = make(20, 48)
    names = np.random.default_rng(0).integers(0, 2**64, (4, 2000), dtype=np.uint64)
    for number in range(4):
        batch = stream(0.2, 200_000, number, names[number])
        assert largest(play(routers, batch), 20) <= 1.001


def test_a_plan_that_would_have_been_uneven_is_not_used_in_the_next_batch() -> None:
    """The records of half of the keys swing by a third, too little for one source to notice."""
    routers = make(100, 48)
    half = np.flatnonzero(np.random.default_rng(9).random(KEYS.size) < 0.5)
    ratios = []
    for number in range(5):
        weights = np.ones(KEYS.size)
        weights[half] = 1.35 if number % 2 else 1.0
        draws = np.random.default_rng(number).choice(
            KEYS.size, 1_000_000, p=weights / weights.sum()
        )
        ratios.append(largest(play(routers, KEYS[draws]), 100))
    assert ratios[1] > 1.02
    assert max(ratios[2:]) <= 1.001


@settings(deadline=None, max_examples=30)  # the first example compiles the kernels
@given(
    st.integers(2, 6),
    st.integers(2, 12),
    st.floats(0.01, 0.5),
    st.floats(0.0, 2.0),
    st.integers(0, 2**32),
)
def test_no_source_goes_above_its_slack(
    sources: int, partitions: int, slack: float, z: float, seed: int
) -> None:
    routers = make(partitions, sources, slack=slack)
    for number in range(3):
        batch = stream(z, 6_000, seed + number, KEYS[:500])
        routes = play(routers, batch)
        for source in range(sources):
            own = np.bincount(routes[source::sources], minlength=partitions)
            assert own.max() <= np.ceil(own.sum() / partitions * (1.0 + slack))


def test_sources_agree_through_the_journal_whoever_asks_first(tmp_path: Path) -> None:
    routes = []
    for order in ([0, 1, 2, 3, 4, 5], [5, 3, 1, 4, 2, 0]):
        journal = Journal(str(tmp_path / str(order[0])))
        router = Router("level", 64, 1, 6, {"slack": 0.2}, journal)
        answers: dict[tuple[int, int], list[int]] = {}
        for number in range(3):
            batch = stream(0.0, 120_000, number, KEYS[:3000])
            for source in order:
                grouping = router.restore_grouping(number, source)
                answers[number, source] = grouping.route(batch[source::6]).tolist()
                journal.write_state(number, source, grouping.snapshot())
                retried = router.restore_grouping(number, source)
                assert retried.route(batch[source::6]).tolist() == answers[number, source]
        assert journal.list_unreadable_files() == []
        assert (tmp_path / str(order[0]) / "000000000001" / "sources.agreed").is_file()
        assert grouping.state["plan_used"][0] == 1
        routes.append(answers)
    assert routes[0] == routes[1]


def test_a_restored_source_goes_on_by_the_same_plan() -> None:
    routers = make(20, 6, slack=0.2)
    play(routers, stream(0.0, 120_000, 0, KEYS[:1000]))
    batch = stream(0.0, 120_000, 1, KEYS[:1000])
    begin_all(routers, None)
    assert routers[3].state["plan_used"][0] == 1
    other = make(20, 6, slack=0.2)[3]
    other.restore(routers[3].snapshot())
    for part in (batch[3::12], batch[9::12]):
        assert np.array_equal(routers[3].route(part), other.route(part))
    assert routers[3].snapshot().checksum() == other.snapshot().checksum()


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_job_goes_on_from_states_that_older_versions_left(tmp_path: Path, version: int) -> None:
    """1: without counts and plan, and without the option `slack`; 2: without plans that failed;
    3: with the ends of a batch in place of its parts.
    """
    lacking = {1: set(empty_memory(64)), 2: set(LATER), 3: {"part_loads"}}[version]
    batches = [stream(0.0, 120_000, number, KEYS[:3000]) for number in range(3)]
    fresh, journal = make(64, 6, slack=0.2), Journal(str(tmp_path))
    routes = play(fresh, batches[0])
    for source, router in enumerate(fresh):
        now = router.snapshot()
        arrays = {name: array for name, array in now.arrays.items() if name not in lacking}
        if version == 3:
            arrays |= dict.fromkeys(("early_loads", "late_loads"), np.ones(64, np.int64))
        options = {name: value for name, value in now.options.items() if name != "slack"}
        older = replace(now, version=version, arrays=arrays, options=options)
        journal.write_state(0, source, older)

    router = Router("level", 64, 1, 6, {}, journal)
    for number in (1, 2):
        for source in range(6):
            grouping = router.restore_grouping(number, source)
            routes[source::6] = grouping.route(batches[number][source::6])
            journal.write_state(number, source, grouping.snapshot())
        assert largest(routes, 64) <= 1.01
    assert grouping.state["counted_keys"].size > 0


def test_pairs_of_being_exact_are_counted_as_they_are() -> None:
    """Sources learn from their states what exactness costs; here it is counted from the routes."""
    routers = make(50, 12)
    batch = stream(0.1, 100_000, 0, KEYS[:2000])
    routes = play(routers, batch)
    states = [router.state for router in routers]
    counted = add_counts(states)
    keys, records = np.unique(batch, return_counts=True)
    assert counted.keys.tolist() == keys.tolist()
    assert counted.records.tolist() == records.tolist()
    assert 1 + count_exact_extra(states, counted) / keys.size == pytest.approx(
        replication(batch, routes)
    )
