from dataclasses import replace

import numpy as np
import pytest

from tests.support.batches import done, progress
from unskew.grouping.choice.decider import Expected
from unskew.grouping.choice.records import BatchChoice
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.batches.batch_time import (
    estimate_seconds_level,
    estimate_seconds_under_key,
    split_seconds,
)
from unskew.jobs.observe.batches.stages import BatchStages, StageTime

BEGAN = 1767225600.0  # the progress's timestamp


def stage(
    began: float, ended: float, run: float, *, shuffle: bool = True, writes: bool = False
) -> StageTime:
    return StageTime(BEGAN + began, BEGAN + ended, run, shuffle, writes)


READ = stage(0.13, 0.53, 1.0, shuffle=False)
WORK = stage(0.53, 1.03, 0.9)
MERGE = stage(1.13, 1.33, 0.2)


def timed(*stages: StageTime, shuffled: bool = True, merges: bool = True) -> BatchDone:
    """A batch of 1.5 s, whose routing took 0.125 s and whose partitions were busy 0.75 s."""
    return replace(done(0), stages=BatchStages(stages, 4, shuffled, merges))


def split(batch: BatchDone) -> dict[str, float]:
    parts = split_seconds(batch)
    assert sum(parts.values()) == pytest.approx(batch.seconds)
    return {name: round(seconds, 3) for name, seconds in parts.items() if seconds}


def test_parts_follow_from_the_stages() -> None:
    assert split(timed(READ, WORK, MERGE)) == {
        "waiting": 0.2,
        "read": 0.35,
        "route": 0.05,
        "work": 0.5,
        "merge": 0.2,
        "commit": 0.2,
    }


def test_plain_spark_merges_behind_the_reading() -> None:
    stages = BatchStages((READ, MERGE), 4, shuffled=True, merges=True, native=True)
    plain = replace(done(0), stats=None, routing=None, stages=stages)
    assert split(plain) == {"waiting": 0.7, "read": 0.4, "merge": 0.2, "commit": 0.2}
    unshuffled = replace(plain, stages=replace(stages, stages=(READ,)))
    assert split(unshuffled)["read"] == 0.4


def test_work_where_the_records_are_read_is_a_share_of_that_stage() -> None:
    local = replace(timed(READ, MERGE, shuffled=False), routing=None)
    parts = split(local)
    assert (parts["read"], parts["work"], parts["merge"]) == (0.1, 0.3, 0.2)


def test_writing_a_table_is_the_work() -> None:
    written = replace(MERGE, writes=True, run_seconds=3.0)
    parts = split(timed(READ, WORK, written, merges=False))
    assert (parts["work"], "merge" in parts) == (0.2, False)


def test_without_stages_what_is_not_known_is_the_rest() -> None:
    assert split(done(0)) == {
        "waiting": 0.27,
        "route": 0.062,
        "work": 0.5,
        "commit": 0.03,
        "rest": 0.637,
    }
    assert split(BatchDone(progress(0), None)) == {"waiting": 0.27, "commit": 0.03, "rest": 1.2}


def test_the_slowest_partition_under_key_makes_the_batch_longer() -> None:
    # 35 of 40 records in one partition, 0.75 s of work in all; here the slowest takes 0.5 s.
    batch = timed(READ, WORK, MERGE)
    assert estimate_seconds_under_key(batch) == pytest.approx(1.0 + 0.75 * 35 / 40)
    assert estimate_seconds_level(batch) == pytest.approx(1.0 + 0.375)
    assert estimate_seconds_under_key(BatchDone(progress(0), None)) is None


def test_with_one_slot_the_order_of_partitions_costs_nothing() -> None:
    batch = replace(done(0), stages=BatchStages((READ, WORK, MERGE), 1, True, True))
    assert estimate_seconds_under_key(batch) == pytest.approx(1.5)
    assert batch.stats is not None
    idle = replace(batch, stats=replace(batch.stats, records=np.zeros(2, np.int64)))
    assert estimate_seconds_level(idle) is None


def test_what_another_grouping_routes_moves_and_merges_is_counted_where_it_is_known() -> None:
    batch = timed(READ, WORK, MERGE)
    known = replace(batch, beside_work={"own": 0.5, "key": 0.75, "level": 0.625})

    under_key, level = estimate_seconds_under_key(batch), estimate_seconds_level(batch)
    assert under_key is not None
    assert level is not None
    assert estimate_seconds_under_key(known) == pytest.approx(under_key + 0.25)
    assert estimate_seconds_level(known) == pytest.approx(level + 0.125)


def test_what_auto_expects_of_another_grouping_is_what_is_shown() -> None:
    expected = {"local": Expected(2.0, 0.1), "key": Expected(5.0, 0.1), "level": Expected(1.5, 0.1)}
    choice = BatchChoice("local", "level", "a test", expected)
    batch = replace(done(0), choice=choice)

    assert estimate_seconds_under_key(batch) == pytest.approx(batch.seconds + 3.0)
    assert estimate_seconds_level(batch) == pytest.approx(batch.seconds - 0.5)
