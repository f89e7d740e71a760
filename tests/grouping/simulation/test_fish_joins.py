"""FISH when a partition joins a stream that runs: it gets its fair share, not all there is."""

import numpy as np
import pytest

from unskew.grouping.algorithms.fish import Fish, FishParams
from unskew.grouping.base import Feedback, Int32s, Setting
from unskew.grouping.simulation.queueing import Queues

COST = 1e-3
"""Seconds a record."""
UTILISATION = 0.8
SECONDS_BEFORE = 15
"""One interval of 10 s is over, and half of the next."""


def test_a_partition_that_joins_gets_its_fair_share() -> None:
    n, seconds = 65, SECONDS_BEFORE + 1
    rate = round(UTILISATION * (n - 1) / COST)
    weights = np.cumsum(1 / np.arange(1, 100_001))
    draws = np.random.default_rng(1).random(rate * seconds)
    keys = np.searchsorted(weights / weights[-1], draws).astype(np.uint64)
    arrivals = np.arange(keys.size) / rate
    fish = Fish(Setting(n, seed=1), FishParams(memory="stream"))
    fish.set_active(range(n - 1))
    queues = Queues(n)

    routes: Int32s = np.empty(0, np.int32)
    for second in range(seconds):
        if second == SECONDS_BEFORE:
            fish.set_active(range(n))
            queues.totals[:] = 0
        part = slice(second * rate, (second + 1) * rate)
        routes = fish.route(keys[part], (arrivals[part] * 1e6).astype(np.int64))
        queues.serve(routes, arrivals[part], np.array([COST]), np.ones(n))
        records = np.bincount(routes, minlength=n)
        fish.begin_batch(Feedback(records, records * COST))

    assert 0.8 < np.count_nonzero(routes == n - 1) * n / rate < 1.2
    assert queues.totals[1] < 0.1


@pytest.mark.parametrize(("cost", "expected"), [(1.0, 4.0), (0.5, 8.0)])
def test_its_backlog_is_that_of_the_shortest_wait(cost: float, expected: float) -> None:
    fish = Fish(Setting(3, seed=1), FishParams())
    fish.begin_batch(Feedback(np.array([10, 10, 10]), np.array([10.0, 20.0, 10.0 * cost])))
    fish.set_active([0, 1])
    fish.state["backlog"][:] = [4.0, 3.0, 9.0]
    fish.set_active([0, 1, 2])

    assert fish.state["backlog"].tolist() == [4.0, 3.0, expected]
