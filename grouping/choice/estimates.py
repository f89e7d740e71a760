"""The cost model's constants as a running job shows them, with their uncertainty.

The model is linear in its constants (`grouping.simulation.batch_cost`), so a Kalman filter follows
them: each measured batch corrects all of them at once, the more the less certain they were, and a
way that was never taken is corrected by what it shares with those that were. Each way also has an
error of its own, a share of its seconds, which only its own batches show; ways of one plan share
it: both of `level`, and the two that hash the key.

| word | meaning |
|---|---|
| value | of a constant, in its own unit; `cost` and `setup` are seconds, an error is a share |
| product | what a constant's unit adds to the seconds of a batch |
| noise | how far a batch's seconds are from the model by chance, as a share, as last seen |

Reference: R. E. Kalman, A new approach to linear filtering and prediction problems, 1960.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s
from unskew.grouping.choice.ways import KEY, LEVEL, LEVEL_SECONDS, WAYS
from unskew.grouping.simulation.batch_cost import Constants, Machine, find_last_slot
from unskew.grouping.simulation.loads import HASHED, Loads, Work

CONSTANTS = tuple(each.name for each in fields(Constants))
PLAN_OF = {way: way for way in WAYS} | {LEVEL_SECONDS: LEVEL, KEY: HASHED}
"""The way with which each way shares its error."""
_PLANS = tuple(dict.fromkeys(PLAN_OF.values()))
NAMES = (*CONSTANTS, "cost", "setup", *(f"error of {plan}" for plan in _PLANS))
_COST, _SETUP = len(CONSTANTS), len(CONSTANTS) + 1
_ERRORS = _SETUP + 1
_CONSTANT_SHARE, _WORK_SHARE, _ERROR_SHARE = 0.5, 0.3, 0.08
_UNKNOWN_COST, _UNKNOWN_SETUP = 1e-4, 3e-4
_DRIFT, _ERROR_DRIFT = 0.03, 0.002
_NOISE_FIRST, _NOISE_MIN, _NOISE_MAX = 0.10, 0.03, 0.5
_NOISE_WEIGHT, _NOISE_SECONDS = 0.1, 0.03
_SURPRISE_MAX = 3.0
_BUSY_NOISE, _BUSY_NOISE_SECONDS = 0.10, 0.01
_PARTITIONS_MAX = 64


@dataclass(frozen=True)
class Estimates:
    """Values, their covariance, and the noise of batches."""

    values: Float64s
    covariance: NDArray[np.float64]
    noise: float = _NOISE_FIRST

    @classmethod
    def begin(cls, constants: Constants, work: Work | None = None) -> "Estimates":
        """Before the first batch: of this machine, and of what the operator takes, if known."""
        known = np.array([getattr(constants, name) for name in CONSTANTS])
        asked = work or Work(0.0)
        values = np.concatenate([known, [asked.cost, asked.setup], np.zeros(len(_PLANS))])
        spread = np.concatenate(
            [
                known * _CONSTANT_SHARE + 0.01,
                _work_spread(work),
                np.full(len(_PLANS), _ERROR_SHARE),
            ]
        )
        return cls(values, np.diag(spread**2))

    @property
    def work(self) -> Work:
        """What the operator takes, as far as it is known."""
        return Work(float(self.values[_COST]), float(self.values[_SETUP]))

    def drifted(self) -> "Estimates":
        """Add one batch's uncertainty to all estimates."""
        spread = _DRIFT * np.abs(self.values)
        spread[_ERRORS:] = _ERROR_DRIFT
        return replace(self, covariance=self.covariance + np.diag(spread**2))

    def seconds(self, products: Float64s) -> tuple[float, float]:
        """Predict the seconds of a batch with these products, and their standard deviation."""
        variance = float(products @ self.covariance @ products)
        return float(products @ self.values), max(0.0, variance) ** 0.5

    def products(
        self,
        way: str,
        loads: Loads,
        slots: int,
        partial_bytes: float,
        unevenness: float = 1.0,
        opened: Loads | None = None,
    ) -> Float64s:
        """Compute what a unit of each constant adds to a batch; the slowest partition as known now.

        `unevenness` is the slowest partition's work over what the model says of it; `opened` has
        the keys whose setup was paid, if those are not all.
        """
        products = np.zeros(len(NAMES))
        named = LEVEL if way == LEVEL_SECONDS else way
        carried = Work(0.0, partial_bytes=partial_bytes)
        for number, constant in enumerate(CONSTANTS):
            unit = Machine(slots, _unit_of(constant))
            products[number] = unit.batch_parts(named, loads, carried).seconds
        slowest = _slowest(opened or loads, self.work, slots)
        products[_COST], products[_SETUP] = unevenness * slowest[0], unevenness * slowest[1]
        products[_ERRORS + _PLANS.index(PLAN_OF[way])] = products[:_ERRORS] @ self.values[:_ERRORS]
        return products

    def take_busy(self, records: Float64s, keys: Float64s, seconds: Float64s) -> "Estimates":
        """Correct cost and setup by how long partitions were busy, the longest of them."""
        after = self
        for partition in np.argsort(-seconds, kind="stable")[:_PARTITIONS_MAX]:
            products = np.zeros(len(NAMES))
            products[_COST], products[_SETUP] = records[partition], keys[partition]
            noise = _BUSY_NOISE * seconds[partition] + _BUSY_NOISE_SECONDS
            after = after._corrected(products, float(seconds[partition]), float(noise))
        return after

    def take_batch(self, products: Float64s, seconds: float) -> "Estimates":
        """Correct everything by the seconds of a batch."""
        expected, spread = self.seconds(products)
        noise = self.noise * max(seconds, expected) + _NOISE_SECONDS
        limit = _SURPRISE_MAX * float(np.hypot(noise, spread))
        surprise = float(np.clip(seconds - expected, -limit, limit))
        after = self._corrected(products, expected + surprise, noise)
        left = (expected + surprise - after.seconds(products)[0]) / max(seconds, expected, 1e-9)
        noise = (1 - _NOISE_WEIGHT) * self.noise**2 + _NOISE_WEIGHT * left**2
        return replace(after, noise=float(np.clip(noise**0.5, _NOISE_MIN, _NOISE_MAX)))

    def _corrected(self, products: Float64s, measured: float, noise: float) -> "Estimates":
        towards = self.covariance @ products
        variance = float(products @ towards) + noise**2
        gain = towards / variance
        values = self.values + gain * (measured - float(products @ self.values))
        values[:_ERRORS] = np.maximum(values[:_ERRORS], 0.0)
        covariance = self.covariance - np.outer(gain, towards)
        return replace(self, values=values, covariance=(covariance + covariance.T) / 2)

    def to_json(self) -> dict[str, Any]:
        """Return the estimates as plain numbers."""
        return {
            "values": self.values.tolist(),
            "covariance": self.covariance.tolist(),
            "noise": self.noise,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Estimates | None":
        """Read what `to_json` made; None of a version with other estimates; else a ValueError."""
        values, covariance = np.array(data["values"], float), np.array(data["covariance"], float)
        if values.ndim != 1 or covariance.shape != (values.size, values.size):
            raise ValueError("expected estimates and their covariance")
        if values.size != len(NAMES):
            return None
        if not (np.isfinite(values).all() and np.isfinite(covariance).all()):
            raise ValueError("estimates are no numbers")
        return cls(values, covariance, float(data["noise"]))


def _unit_of(constant: str) -> Constants:
    return Constants(**{name: float(name == constant) for name in CONSTANTS})


def _work_spread(work: Work | None) -> Sequence[float]:
    if work is None:
        return _UNKNOWN_COST, _UNKNOWN_SETUP
    # What was measured of a few rows in another process is of the right order.
    return _WORK_SHARE * work.cost + 1e-7, _WORK_SHARE * work.setup + 1e-6


def _slowest(loads: Loads, work: Work, slots: int) -> tuple[float, float]:
    """Records and keys that the batch waits for, as `Machine.work_seconds` has it."""
    seconds = loads.work_seconds(work)
    last = find_last_slot(seconds if seconds.any() else loads.records.astype(float), slots)
    return float(loads.records[last].sum()), float(loads.keys[last].sum())
