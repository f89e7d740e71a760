"""The cost model against what was measured, on cells that its constants were not taken from."""

import re
from pathlib import Path
from statistics import median

import numpy as np
import pytest

from unskew.grouping.simulation.batch_cost import HASHED, LOCAL, Loads, Machine, Work, predict
from unskew.grouping.simulation.traces import open_trace

RECORDS, KEYS, SLOTS = 320_000, 10_000, 16
COLUMNS = (LOCAL, "level", HASHED)
Measured = dict[tuple[float, Work], dict[str, float]]


def measured(root: Path) -> Measured:
    """The quiet table, but for the cells of 10 us: by skew and work, seconds by way."""
    text = (root / "benchmarks" / "results" / "local.md").read_text()
    cells: Measured = {}
    for line in text.splitlines():
        words = re.findall(r"[\d.]+", line) if re.match(r"\| [\d.]+ \|", line) else []
        if len(words) == 6:
            z, cost_us, setup_ms, *seconds = map(float, words)
            if cost_us != 10:
                work = Work(cost_us * 1e-6, setup_ms * 1e-3)
                cells[z, work] = dict(zip(COLUMNS, seconds, strict=True))
    return cells


def predicted(z: float, work: Work) -> dict[str, float]:
    spec = (
        f"zipf:z={z},keys={KEYS},records={RECORDS}"
        if z
        else f"uniform:keys={KEYS},records={RECORDS}"
    )
    keys = np.concatenate([chunk.keys for chunk in open_trace(spec).chunks()])
    return {way: predict(way, [keys], SLOTS, 1, work, Machine(SLOTS)).seconds for way in COLUMNS}


def test_predicted_seconds_are_near_the_measured_and_the_best_way_is_the_best(root: Path) -> None:
    cells = measured(root)
    assert len(cells) == 6
    errors = []
    for (z, work), seconds in cells.items():
        model = predicted(z, work)
        errors += [abs(model[way] / seconds[way] - 1) for way in COLUMNS]
        assert seconds[min(model, key=model.__getitem__)] <= 1.05 * min(seconds.values())
    assert median(errors) <= 0.10
    assert sorted(errors)[int(0.9 * len(errors))] <= 0.25


def test_a_batch_waits_for_its_slowest_partition_and_for_slots() -> None:
    machine = Machine(2, fixed=1.0, spread_us={LOCAL: 0.0}, pair_us=0.0)
    loads = Loads(np.array([100, 10, 10, 10]), np.array([1, 2, 3, 4]))

    assert machine.batch_seconds(LOCAL, loads, Work(0.01)) == pytest.approx(2.0)
    assert machine.batch_seconds(LOCAL, loads, Work(0.0, 1.0)) == pytest.approx(1 + 10 / 2)
    assert loads.pairs == 10


@pytest.mark.parametrize("way", [LOCAL, HASHED, "level", "posg", "dynamic_key", "shuffle"])
def test_no_record_is_lost_and_pairs_are_between_one_and_the_partitions(way: str) -> None:
    batches = [np.repeat(np.arange(50, dtype=np.uint64), 20) for _ in range(2)]
    prediction = predict(way, batches, 4, 3, Work(0.001), Machine(4))

    assert 50 <= prediction.pairs <= 200
    assert prediction.slowest >= 1000 * 0.001 / 4
    assert prediction.max_over_mean == pytest.approx(prediction.slowest / 0.25)
