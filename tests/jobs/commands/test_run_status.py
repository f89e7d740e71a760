import io
import json

import pytest

from tests.support.batches import done
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.terminal import Line, Log, format_line, summarize


def test_the_line_names_batch_rate_balance_slowest_and_lag() -> None:
    assert format_line(done(3)) == (
        "batch 3  took 1.5 s  under key 1.7 s  27 records/s  max/mean 1.50  slowest p0  lag 10"
    )


def test_without_reports_the_line_has_what_spark_knows() -> None:
    plain = BatchDone(done(3).progress, None)
    assert format_line(plain) == "batch 3  took 1.5 s  666 records/s  lag 10"


def test_json_logs_are_an_object_a_line() -> None:
    out = io.StringIO()
    log = Log("q", "json", out, lambda: 0.0)
    log.write_event("metrics", url="http://x")
    log.on_batch_done(done(3))
    log.on_state_changed("stopped")
    log.on_state_changed("failed")
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert lines[0] == {
        "time": "1970-01-01T00:00:00.000+00:00",
        "level": "info",
        "event": "metrics",
        "job": "q",
        "url": "http://x",
    }
    assert [(line["event"], line["level"]) for line in lines[1:]] == [
        ("batch", "info"),
        ("dead_letters", "warning"),
        ("late_partials", "warning"),
        ("stopped", "info"),
    ]
    assert {**summarize(done(3)), "event": "batch"}.items() <= lines[1].items()
    assert lines[2]["not_utf8"] == 2
    assert (lines[3]["partials"], lines[3]["records"]) == (2, 5)


def test_console_logs_are_text() -> None:
    out = io.StringIO()
    Log("q", "console", out, lambda: 0.0).write_event("metrics", url="http://x y")
    assert out.getvalue() == '1970-01-01T00:00:00.000+00:00 info    q: metrics url="http://x y"\n'


def test_the_live_line_is_rewritten_and_events_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    out, now = io.StringIO(), [0.0]
    line = Line("q", out, lambda: now[0])
    line.write_event("metrics", url="http://x")
    line.on_idle_poll({})
    line.on_batch_done(done(3))
    now[0] = 2.0
    line.time_passed()
    line.time_passed()
    line.on_state_changed("stopped")
    shown = out.getvalue()
    assert shown.count("\n") == 2
    pieces = shown.split("\r\x1b[2K")
    assert pieces[1] == "q: metrics http://x\n"
    assert pieces[2].startswith("q: starting Spark")
    assert pieces[3].startswith("q: waiting for records")
    assert [piece.count("batch 3") for piece in pieces[4:]] == [1, 1, 1]
    assert pieces[4].startswith("q: batch 3, 0 s ago  took 1.5 s")
    assert pieces[5].startswith("q: batch 3, 2 s ago  took 1.5 s")
    assert pieces[5].endswith("  2 dead letters  5 late records")
    assert pieces[6].startswith("q: stopped; last batch 3")
