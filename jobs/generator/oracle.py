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
from unskew.jobs.generator.totals import Totals, format_moment


class Oracle:
    """Counts what was written, and writes the totals to a file."""

    def __init__(self, settings: OracleSettings, stream: Stream, totals: Totals) -> None:
        self._settings = settings
        self._stream = stream
        self._totals = totals
        self._records = 0
        self._rejected: Counter[str] = Counter()
        self._first = self._last = 0
        self._check_writable()

    def _check_writable(self) -> None:
        """Check that the file can be written; keep its content, as the stream may fail to start."""
        file = Path(self._settings.path)
        try:
            made = not os.path.lexists(file)
            file.open("ab").close()
            if made:
                file.unlink()
        except OSError as error:
            raise self._make_error(error) from error

    def begin(self) -> None:
        """Empty the file: totals of an earlier run do not apply to this stream."""
        try:
            Path(self._settings.path).write_bytes(b"")
        except OSError as error:
            raise self._make_error(error) from error

    def add(self, chunk: Chunk, begin: int, end: int) -> None:
        """Count the records from `begin` to before `end` of a chunk, which were written."""
        rejected = chunk.rejected[begin:end]
        kinds, counts = np.unique(rejected[rejected >= 0], return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            self._rejected[self._stream.reject_reasons[kind]] += count
        self._records += end - begin
        accepted = begin + np.flatnonzero(rejected < 0)
        if not accepted.size:
            return
        times = chunk.times[accepted]
        self._first = min(int(times.min()), self._first or int(times.min()))
        self._last = max(int(times.max()), self._last)
        for starts, inside in self._find_windows(times):
            for start in np.unique(starts[inside]).tolist():
                self._totals.add(start, chunk, accepted[inside & (starts == start)])

    def _find_windows(self, times: Int64s) -> Iterator[tuple[Int64s, Bools]]:
        """Find starts of windows, and which times are in them: a time may be in several."""
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
            "first_event_time": format_moment(self._first),
            "last_event_time": format_moment(self._last),
        }
        try:
            with Path(self._settings.path).open("w") as file:
                file.write(json.dumps(head)[:-1] + ', "totals": [')
                for number, row in enumerate(self._list_rows()):
                    print("," if number else "", row, sep="\n", end="", file=file)
                file.write("\n]}\n")
        except OSError as error:
            self.discard()
            raise self._make_error(error) from error

    def discard(self) -> None:
        """Remove the totals when it is unknown which records were written: they could be wrong."""
        remove(self._settings.path)

    def _make_error(self, error: OSError) -> ExternalError:
        return ExternalError(f"generate: --oracle: {self._settings.path}: {error.strerror}")

    def _list_rows(self) -> Iterator[str]:
        for start in self._totals.list_windows():
            bounds = {}
            if self._settings.window is not None:
                ends = (start, start + self._settings.window)
                bounds = dict(
                    zip(("window_start", "window_end"), map(format_moment, ends), strict=True)
                )
            for key, values in self._totals.list_rows(start):
                yield _format_row({**bounds, "key": self._stream.name_of(key), **values})


def _format_row(row: dict[str, Any]) -> str:
    """Write a JSON object; decimals are numbers with all their digits."""
    fields = (
        f"{json.dumps(name)}: {value if isinstance(value, Decimal) else json.dumps(value)}"
        for name, value in row.items()
    )
    return "{" + ", ".join(fields) + "}"
