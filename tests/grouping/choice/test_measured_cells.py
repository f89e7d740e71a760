"""`auto` on what was measured, which does not follow the model that it decides by."""

import itertools
import json
from collections import Counter
from collections.abc import Sequence
from functools import cache

import numpy as np

from benchmarks.engine.where import Cell
from benchmarks.model import RESULTS, SLOTS, Case, make_batches, read_cases
from tests.support.auto_worlds import count_hashes
from unskew.grouping.choice.decider import Decider
from unskew.grouping.choice.key_counts import KeyCounts
from unskew.grouping.choice.ways import KEY, LEVEL, LEVEL_SECONDS, WAYS, MeasuredBatch
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import HASHED, Loads, Work, spread

BATCHES = 12
CLOSE = 1.05
CHANGE_SECONDS = 2.0
CHANGES_MAX = 4
_NOISE = 0.03
MEASURED_WAYS = tuple(way for way in WAYS if way != KEY)


def read_measured() -> list[Case]:
    """The cells of `where`."""
    tables = json.loads((RESULTS / "engine.json").read_text())["tables"]
    return [case for case in read_cases(tables) if case.table == "where"]


def seconds_of(case: Case, way: str) -> float:
    """What a batch took; the keys of these cells all cost the same, so by seconds is by records."""
    return case.seconds[LEVEL if way == LEVEL_SECONDS else way]


def follow_cell(case: Case, batches: int, seed: int = 1, *, noise: float = _NOISE) -> Sequence[str]:
    """The way of each batch; the batch after a change is not learnt from, as in the service."""
    rng = np.random.default_rng(seed)
    work = case.work
    guess = Work(1.2 * work.cost, 0.8 * work.setup, work.partial_bytes)
    decider = Decider.begin(LEVEL, Constants(), guess, 0.03, MEASURED_WAYS)
    ways: list[str] = []
    for number in range(batches):
        changed = bool(ways) and ways[-1] != decider.way
        ways.append(decider.way)
        batch = _measure(case, decider.way, noise, rng)
        if changed:
            decider.take_change(CHANGE_SECONDS)
        elif number:
            decider.decide(batch)
    return ways


def _measure(case: Case, way: str, noise: float, rng: np.random.Generator) -> MeasuredBatch:
    cell, records = case.cell, case.records
    keys = Cell(cell.exponent, 0, keys=cell.keys, keyed=cell.keyed)
    loads, hashed = _spread(keys, way, records), _spread(keys, HASHED, records)
    busy = loads.work_seconds(case.work) * (SLOTS / case.slots)
    return MeasuredBatch(
        way=way,
        seconds=seconds_of(case, way) * float(np.exp(noise * rng.standard_normal())),
        records=loads.records,
        keys=loads.keys,
        opened=loads.keys,
        busy_seconds=busy * np.exp(0.05 * rng.standard_normal(SLOTS)),
        under_key=hashed.records,
        under_hash=hashed.records,
        key_counts=_count(keys, records),
        partial_bytes=case.work.partial_bytes,
        slots=SLOTS,
    )


@cache
def _spread(keys: Cell, way: str, records: int) -> Loads:
    name = LEVEL if way == LEVEL_SECONDS else way
    return list(spread(name, make_batches(keys, records), SLOTS, SLOTS, Work(0.0)))[-1]


@cache
def _count(keys: Cell, records: int) -> KeyCounts:
    return count_hashes(make_batches(keys, records)[-1].hashes)


def test_from_the_fifth_batch_on_few_measured_cells_have_a_better_fixed_choice() -> None:
    behind = {}
    for case in read_measured():
        best = min(case.seconds.values())
        late = follow_cell(case, BATCHES)[4:]
        behind[case.cell.name] = max(seconds_of(case, way) for way in late) / best

    good = sum(ratio <= CLOSE for ratio in behind.values())
    worst = Counter(behind).most_common(3)
    print(f"within {CLOSE} in {good} of {len(behind)} measured cells; the farthest: {worst}")
    assert good >= 0.78 * len(behind), behind
    # The farthest is z0-10us-0ms, where the model takes the many pairs of `local` for dear.
    assert max(behind.values()) <= 1.45, behind


def test_level_by_counts_and_by_seconds_do_not_take_turns() -> None:
    """Few keys, each dear: partitions are as uneven as their keys, under either of the two."""
    (case,) = (each for each in read_measured() if each.cell.name == "z1.4-10us-10ms-0B-1000keys")
    for seed in range(6):
        ways = follow_cell(case, 100, seed, noise=0.1)
        changes = sum(a != b for a, b in itertools.pairwise(ways))
        assert changes <= CHANGES_MAX, ways
