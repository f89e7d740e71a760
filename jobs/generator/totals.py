"""The expected totals of each shipped job, counted from the numbers its stream was made from."""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import numpy as np

from unskew.grouping.base import Int64s
from unskew.jobs.generator.stream import Chunk, Stream
from unskew.jobs.generator.streams.trades import TICKS

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DECIMALS = Decimal("0.000001")
_MILLION = 1_000_000
_FAR = np.iinfo(np.int64).max


class Totals(ABC):
    """The totals of one job, by window (0 where there are none) and number of the key."""

    def __init__(self, stream: Stream) -> None:
        self.keys = stream.settings.keys

    @abstractmethod
    def add(self, window: int, chunk: Chunk, accepted: Int64s) -> None:
        """Count the accepted records, by their indices, all of which are in `window`."""

    @abstractmethod
    def list_windows(self) -> list[int]:
        """List the windows that have totals."""

    @abstractmethod
    def list_rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """List the keys of a window with the columns that the job writes."""


class WordTotals(Totals):
    """How often each word occurs."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._counts: dict[int, Int64s] = {}

    def add(self, window: int, chunk: Chunk, accepted: Int64s) -> None:
        keys = chunk.columns["key"][_find_rows(chunk, accepted)]
        counts = self._counts.setdefault(window, np.zeros(self.keys, np.int64))
        counts += np.bincount(keys, minlength=self.keys)

    def list_windows(self) -> list[int]:
        return sorted(self._counts)

    def list_rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        counts = self._counts[window]
        for key in np.flatnonzero(counts).tolist():
            yield key, {"count": int(counts[key])}


class KeyTotals(Totals):
    """How often each key occurs, of keys that are any 64 bits."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._counts: dict[int, Counter[int]] = {}

    def add(self, window: int, chunk: Chunk, accepted: Int64s) -> None:
        keys, counts = np.unique(chunk.columns["key"][accepted], return_counts=True)
        added = dict(zip(keys.tolist(), counts.tolist(), strict=True))
        self._counts.setdefault(window, Counter()).update(added)

    def list_windows(self) -> list[int]:
        return sorted(self._counts)

    def list_rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for key, count in sorted(self._counts[window].items()):
            yield key, {"count": count}


@dataclass
class _Symbol:
    """The trades of one symbol in one window; prices in ticks."""

    amount: int = 0
    volume: int = 0
    trades: int = 0
    high: int = -1
    low: int = _FAR
    first: tuple[int, int] = (_FAR, 0)
    """Time and price of the first trade."""
    last: tuple[int, int] = (-_FAR, 0)


class TradeTotals(Totals):
    """Average price, volume, trades, high, low, open and close of each symbol."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._symbols: dict[int, dict[int, _Symbol]] = {}

    def add(self, window: int, chunk: Chunk, accepted: Int64s) -> None:
        keys, ticks, volumes = (
            chunk.columns[name][accepted] for name in ("key", "ticks", "volume")
        )
        times = chunk.times[accepted]
        order = np.lexsort((ticks, times, keys))
        keys, ticks, volumes, times = (column[order] for column in (keys, ticks, volumes, times))
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        ends = np.append(begins[1:], keys.size)
        sums = (
            keys[begins],
            np.add.reduceat(ticks * volumes, begins),
            np.add.reduceat(volumes, begins),
            ends - begins,
            np.maximum.reduceat(ticks, begins),
            np.minimum.reduceat(ticks, begins),
            *(column[rows] for rows in (begins, ends - 1) for column in (times, ticks)),
        )
        symbols = self._symbols.setdefault(window, {})
        for key, *sum_of in zip(*(column.tolist() for column in sums), strict=True):
            _merge(symbols.setdefault(key, _Symbol()), *sum_of)

    def list_windows(self) -> list[int]:
        return sorted(self._symbols)

    def list_rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        for key, total in sorted(self._symbols[window].items()):
            # Half up, in whole numbers: nothing is rounded twice.
            parts = TICKS * total.volume
            average = (2 * _MILLION * total.amount + parts) // (2 * parts)
            yield (
                key,
                {
                    "vwap": Decimal(average).scaleb(-6),
                    "volume": Decimal(total.volume).quantize(_DECIMALS),
                    "trades": total.trades,
                    "high": _compute_price(total.high),
                    "low": _compute_price(total.low),
                    "open": _compute_price(total.first[1]),
                    "close": _compute_price(total.last[1]),
                },
            )


def _merge(total: _Symbol, amount: int, volume: int, trades: int, *ends: int) -> None:
    high, low, first_time, first, last_time, last = ends
    total.amount += amount
    total.volume += volume
    total.trades += trades
    total.high, total.low = max(total.high, high), min(total.low, low)
    total.first = min(total.first, (first_time, first))
    total.last = max(total.last, (last_time, last))


def _compute_price(ticks: int) -> Decimal:
    return (Decimal(ticks) / TICKS).quantize(_DECIMALS)


class _Tags:
    """The hashtags of one window."""

    def __init__(self, keys: int) -> None:
        self.posts = np.zeros(keys, np.int64)
        self.first = np.full(keys, _FAR)
        self.last = np.full(keys, -_FAR)
        self._pairs: list[Int64s] = []
        self._held = 0
        self._distinct = 0

    def add_users(self, pairs: Int64s) -> None:
        """Add pairs of hashtag and user, a number each; memory holds distinct ones."""
        self._pairs.append(np.unique(pairs))
        self._held += self._pairs[-1].size
        if self._held > 2 * self._distinct + 1_000_000:
            self.unite_pairs()

    def unite_pairs(self) -> Int64s:
        """Bring the pairs together, each once, and return them."""
        self._pairs = [np.unique(np.concatenate(self._pairs))]
        self._held = self._distinct = self._pairs[0].size
        return self._pairs[0]


class PostTotals(Totals):
    """Posts, users, first and last post of each hashtag.

    `users` is what the job writes: the estimate of its sketch, which is the same for any order.
    """

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._users = stream.settings.users
        self._tags: dict[int, _Tags] = {}
        self._hashes: dict[int, int] = {}

    def add(self, window: int, chunk: Chunk, accepted: Int64s) -> None:
        rows = _find_rows(chunk, accepted)
        if not rows.size:
            return
        # A post that names a hashtag twice counts once.
        both = np.unique(chunk.columns["row"][rows] * self.keys + chunk.columns["key"][rows])
        posts, keys = np.divmod(both, self.keys)
        tags = self._tags.setdefault(window, _Tags(self.keys))
        tags.posts += np.bincount(keys, minlength=self.keys)
        np.minimum.at(tags.first, keys, chunk.times[posts])
        np.maximum.at(tags.last, keys, chunk.times[posts])
        tags.add_users(keys * self._users + chunk.columns["user"][posts])

    def list_windows(self) -> list[int]:
        return sorted(self._tags)

    def list_rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        tags = self._tags[window]
        pairs = tags.unite_pairs()
        ends = np.searchsorted(pairs, np.arange(self.keys + 1) * self._users)
        for key in np.flatnonzero(tags.posts).tolist():
            yield (
                key,
                {
                    "posts": int(tags.posts[key]),
                    "users": self._estimate(pairs[ends[key] : ends[key + 1]] % self._users),
                    "first_seen": format_moment(int(tags.first[key])),
                    "last_seen": format_moment(int(tags.last[key])),
                },
            )

    def _estimate(self, users: Int64s) -> int:
        """Estimate the number of these users, all of them different, like the job."""
        # Only here, because numba takes a second to import.
        from unskew.jobs.operators.hashtags import estimate  # noqa: PLC0415

        return estimate([self._hash(user) for user in users.tolist()])

    def _hash(self, user: int) -> int:
        from unskew.grouping.simulation.streams.key_files import hash_text  # noqa: PLC0415 - as above

        if user not in self._hashes:
            self._hashes[user] = int(np.uint64(hash_text(f"u{user}")).astype(np.int64))
        return self._hashes[user]


def _find_rows(chunk: Chunk, accepted: Int64s) -> Int64s:
    """Find the operator's rows that the records at these indices become."""
    chosen = np.zeros(len(chunk.values), bool)
    chosen[accepted] = True
    return np.flatnonzero(chosen[chunk.columns["row"]])


def format_moment(micros: int) -> str:
    """Write a time like the sinks do: to the millisecond."""
    when = _EPOCH + timedelta(microseconds=micros)
    return when.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
