"""What the live page draws of time: parts of batches, the trigger, lag, all on one scale."""

import json
import re
import time
from dataclasses import replace
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.displays.live_page import Seen, followed, job, served, skewed
from unskew.jobs.observe.batches.batch import BatchDone

pytestmark = pytest.mark.e2e

TRIGGER = 2.5
BEGAN = (0.0, 5.0, 20.0)
"""Seconds after the first batch."""
LAGS = (90_000, 30_000, 60_000)
Box = tuple[float, float, float, float]
"""Left, bottom, right and top."""


def lagging(number: int, began: float, lag: int) -> BatchDone:
    batch = skewed(number, began=began)
    newest = {"lines": {"0": lag}}
    batch.progress["sources"] = [{"endOffset": '{"lines": {"0": 0}}', "latestOffset": newest}]
    return batch


def attributes(seen: Seen, selector: str, name: str) -> list[str]:
    texts: list[str] = seen.page.eval_on_selector_all(
        selector, f"all => all.map(each => each.getAttribute('{name}') || '')"
    )
    return texts


def boxes(path: str) -> list[Box]:
    shapes = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)V([\d.]+)H\1Z", path)
    assert "".join(f"M{a} {b}H{c}V{d}H{a}Z" for a, b, c, d in shapes) == path
    return [tuple(map(float, each)) for each in shapes]  # type: ignore[misc]


def size(seen: Seen, selector: str) -> tuple[float, float]:
    width, height = seen.page.eval_on_selector(selector, "at => [at.clientWidth, at.clientHeight]")
    return width, height


def test_batches_stand_at_their_time_stacked_by_part_below_the_triggers_line(
    running: Browser,
) -> None:
    settings = job(trigger={"type": "interval", "interval": f"{int(TRIGGER * 1000)} ms"})
    page, now = followed(settings), time.time() - 60
    for number, (after, lag) in enumerate(zip(BEGAN, LAGS, strict=True)):
        page.on_batch_done(lagging(number, now + after, lag))
    entries: list[dict[str, Any]] = json.loads(page.data())["batches"]
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 2$")
        names = [each.split()[1] for each in attributes(seen, "#timeline .part", "class")]
        parts = dict(zip(names, attributes(seen, "#timeline .part", "d"), strict=True))
        (line,) = attributes(seen, "#timeline .trigger", "d")
        (points,) = attributes(seen, "#lag-line polyline", "points")
        width, height = size(seen, "#timeline")
        lag_height = size(seen, "#lag-line")[1]
    of_line = re.fullmatch(r"M0 ([\d.]+)H([\d.]+)", line)
    assert of_line is not None
    assert float(of_line[2]) == width
    pixels_a_second = (height - float(of_line[1])) / TRIGGER

    assert list(parts) == ["waiting", "read", "route", "work", "merge", "commit", "rest"]
    drawn = {name: boxes(path) for name, path in parts.items()}
    lefts = [box[0] for box in drawn["work"]]
    pixels_of_clock = (lefts[2] - lefts[0]) / BEGAN[2]
    assert lefts[1] - lefts[0] == pytest.approx(BEGAN[1] * pixels_of_clock, abs=0.2)
    for b, entry in enumerate(entries):
        top = height
        for name, seconds in entry["parts"].items():
            if not seconds:
                continue
            left, bottom, right, upper = drawn[name][b]
            assert (left, bottom) == (lefts[b], pytest.approx(top, abs=0.1))
            assert bottom - upper == pytest.approx(seconds * pixels_a_second, abs=0.2), name
            assert right - left == pytest.approx(entry["seconds"] * pixels_of_clock - 0.5, abs=0.2)
            top = upper
        assert height - top == pytest.approx(entry["seconds"] * pixels_a_second, abs=0.5)

    at = [tuple(map(float, point.split(","))) for point in points.split()]
    assert [x for x, _ in at] == pytest.approx(lefts, abs=0.1)
    scale = (lag_height - 3) / max(LAGS)
    assert [lag_height - y for _, y in at] == pytest.approx([lag * scale for lag in LAGS], abs=0.1)


def test_the_batch_that_is_shown_is_marked_and_its_parts_stay_to_be_seen(running: Browser) -> None:
    settings = job()
    page, now = followed(settings), time.time()
    page.on_batch_done(skewed(0, began=now))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        assert attributes(seen, "#timeline .arrow", "d") == [""]
        assert seen.page.locator("#timeline .on").count() == 1
        for number in range(1, 40):
            page.on_batch_done(skewed(number, began=now + 10 * number))
        seen.wait("title", "^Batch 39$")
        (arrow,) = attributes(seen, "#timeline .arrow", "d")
        points = [float(number) for number in re.findall(r"[\d.]+", arrow)]
        newest = boxes(attributes(seen, "#timeline .work", "d")[0])[-1]
        assert points[3] == pytest.approx((newest[0] + newest[2]) / 2, abs=0.6)
        assert seen.page.locator("#timeline .on").count() == 0


def test_the_parts_of_a_batch_and_the_same_batch_under_key_are_on_one_scale(
    running: Browser,
) -> None:
    settings = job()
    page = followed(settings, range(1), records=160_000)
    (entry,) = json.loads(page.data())["batches"]
    assert entry["under_key_seconds"] > entry["seconds"]
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        whole = size(seen, "#bars")[0]
        widths = dict(
            zip(
                [each.split()[1] for each in attributes(seen, "#own-bar i", "class")],
                seen.page.eval_on_selector_all(
                    "#own-bar i", "all => all.map(each => each.getBoundingClientRect().width)"
                ),
                strict=True,
            )
        )
        assert size(seen, "#under-bar")[0] == whole
        for name, seconds in entry["parts"].items():
            share = seconds / entry["under_key_seconds"]
            # A part has a line of one pixel on its right.
            assert widths[name] == pytest.approx(whole * share, abs=1.5), name
        # Under key itself, and of what nobody can tell, there is nothing to compare with.
        page.on_batch_done(replace(skewed(1), stats=None))
        seen.wait("title", "^Batch 1$")
        assert seen.page.locator("#under-bar").is_hidden()


@pytest.mark.parametrize(
    ("lags", "trend"),
    [((10_000, 20_000, 30_000), "grows by 1K/s"), ((500_000, 499_999, 500_000), "steady")],
)
def test_lag_that_grows_or_stays_is_said(
    running: Browser, lags: tuple[int, ...], trend: str
) -> None:
    settings = job()
    page, now = followed(settings), time.time() - 60
    for number, lag in enumerate(lags):
        page.on_batch_done(lagging(number, now + 10 * number, lag))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 2$")
        assert seen.text("trend") == trend


@pytest.mark.parametrize(("state", "runbook"), [("failed", "Down"), ("stalled", "Stalled")])
def test_a_query_in_trouble_names_its_runbook(running: Browser, state: str, runbook: str) -> None:
    settings = job()
    page, now = followed(settings), time.time() - 60
    for number in range(3):
        page.on_batch_done(lagging(number, now + 10 * number, 90_000 - 10_000 * number))
    page._health.reset_stall_timer()
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("trend", "^caught up in about ")
        if state == "failed":
            page._health.on_state_changed("failed")
        else:
            page._health._limit = 0.0
        seen.wait("state", state)
        # Nothing is caught up any more.
        seen.wait("trend", "^records not read yet$")
        link = seen.page.locator("#runbook")
        assert link.inner_text() == "What to do"
        href = link.get_attribute("href") or ""
        assert href == f"docs/operating.md#:~:text=%23%20UnskewQuery{runbook}"
        answer = seen.page.request.get(server.page_url + href)
        assert f"### UnskewQuery{runbook}\n" in answer.text()
