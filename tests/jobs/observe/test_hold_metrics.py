"""After a failure the metrics are served for some time, and say what is wrong."""

import json
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

import pytest

from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.hold_metrics import hold_metrics_after_failure
from unskew.jobs.observe.terminal import Log
from unskew.jobs.observe.web.server import MetricsServer

ABORTED = "the batch cannot be routed"


def job_of(folder: Path, hold_seconds: str) -> Job:
    changes = {"checkpoint": str(folder), "metrics.hold_after_failure": hold_seconds}
    return load_job("word_count", dict(changes))


def damaged(job: Job) -> None:
    folder = Path(open_journal(job).location) / f"{7:012d}"
    folder.mkdir(parents=True)
    (folder / "source-00000.state").write_bytes(b"garbage")


@contextmanager
def failing(job: Job, stop: Stop, out: StringIO) -> Iterator[str]:
    """Serve the metrics of a job that fails where it is used; the address."""
    health = Health(300.0)
    board = Board(job.name, health)
    with MetricsServer(job.metrics, board, health) as server:
        log = Log(job.name, "json", out)
        with hold_metrics_after_failure(job, health, board, log, stop):
            yield server.url
            raise ExternalError(ABORTED)


def waited(job: Job, stop: Stop, out: StringIO, during: Callable[[str], None]) -> float:
    """How long the failure was held back, while a thread does something."""
    threads = []
    started = time.monotonic()
    with pytest.raises(ExternalError, match=ABORTED):  # noqa: PT012, SIM117 - it fails at its end
        with failing(job, stop, out) as url:
            threads.append(threading.Thread(target=during, args=(url,)))
            threads[0].start()
    threads[0].join()
    return time.monotonic() - started


def get(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:  # noqa: S310 - ours
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_page_says_what_failed_until_a_stop_is_asked_for(tmp_path: Path) -> None:
    job, stop, out, pages = job_of(tmp_path, "60 s"), Stop(), StringIO(), []
    damaged(job)

    def scrape(url: str) -> None:
        deadline = time.monotonic() + 10
        while 'state="failed"} 1.0' not in get(url)[1] and time.monotonic() < deadline:
            time.sleep(0.05)
        while "failing" not in out.getvalue() and time.monotonic() < deadline:
            time.sleep(0.05)
        pages.extend([get(url), get(url.replace("/metrics", "/healthz"))])
        stop.signal = 15

    assert waited(job, stop, out, scrape) < 20
    (_, metrics), probe = pages
    assert 'unskew_query_state{query="word_count",state="failed"} 1.0' in metrics
    assert 'unskew_journal_unreadable_files{query="word_count"} 1.0' in metrics
    assert probe == (503, "failed\n")
    event = json.loads(out.getvalue())
    assert (event["event"], event["metrics_stay_seconds"]) == ("failing", 60.0)


def test_it_stays_as_long_as_the_job_says(tmp_path: Path) -> None:
    assert 1.0 <= waited(job_of(tmp_path, "1 s"), Stop(), StringIO(), lambda _: None) < 10


def test_without_it_a_failure_is_raised_at_once(tmp_path: Path) -> None:
    out = StringIO()
    assert waited(job_of(tmp_path, "0 s"), Stop(), out, lambda _: None) < 1
    assert out.getvalue() == ""
