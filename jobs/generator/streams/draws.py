"""Random keys: Zipf's law, a head that drifts, and one key that flares up."""

from dataclasses import dataclass

import numpy as np

from unskew.grouping.base import Float64s, Int64s

_FLARE_KEYS = 1_000_003  # sets the draws of flares apart from those of chunks


class Zipf:
    """Rank r (from 0) with a weight of (r + 1) ** -skew, by Walker's alias table.

    One number a draw: its whole part is a rank, its fraction decides between rank and alias.
    """

    def __init__(self, ranks: int, skew: float) -> None:
        weights = np.arange(1, ranks + 1, dtype=np.float64) ** -skew
        self._ranks = ranks
        self._thresholds, self._aliases = _build_aliases(weights * (ranks / weights.sum()))

    def draw(self, random: np.random.Generator, count: int) -> Int64s:
        """Draw `count` ranks."""
        numbers = random.random(count) * self._ranks
        ranks = numbers.astype(np.int64)
        taken: Int64s = np.where(
            numbers - ranks < self._thresholds[ranks], ranks, self._aliases[ranks]
        )
        return taken


def _build_aliases(weights: Float64s) -> tuple[Float64s, Int64s]:
    """Vose: every light rank is filled up by one heavy rank. `weights` have the mean 1."""
    left, aliases = weights.tolist(), list(range(weights.size))
    thresholds = [1.0] * weights.size
    light = [rank for rank, weight in enumerate(left) if weight < 1]
    heavy = [rank for rank, weight in enumerate(left) if weight >= 1]
    while light and heavy:
        less, more = light.pop(), heavy[-1]
        thresholds[less], aliases[less] = left[less], more
        left[more] -= 1 - left[less]
        if left[more] < 1:
            light.append(heavy.pop())
    return np.array(thresholds), np.array(aliases)


@dataclass(frozen=True)
class Flare:
    """One key that takes a share of all records for a while, in the middle of every period."""

    share: float
    every: int
    length: int
    fades: bool
    """Rises in a fifth of its time and then dies away, instead of being there at once."""

    def compute_shares(self, moments: Int64s) -> Float64s:
        """Compute its share at moments of the stream, in microseconds."""
        into = moments % self.every - (self.every - self.length) // 2
        burning = (into >= 0) & (into < self.length)
        if not self.fades:
            sudden: Float64s = np.where(burning, self.share, 0.0)
            return sudden
        progress = into / self.length
        height: Float64s = np.where(progress < 0.2, progress / 0.2, (1 - progress) / 0.8)
        return burning * height * self.share

    def draw_keys(self, moments: Int64s, seed: int, keys: int) -> Int64s:
        """Draw the key that flares at each moment: below the hundred hottest, if there are more."""
        numbers = moments // self.every
        keys_of = np.empty(moments.size, np.int64)
        for number in np.unique(numbers).tolist():
            random = np.random.default_rng([seed, _FLARE_KEYS, number])
            keys_of[numbers == number] = random.integers(min(100, keys - 1), keys)
        return keys_of


@dataclass(frozen=True)
class Keys:
    """Which keys records have: by rank, with drift and flares."""

    zipf: Zipf
    count: int
    seed: int
    drift: int
    """Microseconds after which every key moves up a rank, and the hottest to the last; 0: never."""
    flare: Flare | None

    def draw(self, random: np.random.Generator, moments: Int64s) -> Int64s:
        """Draw a key, from 0, for each moment of the stream."""
        keys = self.zipf.draw(random, moments.size)
        if self.drift:
            keys = (keys + moments // self.drift) % self.count
        return keys

    def replace_flared(self, random: np.random.Generator, keys: Int64s, moments: Int64s) -> Int64s:
        """Replace some of `keys` by that of a flare."""
        if self.flare is None:
            return keys
        caught = random.random(keys.size) < self.flare.compute_shares(moments)
        flaring = self.flare.draw_keys(moments, self.seed, self.count)
        replaced: Int64s = np.where(caught, flaring, keys)
        return replaced
