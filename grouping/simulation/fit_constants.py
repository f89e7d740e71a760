"""The cost model's constants from measured batches, by least squares of relative errors.

The model is linear in its constants: what a batch took, less the work of its slowest partition, is
a sum of products of a constant and a count. A constant that would be below zero is zero; one of
which the batches say nothing, such as the bytes of partials where none had any, keeps its default.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from unskew.grouping.base import Float64s
from unskew.grouping.simulation.batch_cost import Constants, Machine
from unskew.grouping.simulation.loads import Loads, Work


@dataclass(frozen=True)
class Measured:
    """A batch of known loads, and how long it took."""

    way: str
    loads: Loads
    work: Work
    slots: int
    seconds: float


def fit_constants(batches: Sequence[Measured]) -> Constants:
    """The constants with which the model comes nearest to these batches."""
    names = [each.name for each in fields(Constants)]
    products = np.array([[_product(name, batch) for name in names] for batch in batches])
    rest = np.array([batch.seconds - _work_seconds(batch) for batch in batches])
    weights = 1.0 / np.array([batch.seconds for batch in batches])
    said = [number for number in range(len(names)) if products[:, number].any()]
    values = _solve(products[:, said] * weights[:, None], rest * weights)
    return replace(Constants(), **{names[n]: float(v) for n, v in zip(said, values, strict=True)})


def _work_seconds(batch: Measured) -> float:
    return Machine(batch.slots).batch_parts(batch.way, batch.loads, batch.work).work


def _product(name: str, batch: Measured) -> float:
    """What a constant's unit adds to this batch."""
    unit = Constants(**{each.name: float(each.name == name) for each in fields(Constants)})
    parts = Machine(batch.slots, unit).batch_parts(batch.way, batch.loads, batch.work)
    return parts.seconds - parts.work


def _solve(products: Float64s, rest: Float64s) -> Float64s:
    """Least squares without values below zero: the least of those is set to zero until none is."""
    values = np.zeros(products.shape[1])
    kept = list(range(products.shape[1]))
    while kept:
        solved = np.linalg.lstsq(products[:, kept], rest, rcond=None)[0]
        if (solved >= 0).all():
            values[kept] = solved
            break
        del kept[int(solved.argmin())]
    return values
