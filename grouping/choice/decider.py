"""Decides after each batch which way the next ones take: figures in, a choice out.

A change is worth it when the seconds that the model expects to be saved over the next hundred
batches are more than the change takes, with the chance that the model is wrong about a way counted
in: then the change is made back again after a few batches, and has been paid for twice. Four things
keep the choice from going to and fro:

- every way has a credit: what it would have saved since the last change, batch by batch, by all
  that is known now. A change is made when that is a share of what a change takes, so that a
  difference of chance, which is as often a loss, comes to nothing, and a small one waits long;
- a way that is better by `gain_min` has that credit after two batches, if no change was made yet;
  one batch alone never makes a change, however slow it was;
- each change doubles the credit, and the batches, that the next must have; that wears off by a
  fiftieth a batch;
- how far a way's slowest partition was above what the model has of it is remembered when the way
  is left. Else every way but the present one looks more even than it is, and they take turns.

What the model cannot tell apart is tried: a way that was never measured has credit for what it may
save, and is taken if the chance that it is faster pays for the change and for going back. A trial
is not made of a way that may take `_RISK_MAX` times as long, nor when changes have had their share
of the time of a hundred batches, or of all if they are more. Once measured, the way's own error is
known, and it is taken again only for what it is expected to save.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import erf, exp, pi, sqrt
from typing import Any, TypeVar

import numpy as np

from unskew.grouping.base import Float64s
from unskew.grouping.choice.estimates import NAMES, PLAN_OF, Estimates
from unskew.grouping.choice.unevenness import Unevenness
from unskew.grouping.choice.ways import WAYS, MeasuredBatch, compute_loads_by_way
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import LOCAL, Work

_HORIZON_BATCHES = 100
_TRIAL_BATCHES = 4
_TRIAL_SHARE = 0.05
"""Of the time of a hundred batches: for all changes so far, a trial's, and that back."""
_RISK_DEVIATIONS, _RISK_MAX = 2.0, 1.5
_CREDIT_SHARE = 0.2
"""Of what a change takes: a way's credit for which it is made, if none was made before."""
_BATCH_SHARE = 0.6
"""Of that credit: the most that one batch adds."""
_WEIGHT, _FIT_WEIGHT = 0.4, 0.3
_CHANGE_WEAR = 0.98
_VERSION = 2
"""Of what `to_json` makes."""
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
    fits: dict[str, float] = field(default_factory=dict)
    """The slowest partition's work over what the model says of it, when the way was taken."""
    credits: dict[str, float] = field(default_factory=dict)
    """Seconds that each way would have saved since the last change."""
    caution: float = 1.0
    """What a change must have been worth, over what the first one must."""
    learnt: dict[str, int] = field(default_factory=dict)
    """Batches that were learnt from, by plan."""
    spent_seconds: float = 0.0
    """What changes took."""
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
        plan = PLAN_OF[batch.way]
        self.learnt[plan] = self.learnt.get(plan, 0) + 1
        expected = self._compare()
        self.caution = max(1.0, self.caution * _CHANGE_WEAR)
        better = self._find_better(expected)
        if better is None:
            return Decision(self.way, expected, False, self._describe(expected, None))
        why = self._describe(expected, better)
        self.way, self.credits = better, {}
        self.caution *= 2
        return Decision(better, expected, True, why)

    def expect(self, batch: MeasuredBatch) -> float:
        """Predict a batch's seconds without learning from it."""
        return self.estimates.seconds(self._products(batch)[batch.way])[0]

    def take_change(self, seconds: float) -> None:
        """Learn how long a change took."""
        self.spent_seconds += seconds
        self.change_seconds = (self.change_seconds + seconds) / 2

    def _is_known(self, way: str) -> bool:
        return PLAN_OF[way] in self.learnt

    def _may_try(self, way: str, expected: Mapping[str, Expected]) -> bool:
        """Is the way unknown, is there time for a trial, and surely no far longer batch?"""
        present, asked = expected[self.way].seconds, expected[way]
        longest = asked.seconds + _RISK_DEVIATIONS * asked.deviation
        batches = max(_HORIZON_BATCHES, sum(self.learnt.values()))
        spent = self.spent_seconds + 2 * self.change_seconds
        return (
            not self._is_known(way)
            and longest <= _RISK_MAX * present
            and spent <= _TRIAL_SHARE * batches * present
        )

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
        fit = self._measure_fit(batch)
        self.fits[batch.way] = _mix(self.fits.get(batch.way, fit), fit, _FIT_WEIGHT)
        products = self._products(batch)[batch.way]
        self.estimates = self.estimates.take_batch(products, batch.seconds)

    def _measure_fit(self, batch: MeasuredBatch) -> float:
        """Compute the slowest partition's work over what it is by the loads that the model has."""
        work = self.estimates.work
        modelled = compute_loads_by_way(batch, self.pairs_ratio)[batch.way].work_seconds(work)
        own = batch.own_loads.work_seconds(work)
        return float(own.max() / modelled.max()) if modelled.any() else 1.0

    def _products(self, batch: MeasuredBatch) -> dict[str, Float64s]:
        """Compute what a unit of each constant would have added to the batch, by way."""
        loads = {**compute_loads_by_way(batch, self.pairs_ratio), batch.way: batch.own_loads}
        return {
            way: self.estimates.products(
                way,
                loads[way],
                batch.slots,
                batch.partial_bytes,
                self.unevenness.get(way, Unevenness()).factor
                * (1.0 if way == batch.way else self.fits.get(way, 1.0)),
                batch.opened_loads if way == batch.way else None,
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
        """Add to each way's credit; the way that is worth a change, None if none is."""
        present = expected[self.way].seconds
        limit = _CREDIT_SHARE * self.caution * self.change_seconds
        best, most = None, 0.0
        for way in self.ways:
            if way == self.way:
                continue
            saved = present - expected[way].seconds
            gained, value = self._value_of_trying(saved, expected[way].deviation)
            tried = value > 0 and self._may_try(way, expected)
            is_better = saved >= self.gain_min * present
            more = max(saved, gained) if tried else saved
            if is_better:
                more = max(more, _BATCH_SHARE * limit / self.caution)
            credit = self.credits.get(way, 0.0) + min(more, _BATCH_SHARE * limit)
            self.credits[way] = max(0.0, credit)
            is_worth = tried or is_better
            if is_worth and credit >= limit and value > most:
                best, most = way, value
        return best

    def _value_of_trying(self, saved: float, deviation: float) -> tuple[float, float]:
        """Seconds that a batch gains, if the change is taken back where it was wrong; and all."""
        deviation = max(deviation, 1e-9)
        at = saved / deviation
        density, right = exp(-at * at / 2) / sqrt(2 * pi), (1 + erf(at / sqrt(2))) / 2
        gained = saved * right + deviation * density
        lost = gained - saved
        changes = self.change_seconds * (2 - right)
        return gained, _HORIZON_BATCHES * gained - _TRIAL_BATCHES * lost - changes

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
        if not self._is_known(better) and saved < self.gain_min * present.seconds:
            return (
                f"{better} is tried: expected to take {expected[better].seconds:.2f} s a batch,"
                f" where {self.way} takes {present.seconds:.2f} s, a difference that is known to +-"
                f" {expected[better].deviation:.2f} s; the change costs about"
                f" {self.change_seconds:.1f} s"
            )
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
        if data.get("version") != _VERSION:
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


_PLAIN = (
    *("way", "change_seconds", "pairs_ratio", "caution", "spent_seconds"),
    *("fits", "credits", "learnt"),
)


def _read_products(data: Mapping[str, Any], ways: tuple[str, ...]) -> dict[str, Float64s]:
    products = {way: np.array(data[way], float) for way in ways if way in data}
    if any(each.shape != (len(NAMES),) for each in products.values()):
        raise ValueError(f"expected {len(NAMES)} products")
    return products


_Mixed = TypeVar("_Mixed", float, Float64s)


def _mix(before: _Mixed, now: _Mixed, weight: float) -> _Mixed:
    return (1 - weight) * before + weight * now
