"""The live page at `/`: its document, and what a browser asks for while it is open.

The page is one document without a build step. It loads nothing but `batches.json` from its own
server, and its content security policy allows nothing else. It asks once a second for the batches
after the last one it has. A batch is made into JSON once, when it is done, so an open page costs
the driver a request a second: 0.2 % of a core was measured, with 1000 partitions and a batch a
second. The batches that are kept are bounded by number and bytes, for any number of partitions.

Each run has an identifier. A page that stays open while its job is started again sees another
identifier, asks for all batches of the new run, and keeps those of the run before.
"""

import json
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import numpy as np

from unskew.config.models.job import Job
from unskew.jobs.observe.batches.batch import BatchDone, Lag
from unskew.jobs.observe.figure import Figure, take_value
from unskew.jobs.observe.figures import FIGURES
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import Health, read_trigger_seconds
from unskew.jobs.observe.page.palette import write_css

BATCHES_MAX = 120
BYTES_MAX = 1 << 20
DATA = "/batches.json"
_SCRIPTS = ("words.js", "charts.js", "page.js")


def _read_document() -> bytes:
    """Read the page with its style and its scripts in it, so that it is one response."""
    page, style = (_read(f"page.{end}") for end in ("html", "css"))
    script = b"".join(_read(name) for name in _SCRIPTS)
    style = write_css().encode() + style
    page = page.replace(b"<style></style>", b"<style>\n%b</style>" % style)
    return page.replace(b"<script></script>", b"<script>\n%b</script>" % script)


def _read(name: str) -> bytes:
    return Path(__file__).with_name(name).read_bytes()


DOCUMENT = _read_document()


def _write_policy(document: bytes) -> str:
    """Write the content security policy: the page's own script and style, and its own server."""
    allowed = {
        kind: " ".join(
            f"'sha256-{b64encode(sha256(text).digest()).decode()}'"
            for text in re.findall(rb"<%b>(.*?)</%b>" % (tag, tag), document, re.DOTALL)
        )
        for kind, tag in (("script-src", b"script"), ("style-src", b"style"))
    }
    rules = {
        "default-src": "'none'",
        **allowed,
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }
    return "; ".join(f"{kind} {sources}" for kind, sources in rules.items())


HEADERS = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    ("Content-Security-Policy", _write_policy(DOCUMENT)),
)


@dataclass(frozen=True)
class _Shown:
    """The page's content; replaced as a whole, so that a response never has half of a batch."""

    batches: tuple[tuple[int, bytes], ...] = ()
    """The newest batches, each by number and as JSON."""
    lag: int | None = None
    waiting: bool = False
    dead_letters: int = 0
    late_partials: int = 0


class LivePage(Follower):
    """Keeps the newest batches for the page."""

    def __init__(
        self,
        job: Job,
        health: Health,
        clock: Callable[[], float] = time.time,
        figures: tuple[Figure, ...] = FIGURES,
    ) -> None:
        self._figures = [figure for figure in figures if figure.page]
        self._health = health
        self._clock = clock
        self._settings = job.metrics
        self._job = {
            "run": secrets.token_hex(8),
            "job": job.name,
            "grouping": job.grouping.type,
            "operator": job.operator.type,
            "partitions": job.partitions,
            "trigger_seconds": read_trigger_seconds(job),
            "hot_key_names": job.metrics.hot_key_names,
            "values_shown": job.metrics.dead_letter_values,
            "port_fixed": job.metrics.port not in {"auto", 0},
            "started": clock(),
        }
        self._shown = _Shown()

    def on_batch_done(self, done: BatchDone) -> None:
        """Keep a batch's figures as JSON."""
        settings = self._settings
        chosen = done.limit_hot_keys(settings.hot_keys, names=settings.hot_key_names)
        entry = {"at": self._clock(), **_group_figures(self._figures, chosen)}
        text = json.dumps(entry, separators=(",", ":")).encode()
        rejected = sum(done.stats.rejected.values()) if done.stats else 0
        self._shown = replace(
            self._shown,
            batches=_keep_bounded((*self._shown.batches, (done.batch, text))),
            lag=_sum_lag(done.lag),
            waiting=False,
            dead_letters=self._shown.dead_letters + rejected,
            late_partials=self._shown.late_partials + done.late_partials,
        )

    def on_idle_poll(self, lag: Lag) -> None:
        """Show that the query waits for records."""
        self._shown = replace(self._shown, lag=_sum_lag(lag), waiting=True)

    def on_records_rejected(self, counts: Mapping[str, int]) -> None:
        """Count dead letters that no report counts."""
        more = sum(counts.values())
        self._shown = replace(self._shown, dead_letters=self._shown.dead_letters + more)

    def data(self, query: str = "") -> bytes:
        """The job as it is now, and the batches that a page with this query does not have yet."""
        asked = parse_qs(query)
        after = -1
        if asked.get("run") == [self._job["run"]]:
            text = asked.get("after", [""])[0]
            after = int(text) if re.fullmatch(r"\d{1,18}", text) else -1
        shown = self._shown
        head = {
            **self._job,
            "now": self._clock(),
            "state": self._health.state,
            "lag": shown.lag,
            "waiting": shown.waiting,
            "dead_letters": shown.dead_letters,
            "late_partials": shown.late_partials,
        }
        batches = b",".join(text for number, text in shown.batches if number > after)
        return json.dumps(head)[:-1].encode() + b', "batches": [' + batches + b"]}\n"


def _keep_bounded(batches: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, bytes], ...]:
    """Keep the newest batches within the bounds, and the last one in any case."""
    room, kept = BYTES_MAX, 0
    for _, text in reversed(batches[-BATCHES_MAX:]):
        room -= len(text)
        if room < 0 and kept:
            break
        kept += 1
    return batches[len(batches) - kept :]


def _sum_lag(lag: Lag) -> int | None:
    return sum(lag.values()) if lag else None


def _group_figures(figures: Iterable[Figure], done: BatchDone) -> dict[str, Any]:
    """Group the page's figures of a batch: those with a dot in their name go together.

    A group of which no figure has a value is null, so that the page can ask for it as a whole.
    """
    entry: dict[str, Any] = {}
    for figure in figures:
        value = take_value(figure, done)
        if isinstance(value, np.ndarray):
            value = value.round(6).tolist()
        elif isinstance(value, float):
            value = round(value, 6)
        elif isinstance(value, dict):
            value = {
                key: round(part, 6) if isinstance(part, float) else part
                for key, part in value.items()
            }
        group, dot, name = figure.page.rpartition(".")
        if not dot:
            entry[name] = value
        elif value is None:
            entry.setdefault(group, None)
        else:
            entry[group] = {**(entry.get(group) or {}), name: value}
    return entry
