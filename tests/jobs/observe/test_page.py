import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from typing import Any

import pytest

from tests.jobs.observe.test_server import at, get, serving
from tests.support.batches import done, progress
from tests.support.displays.live_page import followed, job, skewed
from unskew.config.models.metrics import BasicAuth, Metrics
from unskew.config.types.secrets import Secret
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.page.page import BATCHES_MAX, BYTES_MAX, DOCUMENT, HEADERS, LivePage
from unskew.jobs.observe.web.server import DOCS, MetricsServer

POLICY = dict(HEADERS)["Content-Security-Policy"]


def asked(page: LivePage, query: str = "") -> dict[str, Any]:
    data: dict[str, Any] = json.loads(page.data(query))
    return data


def numbers(data: dict[str, Any]) -> list[int]:
    return [batch["batch"] for batch in data["batches"]]


def test_a_batch_has_the_numbers_of_its_reports() -> None:
    page = LivePage(job(), Health(10.0), clock=lambda: 1000.0)
    page.on_batch_done(done(3))
    (entry,) = asked(page)["batches"]
    assert entry == {
        "batch": 3,
        "at": 1000.0,
        "began": 1767225600.0,
        "seconds": 1.5,
        "parts": {
            "waiting": 0.27,
            "read": 0.0,
            "route": 0.0625,
            "work": 0.5,
            "merge": 0.0,
            "commit": 0.03,
            "rest": 0.6375,
        },
        "under_key_seconds": 1.65625,
        "level_seconds": 1.375,
        "slowest_busy_seconds": 0.5,
        "mean_busy_seconds": 0.375,
        "source_records": 999,
        "records": 40,
        "records_per_second": 26.666667,
        "lag": 10,
        "routing": {"sources": 2, "seconds": 0.125, "hot_keys": 4},
        "choice": None,
        "results": None,
        "written": None,
        "partitions": {
            "records": [30, 10],
            "under_key": [35, 5],
            "busy_seconds": [0.5, 0.25],
            "keys": [3, 1],
        },
        "max_over_mean": 1.5,
        "under_key_max_over_mean": 1.75,
        "imbalance": 0.25,
        "replication": 1.25,
        "hot_keys": [["ffffffffffffffff", 20], ["0000000000000005", 10]],
        "watermark": None,
        "dead_letters": {"not_utf8": 2},
        "samples": [],
    }


def test_a_batch_has_its_watermark() -> None:
    page = LivePage(job(), Health(10.0), clock=lambda: 1000.0)
    for watermark in ("1970-01-01T00:00:00.000Z", "2026-01-01T00:00:05.000Z"):
        event_time = {"eventTime": {"watermark": watermark}}
        page.on_batch_done(replace(done(3), progress=progress(3, **event_time)))
    assert [batch["watermark"] for batch in asked(page)["batches"]] == [None, 1767225605.0]


def test_the_head_says_what_runs_and_how_it_is() -> None:
    health = Health(10.0)
    page = LivePage(job(partitions=2), health, clock=lambda: 1000.0)
    page.on_batch_done(done(0))
    page.on_batch_done(done(1))
    page.on_records_rejected({"null_key": 5})
    page.on_idle_poll({("lines", "0"): 7, ("lines", "1"): 1})
    health.reset_stall_timer()
    head = asked(page)
    run = head.pop("run")
    assert re.fullmatch("[0-9a-f]{16}", run)
    del head["batches"]
    assert head == {
        "job": "word_count",
        "grouping": "level",
        "operator": "word_count",
        "partitions": 2,
        "trigger_seconds": 10.0,
        "hot_key_names": False,
        "values_shown": False,
        "port_fixed": False,
        "started": 1000.0,
        "now": 1000.0,
        "state": "running",
        "lag": 8,
        "waiting": True,
        "dead_letters": 9,
        "late_partials": 4,
    }


def test_only_new_batches_are_sent_but_all_of_another_run() -> None:
    page = followed(job(), range(5))
    run = asked(page)["run"]
    assert numbers(asked(page, f"run={run}&after=2")) == [3, 4]
    assert numbers(asked(page, f"run={run}&after=4")) == []
    for query in (
        "run=other&after=3",
        "after=3",
        f"run={run}",
        f"run={run}&after=-1",
        f"run={run}&after=x",
        f"run={run}&after={'9' * 5000}",
        "%ff=%00&&==",
    ):
        assert numbers(asked(page, query)) == [0, 1, 2, 3, 4], query


def test_what_is_kept_is_bounded_by_number_and_bytes() -> None:
    few, many = followed(job(), range(1)), followed(job(partitions=2000), range(1))
    for number in range(1, 200):
        few.on_batch_done(done(number))
    large = skewed(1, partitions=2000)
    for number in range(1, 60):
        many.on_batch_done(replace(large, progress={**large.progress, "batchId": number}))
    assert numbers(asked(few)) == list(range(200 - BATCHES_MAX, 200))
    kept = numbers(asked(many))
    assert kept == list(range(60 - len(kept), 60))
    assert 10 < len(kept) < 60
    assert len(many.data()) < BYTES_MAX + 1000


def test_one_batch_that_is_too_large_is_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unskew.jobs.observe.page.page.BYTES_MAX", 10)
    assert numbers(asked(followed(job(), range(3)))) == [2]


def test_names_of_keys_are_shown_only_if_the_job_says_so() -> None:
    hashed, few = job(), job(**{"metrics.hot_keys": 1})
    for settings in (hashed, few):
        page = LivePage(settings, Health(10.0))
        page.on_batch_done(done(0, names=True))
        assert asked(page)["hot_key_names"] is False
        keys = asked(page)["batches"][0]["hot_keys"]
        assert all(re.fullmatch("[0-9a-f]{16}", name) for name, _ in keys)
        assert len(keys) == min(2, settings.metrics.hot_keys)
    named = LivePage(job(**{"metrics.hot_key_names": True}), Health(10.0))
    named.on_batch_done(done(0, names=True))
    assert [name for name, _ in asked(named)["batches"][0]["hot_keys"]] == ["x" * 80 + "...", "b"]


def test_without_reports_there_are_no_partitions() -> None:
    page = LivePage(job(grouping={"type": "none"}), Health(10.0))
    page.on_batch_done(BatchDone(progress(0, sources=[]), None))
    (entry,) = asked(page)["batches"]
    assert (entry["partitions"], entry["routing"], entry["lag"]) == (None, None, None)
    assert (entry["records"], entry["hot_keys"]) == (999, [])


def test_the_document_is_small_and_loads_nothing() -> None:
    assert len(DOCUMENT) < 50_000
    links = re.findall(
        rb"(?:https?:)?//[\w.]+", re.sub(rb"^\s*//.*$", b"", DOCUMENT, flags=re.MULTILINE)
    )
    assert set(links) == {b"http://www.w3.org"}  # the name of SVG
    targets = re.findall(rb"(?:src|href)=[\"']?([^\"' >]+)", DOCUMENT)[1:]
    pages = {f"docs/{name}".encode() for name in DOCS}
    assert {target.partition(b"#")[0] for target in targets} == {b"metrics", *pages}
    assert b"innerHTML" not in DOCUMENT
    assert re.search(rb"<[^>]+\s(style|on\w+)=", DOCUMENT) is None


def test_the_policy_allows_this_script_and_style_and_nothing_else() -> None:
    rules = dict(rule.split(" ", 1) for rule in POLICY.split("; "))
    for rule, tag in (("script-src", "script"), ("style-src", "style")):
        (text,) = re.findall(f"<{tag}>(.*?)</{tag}>".encode(), DOCUMENT, re.DOTALL)
        assert rules.pop(rule) == f"'sha256-{b64encode(sha256(text).digest()).decode()}'"
    assert rules == {
        "default-src": "'none'",
        "connect-src": "'self'",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
    }


def test_page_and_data_are_served_with_their_headers() -> None:
    settings = job()
    page = followed(settings, range(2))
    with MetricsServer(settings.metrics, Board("q", Health(1.0)), Health(1.0), page) as server:
        assert server.page_url == server.url.removesuffix("metrics")
        code, kind, text = get(server.page_url)
        assert (code, kind) == (200, "text/html; charset=utf-8")
        assert text.encode() == DOCUMENT
        code, kind, text = get(at(server, "/batches.json?after=0"))
        assert (code, kind) == (200, "application/json")
        assert numbers(json.loads(text)) == [0, 1]
        assert get(server.url)[0] == 200
        for path in ("/page.html", "/batches.jsonx", "/../jobs/observe/page/page.py"):
            assert get(at(server, path))[0] == 404, path


def test_the_page_asks_for_the_password_of_the_metrics() -> None:
    auth = BasicAuth(user="u", password=Secret("p"))
    settings = job()
    page = followed(settings, range(1))
    with MetricsServer(Metrics(basic_auth=auth), Board("q", Health(1)), Health(1), page) as server:
        for path in ("/", "/batches.json"):
            assert get(at(server, path))[0] == 401
            right = {"Authorization": "Basic " + b64encode(b"u:p").decode()}
            assert get(at(server, path), right)[0] == 200


def test_where_there_is_no_page_there_is_none() -> None:
    with serving(Metrics()) as server:
        assert get(server.page_url)[0] == 404
        assert get(at(server, "/batches.json"))[0] == 404
