"""How much faster batches get with more partitions, and from where on it is not worth them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from unskew.grouping.base import UInt64s
from unskew.grouping.simulation.batch_cost import Begun, Constants, Machine, predict
from unskew.grouping.simulation.loads import Work

KNEE_GAIN = 1.1
"""Twice the partitions must make batches faster by this much."""
PARTITIONS_MAX = 1_000


@dataclass(frozen=True)
class Step:
    """A number of partitions, each with a slot of its own."""

    partitions: int
    seconds: dict[str, float]
    """The seconds of a batch, by way."""


def scale(
    ways: Sequence[str],
    batches: Sequence[UInt64s],
    partitions: int,
    work: Work,
    constants: Constants,
    begun: Begun = lambda _: None,
) -> list[Step]:
    """Batches with 1, 2, 4, ... partitions, up to four times as many as there are to be."""
    steps, count = [], 1
    while count <= min(4 * partitions, PARTITIONS_MAX):
        machine = Machine(count, constants)
        predicted = predict(ways, batches, count, min(count, 64), work, machine, begun)
        steps.append(Step(count, {each.way: each.seconds for each in predicted}))
        count *= 2
    return steps


def find_knee(steps: Sequence[Step], way: str) -> int | None:
    """The first number of partitions that twice as many hardly improve on, if there is one."""
    for step, doubled in pairwise(steps):
        if step.seconds[way] < KNEE_GAIN * doubled.seconds[way]:
            return step.partitions
    return None
