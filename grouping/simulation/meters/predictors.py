"""Sketches that say which keys are hot, to be judged in the place of a grouping's own knowledge.

`count_min` counts over the whole stream (Cormode and Muthukrishnan 2005). `ada_count_min` weighs
what it adds by a function of time that grows, and divides by its present value when it is asked
(Shrivastava, Koenig and Bilenko, SIGMOD 2016); here that function is exponential, which is the same
as multiplying all cells by `decay` from one point over time to the next. A key is hot from a given
share of what was counted on. All keys of the stream are asked for: the sketch needs no list of
candidates here, which it would need outside of a simulation.
"""

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from unskew.grouping.base import Float64s, GroupingParams, UInt64s
from unskew.grouping.hashing import pick, salts
from unskew.grouping.kernels import kernel
from unskew.grouping.simulation.specs import check_name, check_options, parse_spec


class CountMinParams(GroupingParams):
    """A count-min sketch over the whole stream."""

    rows: int = Field(4, ge=1, le=16)
    """Rows, each with a hash of its own."""
    columns: int = Field(1024, ge=1, le=10_000_000)
    """Cells of a row."""
    share: float = Field(0.01, gt=0, le=1)
    """A key is hot from this part of what was counted on."""
    decay: float = Field(1.0, ge=0, le=1)
    """What all cells are multiplied by at each point over time."""


class AdaCountMinParams(CountMinParams):
    """A sketch that forgets."""

    decay: float = Field(0.5, ge=0, le=1)
    """What all cells are multiplied by at each point over time."""


PREDICTORS: dict[str, type[CountMinParams]] = {
    "count_min": CountMinParams,
    "ada_count_min": AdaCountMinParams,
}


class SketchPredictor:
    """Counts keys in a sketch."""

    def __init__(self, params: CountMinParams, seed: int) -> None:
        self._params = params
        self._salts = salts(seed, params.rows)
        self._cells = np.zeros((params.rows, params.columns))
        self._total = 0.0

    def add(self, keys: UInt64s) -> None:
        """Count records."""
        _count(keys, self._salts, self._cells)
        self._total += keys.size

    def hot_keys(self, keys: UInt64s) -> UInt64s:
        """Which of these keys are hot now."""
        least = np.empty(keys.size)
        _estimate(keys, self._salts, self._cells, least)
        chosen: UInt64s = keys[least >= self._params.share * self._total]
        return chosen

    def decline(self) -> None:
        """A point over time is over."""
        self._cells *= self._params.decay
        self._total *= self._params.decay


def make_predictor(spec: str, seed: int) -> SketchPredictor:
    """The predictor of a spec such as `count_min:columns=4096`."""
    name, options = parse_spec("predictor", spec)
    check_name("predictor", name, PREDICTORS)
    params = check_options(f"predictor {name}", PREDICTORS[name], options)
    return SketchPredictor(params, seed)


@kernel
def _count(keys: UInt64s, salt: UInt64s, cells: NDArray[np.float64]) -> None:
    for i in range(keys.size):
        for row in range(salt.size):
            cells[row, pick(keys[i], salt[row], cells.shape[1])] += 1.0


@kernel
def _estimate(keys: UInt64s, salt: UInt64s, cells: NDArray[np.float64], least: Float64s) -> None:
    for i in range(keys.size):
        least[i] = np.inf
        for row in range(salt.size):
            least[i] = min(least[i], cells[row, pick(keys[i], salt[row], cells.shape[1])])
