"""The live page at `/`: its document, and what a browser asks for while it is open.

The page is one document without a build step and loads nothing but `batches.json` from where it
came from; its policy for browsers allows nothing else. It asks once a second for the batches after
the last one it has. A batch is made into JSON once, when it is done, so an open page costs the
driver a request a second: 0.2 % of a core was measured, with 1000 partitions and a batch a second.
The ring of batches is bounded by number and bytes, whatever the number of partitions.

A run has a name of its own: a page that outlived its job sees that another run answers, gets all of
it, and keeps what it knew of the run before.
"""

import json
import re
import secrets
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from unskew.config.models.job import Job
from unskew.config.models.metrics import Metrics
from unskew.jobs.observe.batch import BatchDone, Lag, lag_of
from unskew.jobs.observe.batch_stats import BatchStats
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.metrics import key_text

BATCHES_MAX = 120
BYTES_MAX = 1 << 20
DATA = "/batches.json"


def _document() -> bytes:
    """The page with its style in it, so that it is one answer."""
    page, style = (Path(__file__).with_name(f"page.{end}").read_bytes() for end in ("html", "css"))
    return page.replace(b"<style></style>", b"<style>\n%b</style>" % style)


DOCUMENT = _document()


def _policy(document: bytes) -> str:
    """What a browser may do with the page: run and style itself, and ask its own server."""
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
    ("Content-Security-Policy", _policy(DOCUMENT)),
)


@dataclass(frozen=True)
class _Shown:
    """What there is to show; replaced as a whole, so an answer never has half of a batch."""

    batches: tuple[tuple[int, bytes], ...] = ()
    """Their numbers, and each as JSON."""
    lag: int | None = None
    waiting: bool = False
    dead_letters: int = 0
    late_partials: int = 0


class LivePage(Follower):
    """Follows a job for the page."""

    def __init__(self, job: Job, health: Health, clock: Callable[[], float] = time.time) -> None:
        self._health = health
        self._clock = clock
        self._settings = job.metrics
        self._job = {
            "run": secrets.token_hex(8),
            "job": job.name,
            "grouping": job.grouping.type,
            "operator": job.operator.type,
            "partitions": job.partitions,
            "hot_key_names": job.metrics.hot_key_names,
            "port_fixed": job.metrics.port not in {"auto", 0},
            "started": clock(),
        }
        self._shown = _Shown()

    def batch(self, done: BatchDone) -> None:
        """A batch is done."""
        lag = _total(lag_of(done.progress))
        entry = {
            "batch": done.batch,
            "at": self._clock(),
            "seconds": done.seconds,
            "records": done.records,
            "records_per_second": done.records / done.seconds if done.seconds else 0.0,
            "lag": lag,
            "routing": _routing(done),
            **_facts(done.stats, self._settings),
        }
        text = json.dumps(entry, separators=(",", ":")).encode()
        bad = sum(done.stats.rejected.values()) if done.stats else 0
        self._shown = replace(
            self._shown,
            batches=_bounded((*self._shown.batches, (done.batch, text))),
            lag=lag,
            waiting=False,
            dead_letters=self._shown.dead_letters + bad,
            late_partials=self._shown.late_partials + done.late_partials,
        )

    def idle(self, lag: Lag) -> None:
        """The query looked for records and found none."""
        self._shown = replace(self._shown, lag=_total(lag), waiting=True)

    def refused(self, counts: Mapping[str, int]) -> None:
        """Dead letters outside the reports."""
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


def _bounded(batches: tuple[tuple[int, bytes], ...]) -> tuple[tuple[int, bytes], ...]:
    """The newest, as many as may be kept; always the last."""
    room, kept = BYTES_MAX, 0
    for _, text in reversed(batches[-BATCHES_MAX:]):
        room -= len(text)
        if room < 0 and kept:
            break
        kept += 1
    return batches[len(batches) - kept :]


def _total(lag: Lag) -> int | None:
    return sum(lag.values()) if lag else None


def _routing(done: BatchDone) -> dict[str, Any] | None:
    if done.routing is None:
        return None
    found = done.routing
    return {"sources": found.sources, "seconds": found.seconds, "hot_keys": found.hot_keys}


def _facts(stats: BatchStats | None, settings: Metrics) -> dict[str, Any]:
    if stats is None:
        return {"partitions": None, "hot_keys": [], "dead_letters": {}}
    keys = stats.hot_keys[: settings.hot_keys]
    if not settings.hot_key_names:
        keys = tuple(replace(key, name=None) for key in keys)
    return {
        "partitions": {
            "records": stats.records.tolist(),
            "under_key": stats.under_key.tolist(),
            "busy_seconds": stats.busy_seconds.round(6).tolist(),
            "keys": stats.keys.tolist(),
        },
        "max_over_mean": stats.max_over_mean,
        "under_key_max_over_mean": stats.under_key_max_over_mean,
        "imbalance": stats.imbalance,
        "replication": stats.replication,
        "hot_keys": [[key_text(key), key.records] for key in keys],
        "dead_letters": dict(stats.rejected),
    }
