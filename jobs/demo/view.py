"""The demo's display while it runs: bars that move with every batch, or plain lines."""

import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from unskew.grouping.base import Int64s
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.follower import Follower

_BAR = 48
_STEPS = " ▁▂▃▄▅▆▇█"
_RENEWED_SECONDS = 0.5


class View(Follower):
    """Follows the jobs one after the other."""

    def __init__(self, console: Console, batches: int, partitions: int) -> None:
        self._console = console
        self._promised = batches
        self._partitions = partitions
        self._live: Live | None = None
        self._grouping = ""
        self._text = ""
        self._since = self._shown = time.monotonic()
        self._most = 1
        self.batches: list[BatchDone] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def begin(self, grouping: str, url: str) -> None:
        """The next job starts; its live page is at `url`."""
        self._end()
        if not self._grouping:
            self._console.print(f"watch it in a browser: {url}", soft_wrap=True)
        self._grouping = grouping
        self.batches = []
        self._console.print(f"counting under {grouping}")
        self._text, self._since = "the query starts", time.monotonic()

    def on_batch_done(self, done: BatchDone) -> None:
        """A batch is done."""
        if done.stats is None:
            return
        self.batches.append(done)
        self._most = max(self._most, int(done.stats.records.max()))
        if not self._console.is_terminal:
            self._console.print(f"  {self._make_line(done)}", highlight=False, soft_wrap=True)
        self._say(self._make_line(done))

    def time_passed(self) -> None:
        """Renew the age of what is shown."""
        if time.monotonic() - self._shown > _RENEWED_SECONDS:
            self._renew()

    def on_state_changed(self, state: str) -> None:
        """Ctrl-C waits for the batch under way: say so."""
        if state == "stopping":
            self._say("stopping: the batch under way may finish")
            if not self._console.is_terminal:
                self._console.print(f"  {self._text}")

    def _make_line(self, done: BatchDone) -> str:
        assert done.stats is not None
        return (
            f"batch {len(self.batches)} of {self._promised}: {done.stats.total:,} words,"
            f" {done.seconds:.1f} s, fullest partition {done.stats.max_over_mean:.2f} x the mean"
        )

    def _say(self, text: str) -> None:
        self._text, self._since = text, time.monotonic()
        self._renew()

    def _renew(self) -> None:
        self._shown = time.monotonic()
        if self._console.is_terminal:
            if self._live is None:
                # Not before the query runs: what Spark's start writes would be in between.
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            self._live.update(self._make_picture(), refresh=True)

    def _end(self) -> None:
        if self._live is not None:
            self._live.update(self._make_picture(ended=True), refresh=True)
            self._live.stop()
            self._live = None

    def _make_picture(self, *, ended: bool = False) -> Group:
        age = "" if ended else f"  ({time.monotonic() - self._since:.0f} s ago)"
        head = Text.assemble((f"{self._grouping}  ", "bold"), self._text, (age, "dim"))
        stats = self.batches[-1].stats if self.batches else None
        if stats is None:
            return Group(head)
        return Group(head, draw_bars(stats.records, self._most), self._draw_times())

    def _draw_times(self) -> Text:
        """Draw a bar chart of batch durations."""
        seconds = [done.seconds for done in self.batches]
        top = max(seconds)
        columns = "".join(_STEPS[round(duration / top * (len(_STEPS) - 1))] for duration in seconds)
        return Text(f"batches {columns}  longest {top:.1f} s", style="dim")


def draw_bars(loads: Int64s, most: int) -> Table:
    """Draw words of each partition as bars; `most` is the widest."""
    table = Table.grid(padding=(0, 1))
    table.add_column(justify="right")
    table.add_column(width=_BAR)
    table.add_column(justify="right")
    mean = loads.mean()
    for number, load in enumerate(loads.tolist()):
        over = load > 1.2 * mean
        bar = Text("█" * max(1, round(_BAR * load / most)), style="red" if over else "green")
        # Not by colour alone.
        mark = f"{load:,}{' over' if over else ''}"
        table.add_row(f"p{number}", bar, mark)
    return table
