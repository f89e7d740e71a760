"""How many (key, partition) pairs `level` makes beyond the keys of a share, over all its pieces.

A key may be split in one piece and whole in the next, at the same partitions or at others, so the
pieces' own numbers do not add up: their pairs are counted together. A share of one piece, as nearly
all are, says its number itself, and nothing is counted. Bound: the pairs of `keys_max` keys, while
the share is routed; pieces beyond add their own number, in which a pair of before counts again.
"""

from typing import NamedTuple

import numpy as np

from unskew.grouping.base import Int32s, Int64s, UInt64s
from unskew.grouping.parts.pairs import PairCounter


class Piece(NamedTuple):
    """Where the keys of one piece went, as `levelling.move_surplus` left it."""

    keys: UInt64s
    codes: Int32s
    """The partition of each key, or -1 - j for the j-th giver."""
    givers: Int32s
    """Numbers of the keys that gave records away."""
    cursors: Int64s
    """The first segment of each giver."""
    segments: Int32s
    """The partition of each segment."""

    @property
    def extra(self) -> int:
        """Pairs more than keys, of this piece alone."""
        return self.segments.size - self.givers.size

    def pairs(self) -> tuple[UInt64s, Int32s]:
        """Each key with each of its partitions."""
        whole = self.codes >= 0
        lengths = np.diff(self.cursors, append=self.segments.size)
        split = self.keys[np.repeat(self.givers, lengths)]
        partitions = np.concatenate([self.codes[whole], self.segments])
        return np.concatenate([self.keys[whole], split]), partitions.astype(np.int32)


class SharePairs:
    """Takes a share piece by piece."""

    def __init__(self, partitions: int, keys_max: int) -> None:
        self._partitions = partitions
        self._keys_max = keys_max
        self.clear()

    def clear(self) -> None:
        """A share begins, or is over."""
        self._first: Piece | None = None
        self._counter: PairCounter | None = None

    def add(self, piece: Piece) -> int:
        """How many pairs more than keys the share has with this piece than without it."""
        if self._first is None:
            self._first = piece
            return piece.extra
        if self._counter is None:
            self._counter = PairCounter(self._partitions)
            self._counter.count(*self._first.pairs())
        counter = self._counter
        if counter.keys >= self._keys_max:
            return piece.extra
        before = counter.pairs - counter.keys
        counter.count(*piece.pairs())
        return counter.pairs - counter.keys - before
