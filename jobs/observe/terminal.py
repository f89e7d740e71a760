"""What a running job says of itself: one live line on a terminal, structured logs elsewhere."""

import json
import shutil
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

from unskew.jobs.observe.batch import BatchDone, Lag, lag_of
from unskew.jobs.observe.follower import Follower

Clock = Callable[[], float]
_CLEAR = "\r\x1b[2K"


class Log(Follower):
    """Events as lines: JSON objects for machines, or text for people who look later."""

    def __init__(
        self, job: str, form: str, out: TextIO | None = None, clock: Clock = time.time
    ) -> None:
        self._job = job
        self._json = form == "json"
        self._out = out or sys.stderr
        self._clock = clock

    def event(self, event: str, level: str = "info", **fields: Any) -> None:
        """Write one."""
        at = datetime.fromtimestamp(self._clock(), UTC).isoformat(timespec="milliseconds")
        if self._json:
            line = {"time": at, "level": level, "event": event, "job": self._job, **fields}
            self._out.write(json.dumps(line, default=str) + "\n")
        else:
            words = " ".join(f"{name}={_plain(value)}" for name, value in fields.items())
            self._out.write(f"{at} {level:<7} {self._job}: {event} {words}".rstrip() + "\n")
        self._out.flush()

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""
        self.event("batch", **summary(done))
        stats = done.stats
        if stats is not None and stats.rejected:
            self.event("dead_letters", "warning", batch=done.batch, **stats.rejected)
        if done.late_partials:
            late = {"batch": done.batch, "partials": done.late_partials}
            if done.late_records is not None:
                late["records"] = done.late_records
            self.event("late_partials", "warning", **late)

    def refused(self, counts: Mapping[str, int]) -> None:
        """Dead letters outside the reports."""
        self.event("dead_letters", "warning", **counts)

    def enter(self, state: str) -> None:
        """The query is in another state; why it failed is told by its error."""
        if state != "failed":
            self.event(state)


class Line(Follower):
    """One line on a terminal that is always the latest; events stay above it."""

    def __init__(self, job: str, out: TextIO | None = None, clock: Clock = time.monotonic) -> None:
        self._job = job
        self._out = out or sys.stderr
        self._clock = clock
        self._text = "starting Spark"
        self._since = clock()
        self._batch = ""
        self._shown = ""
        self._refused = 0
        self._late = 0

    def event(self, event: str, level: str = "info", **fields: Any) -> None:
        """A line that stays."""
        words = " ".join(_plain(value) for value in fields.values())
        self._out.write(f"{_CLEAR}{self._job}: {event} {words}".rstrip() + "\n")
        self._shown = ""
        self._show()

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""
        if done.stats:
            self._refused += sum(done.stats.rejected.values())
        self._late += done.late_records or 0
        self._batch = line_of(done)
        self._latest(self._batch)

    def refused(self, counts: Mapping[str, int]) -> None:
        """Dead letters outside the reports."""
        self._refused += sum(counts.values())

    def idle(self, lag: Lag) -> None:
        """Nothing new."""
        if self._text.startswith("starting"):
            self._latest("waiting for records")

    def tick(self) -> None:
        """Renew the age of what is shown."""
        self._show()

    def enter(self, state: str) -> None:
        """The line ends with its query."""
        if state == "stopping":
            self._latest("stopping, the batch under way may finish")
            return
        last = f"; last {self._batch}" if self._batch else ""
        self._out.write(f"{_CLEAR}{self._job}: {state}{last}\n")
        self._out.flush()

    def _latest(self, text: str) -> None:
        self._text, self._since = text, self._clock()
        self._show()

    def _show(self) -> None:
        refused = f"  {self._refused:,} dead letters" if self._refused else ""
        late = f"  {self._late:,} late records" if self._late else ""
        age = int(self._clock() - self._since)
        # The age comes early: a narrow terminal cuts the end off.
        what, gap, figures = self._text.partition("  ")
        text = f"{self._job}: {what}, {age} s ago{gap}{figures}{refused}{late}"
        text = text[: shutil.get_terminal_size().columns - 1]
        if text != self._shown:
            self._shown = text
            self._out.write(_CLEAR + text)
            self._out.flush()


def line_of(done: BatchDone) -> str:
    """The batch in a few words."""
    fields = summary(done)
    words = [f"batch {done.batch}", f"{fields['records_per_second']:,.0f} records/s"]
    if "max_over_mean" in fields:
        words.append(f"max/mean {fields['max_over_mean']:.2f}")
        words.append(f"slowest p{fields['slowest_partition']}")
    if "lag" in fields:
        words.append(f"lag {fields['lag']:,}")
    return "  ".join([*words, f"took {done.seconds:.1f} s"])


def summary(done: BatchDone) -> dict[str, Any]:
    """What every display says of a batch, by name."""
    fields: dict[str, Any] = {
        "batch": done.batch,
        "records": done.records,
        "seconds": round(done.seconds, 3),
        "records_per_second": round(done.records / done.seconds, 1) if done.seconds else 0.0,
    }
    stats = done.stats
    if stats is not None:
        fields["max_over_mean"] = round(stats.max_over_mean, 4)
        fields["replication"] = round(stats.replication, 4)
        fields["slowest_partition"] = stats.slowest
        fields["slowest_busy_seconds"] = round(float(stats.busy_seconds.max()), 4)
    if done.routing is not None:
        fields["routing_seconds"] = round(done.routing.seconds, 4)
        fields["hot_keys"] = done.routing.hot_keys
    lag = lag_of(done.progress)
    if lag:
        fields["lag"] = sum(lag.values())
    return fields


def _plain(value: Any) -> str:
    text = str(value)
    return json.dumps(text) if not text or " " in text or '"' in text else text
