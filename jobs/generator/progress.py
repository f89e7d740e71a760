"""A stream's progress: one line rewritten in place on a terminal, periodic lines elsewhere."""

import shutil
import sys
import time
from typing import TextIO

_RENEWED_SECONDS = 0.5
_LOGGED_SECONDS = 30.0
_CLEAR = "\r\x1b[K"


class Progress:
    """Prints progress to standard error, and a summary at the end to standard output."""

    def __init__(
        self, stream: str, target: str, target_rate: float | None, out: TextIO | None = None
    ) -> None:
        self._stream = stream
        self._target = target
        self._target_rate = target_rate
        self._out = out or sys.stderr
        self._live = self._out.isatty()
        self._pause = _RENEWED_SECONDS if self._live else _LOGGED_SECONDS
        self._started = self._shown = time.monotonic()
        self._records = 0

    def show(self, records: int) -> None:
        """Print how many records have been handed over, at most once an interval."""
        now = time.monotonic()
        if now - self._shown < self._pause:
            return
        lately = (records - self._records) / (now - self._shown)
        self._shown, self._records = now, records
        target = "" if self._target_rate is None else f" of {self._target_rate:,.0f}/s asked"
        age = now - self._started
        text = f"{self._stream}: {records:,} records in {age:.0f} s, {lately:,.0f}/s{target}"
        if self._live:
            text = _CLEAR + text[: shutil.get_terminal_size().columns - 1]
        else:
            text += "\n"
        self._out.write(text)
        self._out.flush()

    def clear(self) -> None:
        """Clear the progress line before an error is printed."""
        if self._live:
            self._out.write(_CLEAR)
            self._out.flush()

    def done(self, written: int, seconds: float) -> None:
        """Print what was written, where and how fast."""
        self.clear()
        target = "" if self._target_rate is None else f" ({self._target_rate:,.0f} asked)"
        print(
            f"{self._stream}: {written:,} records in {self._target}, {seconds:.1f} s,"
            f" {written / seconds:,.0f} records/s{target}",
            flush=True,
        )
