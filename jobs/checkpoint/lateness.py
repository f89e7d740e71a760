"""Which records came too late: when their last window ended, and what Spark held against that."""

import json
from dataclasses import dataclass

import numpy as np

from unskew.config.models.window import NoWindow, SlidingWindow, Window
from unskew.grouping.base import Int64s
from unskew.jobs.checkpoint.files import read_bytes


@dataclass(frozen=True)
class Windows:
    """A job's windows, in microseconds of event time."""

    duration: int
    slide: int

    def last_ends(self, panes: Int64s) -> Int64s:
        """When the last of the windows ends that the records of each pane are in."""
        ends: Int64s = panes - np.mod(panes, self.slide) + self.duration
        return ends


def windows_of(window: Window) -> Windows | None:
    """Those of a job; None if it has none, and so nothing that could be late."""
    if isinstance(window, NoWindow):
        return None
    slide = window.slide if isinstance(window, SlidingWindow) else window.duration
    return Windows(window.duration.amount, slide.amount)


def late_watermark(checkpoint: str, batch: int) -> int | None:
    """The watermark by which Spark dropped late rows of a batch, in microseconds of event time.

    It is that of the batch before. A batch's own, which Spark's progress tells, only closes
    windows, once the batch's rows are in them. None if the log of offsets no longer has it.
    """
    if batch == 0:
        return 0
    try:
        data = read_bytes(f"{checkpoint}/offsets/{batch - 1}")
    except OSError:
        return None  # what only the displays need is no reason to end a job
    lines = data.decode().splitlines() if data else []
    if len(lines) < 2 or not lines[1].startswith("{"):
        return None
    return int(json.loads(lines[1])["batchWatermarkMs"]) * 1000
