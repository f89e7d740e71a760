"""The bounds that docs/level.md proves for several sources: a search for a stream above them.

Options are the defaults. A batch has at least the 7,225 records a partition that a plan needs, few
partitions and keys, so that being exact costs enough for one. What a batch is may change with each:
its skew, which keys are frequent, and how large the sources' shares are.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.level_sources import KEYS, stream
from unskew.grouping.algorithms.level import Level, LevelParams
from unskew.grouping.base import Int32s, Int64s, Setting, UInt64s
from unskew.grouping.parts.level.agreed_homes import Counted, hash_homes
from unskew.grouping.parts.level.drift import compute_deviations
from unskew.grouping.simulation.simulate import begin_all

RECORDS_A_PARTITION = 7_500
BATCHES = 3


@dataclass(frozen=True)
class Stream:
    """Some batches, and the sources that route them."""

    partitions: int
    sources: int
    keys: int
    z: float
    change: str
    """With each batch: nothing, the ranking of keys, for all or for one source, the keys
    themselves, or the sources' shares."""
    seed: int

    def batch(self, number: int) -> tuple[UInt64s, Int64s]:
        """The keys of a batch, and the source of each record."""
        rng = np.random.default_rng([self.seed, number])
        first = number * self.keys if self.change == "keys" else 0
        keys = KEYS[first : first + self.keys]
        if self.change == "ranking":
            keys = rng.permutation(keys)
        records = self.partitions * RECORDS_A_PARTITION
        parts = np.ones(self.sources)
        if self.change == "shares":
            parts = rng.random(self.sources) + 0.01
        owners = rng.choice(self.sources, records, p=parts / parts.sum())
        batch = stream(self.z, records, self.seed + number, keys)
        if self.change == "one source":
            own = owners == 0
            batch[own] = stream(self.z, int(own.sum()), self.seed + number, rng.permutation(keys))
        return batch, owners


STREAMS = st.builds(
    Stream,
    st.integers(2, 6),
    st.integers(2, 16),
    st.integers(20, 400),
    st.floats(0.0, 1.2),
    st.sampled_from(["nothing", "ranking", "one source", "keys", "shares"]),
    st.integers(0, 2**32),
)
PLANNED = Stream(4, 12, 300, 0.0, "nothing", 0)


def pairs(keys: UInt64s, routes: Int32s) -> set[tuple[int, int]]:
    return set(zip(keys.tolist(), routes.tolist(), strict=True))


def base_of(router: Level, keys: UInt64s, planned: bool) -> set[tuple[int, int]]:
    """The pairs that a source has before it moves anything: homes, and shared keys' partitions."""
    state, distinct = router.state, np.unique(keys)
    homes = hash_homes(
        Counted(distinct, np.ones(distinct.size, np.int64)), router._where_to_agree()
    )
    base = dict(zip(distinct.tolist(), homes.tolist(), strict=True))
    if not planned:
        return set(base.items())
    base |= zip(state["home_keys"].tolist(), state["home_partitions"].tolist(), strict=True)
    for key in state["shared_keys"].tolist():
        base.pop(key, None)
    owners = np.repeat(state["shared_keys"], np.diff(state["shared_first"]))
    return set(base.items()) | pairs(owners, state["shared_partitions"])


def check_batch(routers: Sequence[Level], keys: UInt64s, owners: Int64s) -> bool:
    """Route a batch and hold it against the bounds; was there a plan?"""
    begin_all(routers, None)
    used = bool(routers[0].state["plan_used"][0])
    partitions, count = routers[0].setting.partitions, len(routers)
    routes, moved_most, slack = np.empty(keys.size, np.int32), 0, 0.0
    for source, router in enumerate(routers):
        own = np.flatnonzero(owners == source)
        routes[own] = router.route(keys[own])
        planned = used and bool(router.state["plan_loads"].any())
        chance = compute_deviations(own.size, partitions) if planned else 0.0
        slack = max(slack, chance)
        largest = np.bincount(routes[own], minlength=partitions).max()
        assert largest <= np.ceil(own.size / partitions * (1 + chance))
        moved = pairs(keys[own], routes[own]) - base_of(router, keys[own], planned)
        givers, receivers = ({pair[i] for pair in moved} for i in (0, 1))
        assert len(moved) <= max(len(givers) + len(receivers) - 1, 0)
        moved_most += len(moved)
    together = np.bincount(routes, minlength=partitions).max()
    assert together < (1 + slack) * keys.size / partitions + count
    extra = len(pairs(keys, routes)) - np.unique(keys).size
    shared = routers[0].state["shared_partitions"].size - routers[0].state["shared_keys"].size
    homes = routers[0].state["home_keys"].size + routers[0].state["shared_keys"].size
    departed = any(not router.state["plan_loads"].any() for router in routers)
    assert extra <= moved_most + used * (shared + departed * homes)
    return used


def check(made: type[Level], given_stream: Stream) -> int:
    """In how many batches was there a plan?"""
    count = given_stream.sources
    routers = [
        made(Setting(given_stream.partitions, source, count, 1), LevelParams())
        for source in range(count)
    ]
    return sum(check_batch(routers, *given_stream.batch(number)) for number in range(BATCHES))


@settings(deadline=None, max_examples=25)
@given(STREAMS)
@example(PLANNED)
def test_no_stream_takes_sources_above_their_bounds(given_stream: Stream) -> None:
    check(Level, given_stream)


def test_streams_that_stay_have_plans() -> None:
    """Or the bounds of a plan would be those of nothing."""
    assert check(Level, PLANNED) == BATCHES - 1
    assert check(Level, Stream(6, 16, 400, 0.2, "nothing", 1)) == BATCHES - 1


class Heavy(Level):
    """Sends one record more than its part to partition 0, for each source."""

    def _route_piece(self, keys: UInt64s, sizes: Int64s, out: Int32s) -> None:
        super()._route_piece(keys, sizes, out)
        most = np.ceil(keys.size / self.setting.partitions * (1 + compute_deviations(keys.size, 2)))
        away = np.flatnonzero(out != 0)
        out[away[: max(int(most) + 1 - np.count_nonzero(out == 0), 0)]] = 0


class Scattering(Level):
    """Swaps two records in each hundred: as level as before, with pairs that nobody agreed on."""

    def _route_piece(self, keys: UInt64s, sizes: Int64s, out: Int32s) -> None:
        super()._route_piece(keys, sizes, out)
        out[: out.size - 1 : 100], out[1::100] = (
            out[1::100][: out[: out.size - 1 : 100].size].copy(),
            out[: out.size - 1 : 100].copy(),
        )


class Disagreeing(Level):
    """Takes the homes of the plan one further in every source: each is level on its own."""

    def _take_agreed(self, agreed: dict) -> None:
        super()._take_agreed(agreed)
        homes = self.state["home_partitions"]
        self.state["home_partitions"] = (homes + self.setting.source % 2) % self.setting.partitions


@pytest.mark.parametrize("broken", [Heavy, Scattering, Disagreeing])
def test_the_bounds_reject_what_is_above_them(broken: type[Level]) -> None:
    with pytest.raises(AssertionError):
        check(broken, PLANNED)
