"""Decides after each batch which way the next ones take: figures in, a choice out.

A change is worth it when the seconds that the model expects to be saved over the next batches are
more than the change takes, with the chance that the model is wrong about a way counted in: then the
change is made back again after a few batches, and has been paid for twice. Three things keep the
choice from going to and fro:

- what a way would have given the partitions is a mean over the last batches, so that a single batch
  decides little; what that takes is by all that is known now;
- another way must be better by `gain_min` of the present one's seconds, in two batches one after
  the other, and by more than what noise alone makes of that difference;
- each change doubles what the next must gain; that wears off over the following batches.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import erf, exp, pi, sqrt
from typing import Any, TypeVar

import numpy as np

from unskew.grouping.base import Float64s
from unskew.grouping.choice.estimates import NAMES, Estimates
from unskew.grouping.choice.unevenness import Unevenness
from unskew.grouping.choice.ways import WAYS, MeasuredBatch, compute_loads_by_way
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import LOCAL, Loads, Work

_HORIZON_BATCHES = 50
_TRIAL_BATCHES = 4
_PATIENCE = 2
_WEIGHT = 0.4
_CHANGE_WEAR = 0.95
_VERSION = 1
"""Of what `to_json` makes, which had no version at first."""
_PAIRS_WEIGHT = 0.5
CHANGE_SECONDS = 3.0
"""What a change takes until one was measured: the query stops, and starts from its checkpoint."""


@dataclass(frozen=True)
class Expected:
    """Seconds of a batch under a way."""

    seconds: float
    deviation: float
    """Standard deviation of the difference to the present way's; of that one, of its seconds."""


@dataclass(frozen=True)
class Decision:
    """The way of the next batches, and why."""

    way: str
    expected: Mapping[str, Expected]
    changed: bool
    why: str


@dataclass
class Decider:
    """Decides after each batch of a job which way the next batches take."""

    way: str
    """The way of the next batches."""
    estimates: Estimates
    gain_min: float = 0.03
    change_seconds: float = CHANGE_SECONDS
    products: dict[str, Float64s] = field(default_factory=dict)
    """What each constant's unit adds to a batch, by way: means over the last batches."""
    unevenness: dict[str, Unevenness] = field(default_factory=dict)
    pairs_ratio: float = 1.0
    """Pairs of `local` over those of records in any order."""
    candidate: str = ""
    """The way that would have been better after the last batch."""
    asked: int = 0
    """Batches one after the other in which it was."""
    caution: float = 1.0
    """What a change must gain, over `gain_min`."""
    ways: tuple[str, ...] = WAYS
    """Those among which the job may change."""

    @classmethod
    def begin(
        cls,
        way: str,
        constants: Constants,
        work: Work | None,
        gain_min: float,
        ways: tuple[str, ...] = WAYS,
    ) -> "Decider":
        """Make the decider of a job that has had no batch."""
        return cls(way, Estimates.begin(constants, work), gain_min, ways=ways)

    def decide(self, batch: MeasuredBatch) -> Decision:
        """Learn from a finished batch; the way of the next."""
        self._learn(batch)
        for way, now in self._products(batch).items():
            self.products[way] = _mix(self.products.get(way, now), now, _WEIGHT)
        expected = self._compare()
        self.caution = max(1.0, self.caution * _CHANGE_WEAR)
        better = self._find_better(expected)
        self.asked = self.asked + 1 if better and better == self.candidate else int(bool(better))
        self.candidate = better or ""
        if better is None or self.asked < _PATIENCE:
            return Decision(self.way, expected, False, self._describe(expected, None))
        why = self._describe(expected, better)
        self.way, self.candidate, self.asked = better, "", 0
        self.caution *= 2
        return Decision(better, expected, True, why)

    def expect(self, batch: MeasuredBatch) -> float:
        """Predict a batch's seconds without learning from it."""
        return self.estimates.seconds(self._products(batch)[batch.way])[0]

    def take_change(self, seconds: float) -> None:
        """Learn how long a change took."""
        self.change_seconds = (self.change_seconds + seconds) / 2

    def _learn(self, batch: MeasuredBatch) -> None:
        self.estimates = self.estimates.drifted().take_busy(
            batch.records.astype(float), batch.opened.astype(float), batch.busy_seconds
        )
        if batch.way == LOCAL:
            modelled = batch.key_counts.count_pairs(batch.records.size)
            ratio = float(batch.keys.sum()) / max(1.0, modelled)
            self.pairs_ratio = _mix(self.pairs_ratio, ratio, _PAIRS_WEIGHT)
        work = self.estimates.work
        busy = batch.records * work.cost + batch.opened * work.setup
        uneven = self.unevenness.get(batch.way, Unevenness())
        self.unevenness[batch.way] = uneven.seen(batch.busy_seconds, busy)
        products = self._products(batch)[batch.way]
        self.estimates = self.estimates.take_batch(products, batch.seconds)

    def _products(self, batch: MeasuredBatch) -> dict[str, Float64s]:
        """Compute what a unit of each constant would have added to the batch, by way."""
        loads = compute_loads_by_way(batch, self.pairs_ratio)
        return {
            way: self.estimates.products(
                way,
                loads[way],
                batch.slots,
                batch.partial_bytes,
                self.unevenness.get(way, Unevenness()).factor,
                Loads(batch.records, batch.opened) if way == batch.way else None,
            )
            for way in self.ways
        }

    def _compare(self) -> dict[str, Expected]:
        own = self.products[self.way]
        return {
            way: Expected(
                self.estimates.seconds(each)[0],
                self.estimates.seconds(own if way == self.way else own - each)[1],
            )
            for way, each in self.products.items()
        }

    def _find_better(self, expected: Mapping[str, Expected]) -> str | None:
        """The way that is worth a change; None if none is."""
        present = expected[self.way].seconds
        best, most = None, 0.0
        for way in self.ways:
            saved = present - expected[way].seconds
            if way == self.way or saved < self.gain_min * self.caution * present:
                continue
            value = self._value_of_trying(saved, expected[way].deviation)
            if value > most:
                best, most = way, value
        return best

    def _value_of_trying(self, saved: float, deviation: float) -> float:
        """Seconds saved over the horizon, if the change is taken back where it was wrong."""
        deviation = max(deviation, 1e-9)
        at = saved / deviation
        density, right = exp(-at * at / 2) / sqrt(2 * pi), (1 + erf(at / sqrt(2))) / 2
        gained = saved * right + deviation * density
        lost = gained - saved
        changes = self.change_seconds * (2 - right)
        return _HORIZON_BATCHES * gained - _TRIAL_BATCHES * lost - changes

    def _describe(self, expected: Mapping[str, Expected], better: str | None) -> str:
        present = expected[self.way]
        if better is None:
            others = [way for way in self.ways if way != self.way]
            second = min(others, key=lambda way: expected[way].seconds)
            return (
                f"{self.way} {present.seconds:.2f} s a batch; next {second}"
                f" {expected[second].seconds:.2f} s +- {expected[second].deviation:.2f} s"
            )
        saved = present.seconds - expected[better].seconds
        return (
            f"{better} {expected[better].seconds:.2f} s a batch in place of {self.way}"
            f" {present.seconds:.2f} s: saves {saved:.2f} s +- {expected[better].deviation:.2f} s a"
            f" batch; the change costs about {self.change_seconds:.1f} s"
        )

    def to_json(self) -> dict[str, Any]:
        """Return the decision as plain numbers and texts."""
        return {
            "version": _VERSION,
            **{name: getattr(self, name) for name in _PLAIN},
            "products": {way: each.tolist() for way, each in self.products.items()},
            "estimates": self.estimates.to_json(),
            "unevenness": {way: asdict(each) for way, each in self.unevenness.items()},
        }

    @classmethod
    def from_json(
        cls, data: Mapping[str, Any], gain_min: float, ways: tuple[str, ...] = WAYS
    ) -> "Decider | None":
        """Read what `to_json` made; a ValueError, TypeError or LookupError for anything else.

        None where another version kept or estimated other things: that is not known here.
        """
        if data.get("version", _VERSION) != _VERSION:
            return None
        if data["way"] not in WAYS:
            raise ValueError("no way of this version")
        uneven = {way: Unevenness(**each) for way, each in data["unevenness"].items()}
        plain = {name: data[name] for name in _PLAIN}
        estimates = Estimates.from_json(data["estimates"])
        if estimates is None:
            return None
        return cls(
            **plain,
            gain_min=gain_min,
            products=_read_products(data["products"], ways),
            estimates=estimates,
            unevenness=uneven,
            ways=ways,
        )


_PLAIN = ("way", "change_seconds", "pairs_ratio", "candidate", "asked", "caution")


def _read_products(data: Mapping[str, Any], ways: tuple[str, ...]) -> dict[str, Float64s]:
    products = {way: np.array(data[way], float) for way in ways if way in data}
    if any(each.shape != (len(NAMES),) for each in products.values()):
        raise ValueError(f"expected {len(NAMES)} products")
    return products


_Mixed = TypeVar("_Mixed", float, Float64s)


def _mix(before: _Mixed, now: _Mixed, weight: float) -> _Mixed:
    return (1 - weight) * before + weight * now
