"""Faults that may pass: the query starts again, with longer waits, and for a bounded time."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pyarrow.fs import AwsStandardS3RetryStrategy, FileSelector, S3FileSystem

from unskew.config.errors import ExternalError
from unskew.config.loader import load_job
from unskew.jobs.engine import retries
from unskew.jobs.engine.retries import run_with_retries
from unskew.jobs.engine.spark_errors import (
    ConflictError,
    PassingError,
    explain_spark_error,
    may_pass,
    translate_spark_errors,
)
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.follower import Follower

JOB = load_job("word_count", {"retry_for": "1 minute"})
CONFLICT = (
    "io.delta.exceptions.ConcurrentAppendException: [DELTA_CONCURRENT_APPEND] ConcurrentAppend"
    "Exception: Files were added to the root of the table by a concurrent update."
)


class Starts:
    """Starts of a query whose ends are known: an error, or none."""

    def __init__(self, *ends: Exception | None, progress: tuple[bool, ...] = ()) -> None:
        self._ends = list(ends)
        self._progress = list(progress) or [True] * len(ends)
        self.begun = 0
        self.made_progress = False

    def __call__(self) -> "Starts":
        self.begun += 1
        self.made_progress = self._progress.pop(0)
        return self

    def run(self) -> None:
        end = self._ends.pop(0)
        if end is not None:
            raise end


class Seen(Follower):
    """Keeps the states and waits that followers hear of."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def on_state_changed(self, state: str) -> None:
        self.events.append(state)

    def on_retry(self, reason: str, seconds: float) -> None:
        self.events.append(f"{reason} {seconds:g}")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Run such starts with short waits; what followers saw."""
    monkeypatch.setattr(retries, "WAIT_SECONDS_MIN", 0.01)
    monkeypatch.setattr(retries, "WAIT_SECONDS_MAX", 0.04)
    monkeypatch.setattr(retries, "_LOOK_SECONDS", 0.005)

    def run(starts: Starts, job: object = JOB, stop: Stop | None = None) -> list[str]:
        seen = Seen()
        try:
            run_with_retries(job, starts, (seen,), stop or Stop())  # type: ignore[arg-type]
        except ExternalError as error:
            seen.events.append(f"raised {error}")
        return seen.events

    return run


AWAY = PassingError("away")


def test_it_starts_again_until_the_fault_has_passed(run: Callable[..., list[str]]) -> None:
    starts = Starts(AWAY, AWAY, AWAY, AWAY, None, progress=(True, False, False, False, True))
    again = ["starting"]
    assert run(starts) == [
        *("away 0.01", *again),
        *("away 0.02", *again),
        *("away 0.04", *again),
        *("away 0.04", *again),
    ]
    assert starts.begun == 5


def test_progress_makes_the_waits_short_again(run: Callable[..., list[str]]) -> None:
    events = run(Starts(AWAY, AWAY, AWAY, None, progress=(True, False, True, True)))
    assert events[::2] == ["away 0.01", "away 0.02", "away 0.01"]


def test_a_query_that_never_ran_is_not_started_again(run: Callable[..., list[str]]) -> None:
    starts = Starts(AWAY, progress=(False,))
    assert run(starts) == ["failed", "raised away"]


def test_a_conflict_of_the_first_batch_is_waited_out(run: Callable[..., list[str]]) -> None:
    """Also of a start that made no progress yet, as long as `retry_for` says in all."""
    conflict = ConflictError("conflict")
    again = ["starting"]
    ends = (conflict, conflict, None)
    assert run(Starts(*ends, progress=(False, False, True))) == [
        *("conflict 0.01", *again),
        *("conflict 0.02", *again),
    ]
    short = load_job("word_count", {"retry_for": "20 ms"})
    events = run(Starts(*[conflict] * 9, progress=(False,) * 9), short)
    assert events[-2:] == ["failed", "raised conflict"]
    assert len(events) <= 2 * 3 + 2
    off = load_job("word_count", {"retry_for": "off"})
    assert run(Starts(conflict, progress=(False,)), off) == ["failed", "raised conflict"]


def test_other_faults_end_it_at_once(run: Callable[..., list[str]]) -> None:
    assert run(Starts(ExternalError("wrong"))) == ["raised wrong"]


def test_it_ends_when_the_time_is_over_and_at_once_when_switched_off(
    run: Callable[..., list[str]],
) -> None:
    short = load_job("word_count", {"retry_for": "1 ms"})
    assert run(Starts(AWAY), short) == ["failed", "raised away"]
    off = load_job("word_count", {"retry_for": "off"})
    assert run(Starts(AWAY), off) == ["failed", "raised away"]


def test_a_stop_ends_the_wait(run: Callable[..., list[str]]) -> None:
    stop = Stop()
    starts = Starts(AWAY)

    class Stopping(Seen):
        def time_passed(self) -> None:
            stop.signal = 15

    seen = Stopping()
    run_with_retries(JOB, starts, (seen,), stop)
    assert seen.events == ["away 0.01", "starting", "stopped"]


class Store(BaseHTTPRequestHandler):
    """An object store that answers each request with an error of S3."""

    def do_GET(self) -> None:
        status, code = self.server.answer  # type: ignore[attr-defined]
        text = f"<Error><Code>{code}</Code><Message>said by the store</Message></Error>".encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def store(status: int, code: str) -> Iterator[S3FileSystem]:
    """A client of such a store."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Store) as server:
        server.answer = (status, code)  # type: ignore[attr-defined]
        threading.Thread(target=server.serve_forever).start()
        try:
            yield S3FileSystem(
                endpoint_override=f"http://127.0.0.1:{server.server_port}",
                anonymous=True,
                retry_strategy=AwsStandardS3RetryStrategy(max_attempts=1),
            )
        finally:
            server.shutdown()


@pytest.mark.parametrize(
    ("status", "code", "raised"),
    [
        (503, "SlowDown", PassingError),
        (500, "InternalError", PassingError),
        (503, "SomethingElse", PassingError),
        (403, "AccessDenied", OSError),
        (404, "NoSuchBucket", OSError),
    ],
)
def test_what_an_object_store_answers_to_the_journal_may_pass(
    status: int, code: str, raised: type[Exception]
) -> None:
    with (
        store(status, code) as system,
        pytest.raises(raised, match="said by the store"),
        translate_spark_errors(JOB),
    ):
        system.get_file_info(FileSelector("bucket/unskew"))


def test_an_object_store_that_is_away_may_come_back() -> None:
    with store(200, "") as system:
        pass
    with pytest.raises(PassingError, match="NETWORK_CONNECTION"), translate_spark_errors(JOB):
        system.get_file_info(FileSelector("bucket/unskew"))


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("org.apache.kafka.common.errors.TimeoutException: Timed out waiting for a node", True),
        ("psycopg.OperationalError: connection failed: Connection refused", True),
        ("psycopg.errors.AdminShutdown: terminating connection", True),
        ("psycopg.OperationalError: connection failed: password authentication failed", False),
        ("java.net.ConnectException: Connection refused", True),
        ("software.amazon.awssdk.services.s3.model.S3Exception: (Status Code: 503)", True),
        ("software.amazon.awssdk.services.s3.model.S3Exception: (Status Code: 403)", False),
        ("OSError: google::cloud::Status(UNAVAILABLE: Retry policy exhausted)", True),
        ("OSError: google::cloud::Status(PERMISSION_DENIED: no)", False),
        ("OSError: GetProperties failed. Azure Error: [ServerBusy] 503 The server is busy.", True),
        (
            "OSError: When listing: AWS Error ACCESS_DENIED during ListObjectsV2 operation: no",
            False,
        ),
        ("org.apache.kafka.common.errors.SaslAuthenticationException: no", False),
        (CONFLICT, True),
        (
            (
                "py4j.protocol.Py4JJavaError: An error occurred while calling o9.sql.\n:"
                " io.delta.exceptions.ConcurrentDeleteDeleteException: [DELTA_CONCURRENT]"
            ),
            True,
        ),
        ("io.delta.exceptions.MetadataChangedException: [DELTA_METADATA_CHANGED] The", True),
        ("io.delta.exceptions.ConcurrentTransactionException: This error occurs when", False),
        ("java.io.IOException: No space left on device", False),
        ("ValueError: not so", False),
    ],
)
def test_faults_of_other_services_may_pass(text: str, passes: bool) -> None:
    assert may_pass(RuntimeError(text)) is passes


def test_a_conflict_of_commits_to_a_delta_table_is_one_line() -> None:
    assert explain_spark_error(JOB, RuntimeError(CONFLICT)) == (
        "word_count: sinks: another writer, such as OPTIMIZE, changed the Delta table at the same"
        " moment: ConcurrentAppendException: ConcurrentAppendException: Files were added to the"
        " root of the table by a concurrent update"
    )
