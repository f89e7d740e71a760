"""The cost model's constants from measured batches, by least squares of relative errors.

The model is linear in its constants: what a batch took, less the work of its slowest partition, is
a sum of products of a constant and a count. Constants that the batches do not tell apart, as those
of reading and of a batch at all where every batch has as many records, stay as near to the defaults
as what was measured allows, and the nearer the more it scatters (a ridge, whose weight is the
variance of what is left over that of the constants between machines). One that would be below zero
is zero.
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


_BETWEEN_MACHINES = Constants(
    fixed_seconds=1.0,
    read_us=2.0,
    route_us=2.0,
    move_us=1.0,
    pair_us=2.0,
    byte_ns=2.0,
    route_seconds=0.3,
    shuffle_seconds=0.3,
    state_us=5.0,
    state_byte_ns=3.0,
)
"""How far the constants of a machine may be from the defaults, about."""
_EXACT = 1e-12


def fit_constants(batches: Sequence[Measured]) -> Constants:
    """The constants with which the model comes nearest to these batches."""
    names = [each.name for each in fields(Constants)]
    products = np.array([[_product(name, batch) for name in names] for batch in batches])
    rest = np.array([batch.seconds - _work_seconds(batch) for batch in batches])
    weights = 1.0 / np.array([batch.seconds for batch in batches])
    values = _solve(products * weights[:, None], rest * weights)
    return replace(Constants(), **dict(zip(names, values.tolist(), strict=True)))


def _work_seconds(batch: Measured) -> float:
    return Machine(batch.slots).batch_parts(batch.way, batch.loads, batch.work).work


def _product(name: str, batch: Measured) -> float:
    """Compute what a unit of a constant adds to this batch."""
    unit = Constants(**{each.name: float(each.name == name) for each in fields(Constants)})
    parts = Machine(batch.slots, unit).batch_parts(batch.way, batch.loads, batch.work)
    return parts.seconds - parts.work


def _solve(products: Float64s, rest: Float64s) -> Float64s:
    """The values nearest to the defaults; the least below zero is set to zero until none is."""
    defaults, spread = _list_values(Constants()), _list_values(_BETWEEN_MACHINES)
    values = np.zeros(products.shape[1])
    kept = list(range(products.shape[1]))
    while kept:
        scaled = products[:, kept] * spread[kept]
        steps = _solve_ridge(scaled, rest - products[:, kept] @ defaults[kept])
        solved = defaults[kept] + spread[kept] * steps
        if (solved >= 0).all():
            values[kept] = solved
            break
        del kept[int(solved.argmin())]
    return values


def _solve_ridge(products: Float64s, rest: Float64s) -> Float64s:
    """Least squares of steps whose standard deviation is one beforehand."""
    steps, _, rank, _ = np.linalg.lstsq(products, rest, rcond=1e-9)
    left = rest - products @ steps
    variance = float(left @ left) / max(1, rest.size - int(rank))
    if variance < _EXACT:
        return np.asarray(steps)
    normal = products.T @ products + variance * np.eye(products.shape[1])
    return np.asarray(np.linalg.solve(normal, products.T @ rest))


def _list_values(constants: Constants) -> Float64s:
    return np.array([getattr(constants, each.name) for each in fields(Constants)])
