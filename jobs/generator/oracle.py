"""The exact totals of a stream, counted from what it was made of, for each window if asked."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from config.errors import OutsideError
from grouping.base import Int64s
from jobs.generator.settings import OracleSettings
from jobs.generator.stream import Bools, Chunk, Stream

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Totals(ABC):
    """The totals of one operator, by window (0 where there are none) and number of the key."""

    def __init__(self, stream: Stream) -> None:
        self.keys = stream.settings.keys

    @abstractmethod
    def add(self, window: int, chunk: Chunk, taken: Int64s) -> None:
        """Count the records at the places `taken`, all of which are in `window`."""

    @abstractmethod
    def windows(self) -> list[int]:
        """Those that have totals."""

    @abstractmethod
    def rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        """Keys of a window with the columns that the job writes."""


class WordTotals(Totals):
    """How often each word occurs."""

    def __init__(self, stream: Stream) -> None:
        super().__init__(stream)
        self._counts: dict[int, Int64s] = {}

    def add(self, window: int, chunk: Chunk, taken: Int64s) -> None:
        chosen = np.zeros(len(chunk.values), bool)
        chosen[taken] = True
        keys = chunk.facts["key"][chosen[chunk.facts["row"]]]
        counts = self._counts.setdefault(window, np.zeros(self.keys, np.int64))
        counts += np.bincount(keys, minlength=self.keys)

    def windows(self) -> list[int]:
        return sorted(self._counts)

    def rows(self, window: int) -> Iterator[tuple[int, dict[str, Any]]]:
        counts = self._counts[window]
        for key in np.flatnonzero(counts).tolist():
            yield key, {"count": int(counts[key])}


class Oracle:
    """Counts what was written, and says it in a file."""

    def __init__(self, settings: OracleSettings, stream: Stream, totals: Totals) -> None:
        self._settings = settings
        self._stream = stream
        self._totals = totals
        self._records = 0
        self._refused: Counter[str] = Counter()
        self._first = self._last = 0
        try:
            Path(settings.path).write_text("")
        except OSError as error:
            raise OutsideError(f"generate: --oracle: {settings.path}: {error.strerror}") from error

    def add(self, chunk: Chunk, begin: int, end: int) -> None:
        """Records from `begin` to before `end` of a chunk were written."""
        faults = chunk.faults[begin:end]
        kinds, counts = np.unique(faults[faults >= 0], return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            self._refused[self._stream.faults[kind]] += count
        self._records += end - begin
        good = begin + np.flatnonzero(faults < 0)
        if not good.size:
            return
        times = chunk.times[good]
        self._first = min(int(times.min()), self._first or int(times.min()))
        self._last = max(int(times.max()), self._last)
        for starts, inside in self._windows(times):
            for start in np.unique(starts[inside]).tolist():
                self._totals.add(start, chunk, good[inside & (starts == start)])

    def _windows(self, times: Int64s) -> Iterator[tuple[Int64s, Bools]]:
        """Starts of windows, and which of the times are in them: a time may be in several."""
        window = self._settings.window
        if window is None:
            yield np.zeros(times.size, np.int64), np.ones(times.size, bool)
            return
        slide = self._settings.slide or window
        newest = times - times % slide
        for shift in range(-(-window // slide)):
            starts = newest - shift * slide
            yield starts, times < starts + window

    def write(self) -> None:
        """The file, a result of the job a line, with the names and values that the job writes."""
        head = {
            "stream": self._stream.settings.stream,
            "seed": self._stream.settings.seed,
            "records": self._records,
            "refused": dict(sorted(self._refused.items())),
            "first_event_time": _moment(self._first),
            "last_event_time": _moment(self._last),
        }
        try:
            with Path(self._settings.path).open("w") as file:
                file.write(json.dumps(head)[:-1] + ', "totals": [')
                for number, row in enumerate(self._rows()):
                    print("," if number else "", row, sep="\n", end="", file=file)
                file.write("\n]}\n")
        except OSError as error:
            raise OutsideError(
                f"generate: --oracle: {self._settings.path}: {error.strerror}"
            ) from error

    def _rows(self) -> Iterator[str]:
        for start in self._totals.windows():
            bounds = {}
            if self._settings.window is not None:
                ends = (start, start + self._settings.window)
                bounds = dict(zip(("window_start", "window_end"), map(_moment, ends), strict=True))
            for key, values in self._totals.rows(start):
                yield _text({**bounds, "key": self._stream.names[key], **values})


def _moment(micros: int) -> str:
    """As the sinks write a time: with milliseconds, or with microseconds where it has some."""
    precision = "microseconds" if micros % 1000 else "milliseconds"
    when = _EPOCH + timedelta(microseconds=micros)
    return when.replace(tzinfo=None).isoformat(timespec=precision) + "Z"


def _text(row: dict[str, Any]) -> str:
    """A JSON object; decimals are numbers with all their digits."""
    fields = (
        f"{json.dumps(name)}: {value if isinstance(value, Decimal) else json.dumps(value)}"
        for name, value in row.items()
    )
    return "{" + ", ".join(fields) + "}"
