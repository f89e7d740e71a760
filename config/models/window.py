"""Over which stretch of event time results are made, and how often."""

import math
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from unskew.config.models.base import Model
from unskew.config.types.units import Duration
from unskew.grouping.options.broken_rules import make_rule_error


def _positive(duration: Duration) -> Duration:
    if duration.amount < 1_000:
        raise make_rule_error("at least 1 ms")
    return duration


PositiveDuration = Annotated[Duration, AfterValidator(_positive)]


class NoWindow(Model):
    """Running totals since the job's beginning."""

    type: Literal["none"] = "none"
    """No windows: running totals."""


class TumblingWindow(Model):
    """Windows that follow each other without a gap."""

    type: Literal["tumbling"]
    """One window after the other; a record is in exactly one."""
    duration: PositiveDuration
    """How long a window is."""

    @property
    def slide(self) -> Duration:
        """How long after a window's beginning the next begins."""
        return self.duration

    @property
    def pane(self) -> int:
        """Microseconds of event time whose records share all windows."""
        return self.duration.amount


class SlidingWindow(Model):
    """Windows that overlap."""

    type: Literal["sliding"]
    """Overlapping windows; a record is in several."""
    duration: PositiveDuration
    """How long a window is."""
    slide: PositiveDuration
    """How long after a window's beginning the next begins."""

    @property
    def pane(self) -> int:
        """Microseconds of event time whose records share all windows."""
        return math.gcd(self.duration.amount, self.slide.amount)


Windows = TumblingWindow | SlidingWindow
Window = Annotated[NoWindow | TumblingWindow | SlidingWindow, Field(discriminator="type")]


class IntervalTrigger(Model):
    """Micro-batches at a steady pace."""

    type: Literal["interval"]
    """Runs until it is stopped."""
    interval: Duration = Duration.parse("10 s")
    """From the beginning of a micro-batch to that of the next; `0 s`: each as soon as the last is
    done."""


class AvailableNowTrigger(Model):
    """Everything there is, then the end."""

    type: Literal["available_now"]
    """Reads all that is there when it starts, in as many micro-batches as it takes, and ends."""


Trigger = Annotated[IntervalTrigger | AvailableNowTrigger, Field(discriminator="type")]


class Merge(Model):
    """How partial results become totals."""

    partitions: Annotated[int, Field(ge=1, le=10_000)] = 4
    """Partitions of the merge, apart from those that are routed to. The checkpoint fixes it."""
    output: Literal["update", "append"] = "update"
    """`update`: a result each time it changes. `append`: each window once, when it is complete."""
