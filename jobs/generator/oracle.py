"""The exact totals of a stream, counted from the numbers it was made from, by window if asked."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np

from unskew.config.errors import ExternalError
from unskew.grouping.base import Int64s
from unskew.jobs.generator.files import remove
from unskew.jobs.generator.settings import OracleSettings
from unskew.jobs.generator.stream import Bools, Chunk, Stream
from unskew.jobs.generator.totals import Totals, moment


class Oracle:
    """Counts what was written, and writes the totals to a file."""

    def __init__(self, settings: OracleSettings, stream: Stream, totals: Totals) -> None:
        self._settings = settings
        self._stream = stream
        self._totals = totals
        self._records = 0
        self._rejected: Counter[str] = Counter()
        self._first = self._last = 0
        self._try()

    def _try(self) -> None:
        """Check that the file can be written; keep its content, as the stream may fail to start."""
        file = Path(self._settings.path)
        try:
            made = not os.path.lexists(file)
            file.open("ab").close()
            if made:
                file.unlink()
        except OSError as error:
            raise self._unwritable(error) from error

    def begin(self) -> None:
        """Empty the file: totals of an earlier run do not apply to this stream."""
        try:
            Path(self._settings.path).write_bytes(b"")
        except OSError as error:
            raise self._unwritable(error) from error

    def add(self, chunk: Chunk, begin: int, end: int) -> None:
        """Records from `begin` to before `end` of a chunk were written."""
        reasons = chunk.reasons[begin:end]
        kinds, counts = np.unique(reasons[reasons >= 0], return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            self._rejected[self._stream.reject_reasons[kind]] += count
        self._records += end - begin
        good = begin + np.flatnonzero(reasons < 0)
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
        """Write the file: a result of the job a line, with the names and values the job writes."""
        head = {
            "stream": self._stream.settings.stream,
            "seed": self._stream.settings.seed,
            "records": self._records,
            "rejected": dict(sorted(self._rejected.items())),
            "first_event_time": moment(self._first),
            "last_event_time": moment(self._last),
        }
        try:
            with Path(self._settings.path).open("w") as file:
                file.write(json.dumps(head)[:-1] + ', "totals": [')
                for number, row in enumerate(self._rows()):
                    print("," if number else "", row, sep="\n", end="", file=file)
                file.write("\n]}\n")
        except OSError as error:
            self.discard()
            raise self._unwritable(error) from error

    def discard(self) -> None:
        """Remove the totals when it is unknown which records were written: they could be wrong."""
        remove(self._settings.path)

    def _unwritable(self, error: OSError) -> ExternalError:
        return ExternalError(f"generate: --oracle: {self._settings.path}: {error.strerror}")

    def _rows(self) -> Iterator[str]:
        for start in self._totals.windows():
            bounds = {}
            if self._settings.window is not None:
                ends = (start, start + self._settings.window)
                bounds = dict(zip(("window_start", "window_end"), map(moment, ends), strict=True))
            for key, values in self._totals.rows(start):
                yield _text({**bounds, "key": self._stream.name_of(key), **values})


def _text(row: dict[str, Any]) -> str:
    """A JSON object; decimals are numbers with all their digits."""
    fields = (
        f"{json.dumps(name)}: {value if isinstance(value, Decimal) else json.dumps(value)}"
        for name, value in row.items()
    )
    return "{" + ", ".join(fields) + "}"
