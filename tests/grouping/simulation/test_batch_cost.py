"""The cost model: what a batch takes under each way, and its constants from measured batches."""

import numpy as np
import pytest

from unskew.grouping.simulation.batch_cost import Constants, Machine, predict
from unskew.grouping.simulation.fit_constants import Measured, fit_constants
from unskew.grouping.simulation.loads import HASHED, LOCAL, WAYS, KeyBatch, Loads, Work, spread
from unskew.grouping.simulation.scaling import Step, find_knee
from unskew.grouping.simulation.streams.traces import open_trace


def test_a_batch_waits_for_its_slowest_partition_and_for_slots() -> None:
    machine = Machine(2, Constants(1.0, *[0.0] * 9))
    loads = Loads(np.array([100, 10, 10, 10]), np.array([1, 2, 3, 4]), 10)

    assert machine.batch_parts(LOCAL, loads, Work(0.01)).seconds == pytest.approx(2.0)
    assert machine.batch_parts(LOCAL, loads, Work(0.0, 1.0)).seconds == pytest.approx(1 + 2 + 4)
    assert loads.pairs == 10


def test_each_way_pays_for_what_it_does() -> None:
    machine = Machine(
        4,
        Constants(
            fixed_seconds=0.5,
            read_us=2.0,
            route_us=3.0,
            move_us=5.0,
            pair_us=7.0,
            byte_ns=11.0,
            route_seconds=0.25,
            shuffle_seconds=0.125,
            state_us=13.0,
            state_byte_ns=17.0,
        ),
    )
    loads = Loads(np.full(4, 250_000), np.full(4, 25_000), 50_000)
    work = Work(1e-6, partial_bytes=1000)

    parts = {way: machine.batch_parts(way, loads, work) for way in (LOCAL, HASHED, "level")}

    assert [(p.fixed, p.read) for p in parts.values()] == [(0.5, pytest.approx(2.0))] * 3
    assert [p.route for p in parts.values()] == pytest.approx([0, 0, 3.25])
    assert [p.move for p in parts.values()] == pytest.approx([0, 5.125, 5.125])
    assert [p.work for p in parts.values()] == pytest.approx([0.25] * 3)
    # 100,000 partial results of 7 us, and 11 ns for each of their 1,000 bytes; 50,000 keys of
    # 13 us, and 17 ns for each byte of theirs.
    assert [p.merge for p in parts.values()] == pytest.approx([0.7 + 1.1 + 0.65 + 0.85] * 3)

    combined = machine.batch_parts(HASHED, loads, Work(1e-6, native=True))
    assert (combined.move, combined.work) == (0.0, 0.0)


def test_constants_are_found_again_in_batches_that_they_made() -> None:
    generator = np.random.default_rng(1)
    constants = Constants(
        fixed_seconds=0.4,
        read_us=2.0,
        route_us=1.5,
        move_us=0.5,
        pair_us=8.0,
        byte_ns=2.0,
        route_seconds=0.1,
        shuffle_seconds=0.2,
        state_us=6.0,
        state_byte_ns=1.0,
    )
    batches = []
    for way in (LOCAL, HASHED, "level"):
        for records, keys, size, distinct in (
            (100, 5, 0, 20),
            (90_000, 50, 0, 100),
            (90_000, 20_000, 4096, 50_000),
            (90_000, 20_000, 4096, 80_000),
            (90_000, 20_000, 0, 30_000),
        ):
            loads = Loads(generator.integers(1, records, 4), np.full(4, keys), distinct)
            work = Work(1e-5, 1e-4, size)
            seconds = Machine(4, constants).batch_parts(way, loads, work).seconds
            batches.append(Measured(way, loads, work, 4, seconds))

    fitted = fit_constants(batches)

    assert fitted.pair_us == pytest.approx(8.0)
    assert (fitted.fixed_seconds, fitted.read_us) == pytest.approx((0.4, 2.0))
    assert (fitted.route_us, fitted.move_us, fitted.byte_ns) == pytest.approx((1.5, 0.5, 2.0))
    assert (fitted.state_us, fitted.state_byte_ns) == pytest.approx((6.0, 1.0))


def test_a_constant_of_which_nothing_is_said_keeps_its_default_and_none_is_below_zero() -> None:
    loads = Loads(np.array([1000, 1000]), np.array([10, 10]), 20)
    # Moved batches that are faster than those that are not.
    batches = [
        Measured(LOCAL, loads, Work(0.0), 2, 1.0),
        Measured(HASHED, loads, Work(0.0), 2, 0.5),
    ]

    fitted = fit_constants(batches)

    assert (fitted.route_us, fitted.byte_ns) == (Constants().route_us, Constants().byte_ns)
    assert fitted.move_us == 0.0


@pytest.mark.parametrize("way", [LOCAL, HASHED, "level", "posg", "dynamic_key", "shuffle"])
def test_no_record_is_lost_and_pairs_are_between_one_and_the_partitions(way: str) -> None:
    batches = [np.repeat(np.arange(50, dtype=np.uint64), 20) for _ in range(2)]
    (prediction,) = predict([way], batches, 4, 3, Work(0.001), Machine(4))

    assert prediction.records == 1000
    assert 50 <= prediction.pairs <= 200
    assert prediction.parts.work >= 1000 * 0.001 / 4
    assert prediction.max_over_mean == pytest.approx(prediction.parts.work / 0.25)


def test_whole_is_predicted_with_what_its_sources_agree_on() -> None:
    trace = open_trace("zipf:z=0.8,keys=10000,records=200000")
    batches = np.split(np.concatenate([chunk.keys for chunk in trace.chunks()]), 2)

    of_key, of_whole = predict(["key", "whole"], batches, 20, 5, Work(1e-5), Machine(20))

    assert of_key.max_over_mean > 1.4
    assert of_whole.max_over_mean < 1.1
    assert of_whole.pairs == np.unique(batches[1]).size


def test_pairs_are_the_same_whether_they_fit_a_bitmap_or_not(monkeypatch) -> None:
    keys = KeyBatch.from_hashes(np.random.default_rng(1).integers(0, 300, 2000).astype(np.uint64))
    chosen = np.random.default_rng(2).integers(0, 7, 2000).astype(np.int32)

    by_bitmap = keys.count(chosen, 7).keys.tolist()
    monkeypatch.setattr("unskew.grouping.simulation.loads._BITMAP_MAX", 0)

    assert keys.count(chosen, 7).keys.tolist() == by_bitmap
    assert keys.distinct == np.unique(keys.hashes).size


def test_what_spark_computes_itself_is_counted_where_it_is_read() -> None:
    batch = KeyBatch.from_hashes(np.repeat(np.arange(10, dtype=np.uint64), 10))

    (combined,) = spread(HASHED, [batch], 5, 1, Work(0.0, native=True))

    assert combined.records.tolist() == [20] * 5
    assert combined.keys.tolist() == [2] * 5
    assert set(WAYS) >= {HASHED, LOCAL, "level"}


def test_the_knee_is_where_twice_as_many_hardly_help() -> None:
    seconds = [8.0, 4.1, 2.2, 1.9, 1.85]
    steps = [Step(2**number, {"level": each}) for number, each in enumerate(seconds)]

    assert find_knee(steps, "level") == 8
    assert find_knee(steps[:2], "level") is None
