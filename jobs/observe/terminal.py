"""The display of a running job on standard error: one live line on a terminal, or a log."""

import json
import shutil
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from unskew.jobs.observe.batches.batch import BatchDone, Lag
from unskew.jobs.observe.figure import Figure, take_value
from unskew.jobs.observe.figures import FIGURES
from unskew.jobs.observe.follower import Follower

Clock = Callable[[], float]
_CLEAR = "\r\x1b[2K"


class Display(Follower, ABC):
    """Writes events that have words."""

    @abstractmethod
    def write_event(self, event: str, level: str = "info", **fields: Any) -> None:
        """Write an event."""

    def on_grouping_chosen(self, grouping: str, why: str) -> None:
        """Write what `auto` takes."""
        self.write_event("grouping", taken=grouping, why=why)

    def on_warning(self, text: str) -> None:
        """Write what is not as it should be."""
        self.write_event("warning", "warning", text=text)

    def on_retry(self, reason: str, seconds: float) -> None:
        """Write why, and when the query starts once more."""
        self.write_event("retrying", "warning", reason=reason, seconds=seconds)


class Log(Display):
    """A log with a line for each event, as a JSON object or as text."""

    def __init__(
        self,
        job: str,
        form: str,
        out: TextIO | None = None,
        clock: Clock = time.time,
        figures: tuple[Figure, ...] = FIGURES,
    ) -> None:
        self._job = job
        self._figures = figures
        self._json = form == "json"
        self._out = out or sys.stderr
        self._clock = clock

    def write_event(self, event: str, level: str = "info", **fields: Any) -> None:
        """Write an event."""
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        if self._json:
            line = {"time": at, "level": level, "event": event, "job": self._job, **fields}
            self._out.write(json.dumps(line, default=str) + "\n")
        else:
            words = " ".join(f"{name}={_quote_text(value)}" for name, value in fields.items())
            self._out.write(f"{at} {level:<7} {self._job}: {event} {words}".rstrip() + "\n")
        self._out.flush()

    def on_batch_done(self, done: BatchDone) -> None:
        """Write a batch's figures; dead letters and late records are events of their own."""
        self.write_event("batch", **summarize(done, self._figures))
        stats = done.stats
        if stats is not None and stats.rejected:
            self.write_event("dead_letters", "warning", batch=done.batch, **stats.rejected)
        if done.late_partials:
            late = {"batch": done.batch, "partials": done.late_partials}
            if done.late_records is not None:
                late["records"] = done.late_records
            self.write_event("late_partials", "warning", **late)

    def on_records_rejected(self, counts: Mapping[str, int]) -> None:
        """Write how many dead letters there are that no report counts."""
        self.write_event("dead_letters", "warning", **counts)

    def on_state_changed(self, state: str) -> None:
        """Write the state; a failure is written with its error instead."""
        if state != "failed":
            self.write_event(state)


class Line(Display):
    """One line on a terminal that is rewritten with each batch; events stay above it."""

    def __init__(
        self,
        job: str,
        out: TextIO | None = None,
        clock: Clock = time.monotonic,
        figures: tuple[Figure, ...] = FIGURES,
    ) -> None:
        self._job = job
        self._figures = figures
        self._out = out or sys.stderr
        self._clock = clock
        self._text = "starting Spark"
        self._since = clock()
        self._batch = ""
        self._shown = ""
        self._dead_letters = 0
        self._late = 0

    def write_event(self, event: str, level: str = "info", **fields: Any) -> None:
        """Write a line that stays."""
        words = " ".join(_quote_text(value) for value in fields.values())
        self._out.write(f"{_CLEAR}{self._job}: {event} {words}".rstrip() + "\n")
        self._shown = ""
        self._show()

    def on_batch_done(self, done: BatchDone) -> None:
        """Show the batch."""
        if done.stats:
            self._dead_letters += sum(done.stats.rejected.values())
        self._late += done.late_records or 0
        self._batch = format_line(done, self._figures)
        self._show_text(self._batch)

    def on_records_rejected(self, counts: Mapping[str, int]) -> None:
        """Count dead letters that no report counts."""
        self._dead_letters += sum(counts.values())

    def on_idle_poll(self, lag: Lag) -> None:
        """Show before the first batch that the query waits."""
        if self._text.startswith("starting"):
            self._show_text("waiting for records")

    def time_passed(self) -> None:
        """Refresh the age of the text."""
        self._show()

    def on_state_changed(self, state: str) -> None:
        """Show that the query stops; end the line when it has stopped or failed."""
        shown = {"stopping": "stopping, the batch under way may finish", "starting": "starting"}
        if state in shown:
            self._show_text(shown[state])
            return
        last = f"; last {self._batch}" if self._batch else ""
        self._out.write(f"{_CLEAR}{self._job}: {state}{last}\n")
        self._out.flush()

    def _show_text(self, text: str) -> None:
        self._text, self._since = text, self._clock()
        self._show()

    def _show(self) -> None:
        dead = f"  {self._dead_letters:,} dead letters" if self._dead_letters else ""
        late = f"  {self._late:,} late records" if self._late else ""
        age = int(self._clock() - self._since)
        # The age comes before the figures: a narrow terminal cuts off the end of the line.
        what, gap, figures = self._text.partition("  ")
        text = f"{self._job}: {what}, {age} s ago{gap}{figures}{dead}{late}"
        text = text[: shutil.get_terminal_size().columns - 1]
        if text != self._shown:
            self._shown = text
            self._out.write(_CLEAR + text)
            self._out.flush()


def format_line(done: BatchDone, figures: tuple[Figure, ...] = FIGURES) -> str:
    """The batch in a few words: the figures that have a text for the line, its time first."""
    values = [(figure.line, take_value(figure, done)) for figure in figures if figure.line]
    words = [line.format(value) for line, value in values if value is not None]
    return "  ".join(words)


def summarize(done: BatchDone, figures: tuple[Figure, ...] = FIGURES) -> dict[str, Any]:
    """The figures of a batch in the log, by name."""
    values = {figure: take_value(figure, done) for figure in figures if figure.log}
    return {
        figure.log: round(value, figure.digits) if isinstance(value, float) else value
        for figure, value in values.items()
        if value is not None
    }


def _quote_text(value: Any) -> str:
    text = str(value)
    return json.dumps(text) if not text or " " in text or '"' in text else text
