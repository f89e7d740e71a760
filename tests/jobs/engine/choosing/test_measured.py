"""A finished batch as the decider of `grouping: auto` takes it."""

from dataclasses import replace
from typing import Any

import numpy as np

from tests.support.batches import done
from unskew.grouping.choice.key_counts import ReportedKeys
from unskew.grouping.choice.ways import MeasuredBatch, compute_loads_by_way
from unskew.jobs.engine.choosing.measured import measure
from unskew.jobs.observe.batches.batch import BatchDone

KEYS = (
    ReportedKeys(
        np.array([7], np.uint64),
        np.array([20]),
        np.array([3, 7, 9], np.uint64),
        np.array([6, 20, 4], np.int32),
    ),
    ReportedKeys(
        np.array([5], np.uint64), np.array([10]), np.array([5], np.uint64), np.array([10], np.int32)
    ),
)


def finished(**numbers: list[float]) -> BatchDone:
    """30 records of three keys and 10 of one, 0.5 and 0.25 s at work."""
    batch = done(0)
    assert batch.stats is not None
    opens: dict[str, Any] = {
        name: np.array(numbers.get(name, [0, 0]))
        for name in ("open_hits", "open_misses", "open_seconds")
    }
    stats = replace(batch.stats, numbers={**batch.stats.numbers, **opens}, reported_keys=KEYS)
    return replace(batch, stats=stats)


def measured(**numbers: list[float]) -> MeasuredBatch:
    batch = measure(finished(**numbers), "level", 2)
    assert batch is not None
    return batch


def test_every_key_is_paid_for_unless_the_operator_keeps_what_it_opens() -> None:
    plain = measured()
    kept = measured(open_hits=[2, 1], open_misses=[1, 0], open_seconds=[0.5, 0.0])

    assert (plain.opened.tolist(), kept.opened.tolist()) == ([3, 1], [1, 0])
    assert plain.busy_seconds.tolist() == [0.5, 0.25]
    assert kept.busy_seconds.tolist() == [1.0, 0.25]
    assert plain.seconds == 1.5
    assert plain.partial_bytes == 400 / 4 - 48


def test_what_each_way_would_have_given_follows_from_the_reports() -> None:
    loads = compute_loads_by_way(measured(), 1.0)

    assert {way: each.records.tolist() for way, each in loads.items()} == {
        "local": [20, 20],
        "level": [20, 20],  # though it was not exactly level
        "level_seconds": [20, 20],
        "key": [35, 5],
        "none": [10, 30],
    }
    # Four keys, each with so many records that both halves of the batch have some.
    assert {way: each.pairs for way, each in loads.items()} == {
        "local": 8,
        "level": 5,
        "level_seconds": 5,
        "key": 4,
        "none": 4,
    }
    assert compute_loads_by_way(measured(), 0.75)["local"].pairs == 6
    assert compute_loads_by_way(measured(), 0.1)["local"].pairs == 4


def test_a_batch_that_says_nothing_of_its_keys_is_not_learnt_from() -> None:
    batch = finished()
    assert batch.stats is not None

    assert measure(replace(batch, stats=None), "level", 2) is None
    assert measure(replace(batch, stats=replace(batch.stats, reported_keys=())), "key", 2) is None
    empty = replace(batch.stats, records=np.zeros(2, np.int64))
    assert measure(replace(batch, stats=empty), "level", 2) is None
