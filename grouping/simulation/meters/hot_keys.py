"""How well the first source knows which keys are hot, judged by exact counts.

A key is really hot in a window if it has a given part of its records. Delay and decline are taken
from point to point: a key that is treated as hot at the end of the window in which it became hot
has the delay of that window.
"""

import numpy as np

from unskew.grouping.base import UInt64s
from unskew.grouping.parts.pairs import PairCounter
from unskew.grouping.simulation.meters.predictors import SketchPredictor


class HotKeyMeter:
    """Precision and recall of each window, and how late keys are taken up and given up."""

    def __init__(
        self, counter: PairCounter, share: float, predictor: SketchPredictor | None = None
    ) -> None:
        self._counter = counter
        self._share = share
        self._predictor = predictor
        self._last_counts = np.empty(0, np.int64)
        self._hot_from: dict[int, int] = {}
        """Keys that are really hot and not yet treated so, by the record they are hot from."""
        self._hot_until: dict[int, int] = {}
        """Keys that are still treated as hot, by the record they were really hot until."""
        self._treated: set[int] = set()
        self._delays: list[int] = []
        self._declines: list[int] = []

    def add(self, keys: UInt64s) -> None:
        """Let a predictor see records."""
        if self._predictor is not None:
            self._predictor.add(keys)

    def take(self, records: int, new: int, treated: UInt64s) -> tuple[float, float]:
        """Precision and recall of the keys that are treated as hot at the end of a window.

        A predictor's stand in the place of `treated`.
        """
        if self._predictor is not None:
            known = self._counter.hashes(np.arange(self._counter.keys))
            treated = self._predictor.hot_keys(known)
            self._predictor.decline()
        really = self._really_hot(new)
        self._follow(records, new, set(really.tolist()), set(treated.tolist()))
        both = np.intersect1d(really, treated).size
        precision = both / treated.size if treated.size else 1.0
        return precision, both / really.size if really.size else 1.0

    @property
    def delay_records(self) -> float | None:
        """Records from when a key becomes hot until it is treated as hot, on average."""
        return float(np.mean(self._delays)) if self._delays else None

    @property
    def decline_records(self) -> float | None:
        """Records from when a key stops being hot until it is not treated as hot, on average."""
        return float(np.mean(self._declines)) if self._declines else None

    def _really_hot(self, new: int) -> UInt64s:
        counts = self._counter.counts
        window = counts.copy()
        window[: self._last_counts.size] -= self._last_counts
        self._last_counts = counts.copy()
        return self._counter.hashes(np.flatnonzero(window >= self._share * new))

    def _follow(self, records: int, new: int, really: set[int], treated: set[int]) -> None:
        for key in really:
            self._hot_until[key] = records
            if key not in self._treated:
                self._hot_from.setdefault(key, records - new)
        for key in self._hot_from.keys() & treated:
            self._delays.append(records - self._hot_from.pop(key))
        for key in self._hot_until.keys() - really - treated:
            until = self._hot_until.pop(key)
            if key in self._treated:
                self._declines.append(records - until)
        for key in self._hot_from.keys() - really:
            del self._hot_from[key]
        self._treated = treated
