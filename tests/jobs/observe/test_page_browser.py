"""The live page as a person has it: a real server, a real browser."""

import re
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.support.batches import done, progress
from tests.support.displays.live_page import Seen, followed, heights_of, job, served, skewed
from unskew.config.models.metrics import BasicAuth
from unskew.config.types.secrets import Secret
from unskew.jobs.local.child_processes import find_free_ports
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.page.page import LivePage

pytestmark = pytest.mark.e2e


def batches(seen: Seen) -> list[float]:
    """How high the batches are drawn."""
    heights: list[float] = seen.page.eval_on_selector_all(
        "#timeline .batch", "shapes => shapes.map(shape => shape.getBBox().height)"
    )
    return heights


def test_bars_are_the_loads_of_the_batch_and_move_with_the_next(running: Browser) -> None:
    settings = job()
    page = followed(settings, range(3))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 2$")
        before = seen.heights("routed")
        page.on_batch_done(skewed(3))
        seen.wait("title", "^Batch 3$")
        stats = skewed(3).stats
        assert stats is not None
        height = seen.page.eval_on_selector("#routed", "box => box.clientHeight")
        top = int(stats.under_key.max())
        assert seen.heights("routed") == heights_of(stats.records, top, height)
        assert seen.heights("under") == heights_of(stats.under_key, top, height)
        assert seen.heights("routed") != before
        assert seen.text("max") == "1.00 \N{MULTIPLICATION SIGN}"
        ratio = f"{stats.under_key_max_over_mean:.2f} \N{MULTIPLICATION SIGN}"
        assert seen.text("under-by") == f"under key {ratio}"
        seen.page.locator("summary").click()
        seen.wait_for_rows(
            "table",
            [[str(p), f"{stats.records[p]:,}", f"{stats.under_key[p]:,}"] for p in range(16)],
        )
        # The grouping treats four keys as hot; all others are one row.
        head = stats.hot_keys[:4]
        rows = [[f"{key.hash:016x}", f"{key.records:,}"] for key in head]
        others = round(stats.numbers["keys"].sum() / stats.replication) - 4
        tail = [f"all others, about {others:,} keys", f"{20_000 - sum(k.records for k in head):,}"]
        seen.wait_for_rows("hot", [*rows, tail])
        assert len(batches(seen)) == 4
        assert all(address.startswith(server.page_url) for address in seen.asked)
        assert seen.errors == []


def test_bars_move_smoothly_unless_that_is_not_wanted(running: Browser) -> None:
    settings = job()
    with served(followed(settings, range(1)), settings) as server:
        for wanted, seconds in (("no-preference", "0.45s"), ("reduce", "0s")):
            seen = Seen(running, server.page_url, reduced_motion=wanted)
            seen.wait("title", "^Batch 0$")
            moves = "at => getComputedStyle(at).transitionDuration"
            assert seen.page.eval_on_selector("#routed i", moves) == seconds


@pytest.mark.parametrize(
    ("ahead_seconds", "text"),
    [(-90, r"1 min 3\d s behind"), (7200, "(2 h 0|1 h 59) min ahead")],
)
def test_the_watermark_is_shown_with_how_far_it_is_from_the_batch(
    running: Browser, ahead_seconds: float, text: str
) -> None:
    settings = job()
    page = followed(settings, range(0))
    batch = skewed(0)
    at = datetime.fromisoformat(batch.progress["timestamp"]) + timedelta(seconds=ahead_seconds)
    watermark = at.strftime("%Y-%m-%dT%H:%M:%S.000Z")
    page.on_batch_done(
        replace(batch, progress={**batch.progress, "eventTime": {"watermark": watermark}})
    )
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("watermark", f"^{text}$")
        assert seen.text("watermark-at") == watermark.replace(".000Z", "Z")


def test_one_long_batch_does_not_flatten_the_timeline(running: Browser) -> None:
    settings = job(trigger={"type": "interval", "interval": "1 minute"})
    page = followed(settings)
    for number, taken in enumerate((60_000, 1000, 1000, 500)):
        batch = skewed(number)
        batch.progress["durationMs"]["triggerExecution"] = taken
        page.on_batch_done(batch)
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 3$")
        full, *others = batches(seen)
        assert others == pytest.approx([full / 3, full / 3, full / 6], abs=1)
        assert seen.text("span").endswith(
            "up to 60.0 s. The trigger, 60.0 s, is far above. Bars with a stroke are cut at 3.0 s."
        )


def _silent_for(seen: Seen) -> int:
    """The seconds that the page says it has heard nothing."""
    silent = re.fullmatch(r"Silent for (?:(\d+) min )?(\d+) s\.", seen.text("age"))
    assert silent is not None
    return 60 * int(silent[1] or 0) + int(silent[2])


@pytest.mark.slow
def test_a_silent_job_is_shown_with_its_age_and_a_new_start_is_recognised(running: Browser) -> None:
    (port,) = find_free_ports(1)
    settings = job(**{"metrics.port": port})
    with served(followed(settings, range(5)), settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("state", "running")
        assert seen.page.locator("#note").is_hidden()
    seen.wait("why", r"The job does not answer\. Shown is batch 4 of \d\d:\d\d:\d\d\.")
    first = _silent_for(seen)
    # Not until one value: a page that is held up may step over it.
    deadline = time.monotonic() + 20
    while _silent_for(seen) < first + 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert seen.text("state") == "no answer"
    assert seen.text("title") == "Batch 4"
    assert "another port" not in seen.text("why")
    again = job(**{"metrics.port": port}, grouping={"type": "key"})
    with served(followed(again, range(5, 7)), again):
        seen.wait("why", r"The job was restarted at \d\d:\d\d:\d\d\.")
        assert seen.text("state") == "running"
        assert seen.text("title") == "Batch 6"
        assert seen.text("cost").startswith("Skew costs ")
        assert len(batches(seen)) == 7
        edges = seen.page.eval_on_selector_all(
            "#timeline .batch", "bars => bars.map(bar => bar.classList.contains('new'))"
        )
        assert edges == [False] * 5 + [True, False]
        seen.page.locator("summary").click()
        seen.page.locator("#table tbody tr").nth(15).wait_for()
        rows = seen.rows("table", 3)
        assert [row[1] for row in rows] == [row[2] for row in rows]
        # What was before the new start is shown as it was.
        seen.page.locator("#pick").fill("0")
        assert seen.text("title") == "Batch 0"
        assert seen.text("routed-by").startswith("as routed by level 1.00")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ("failed", "The query has failed; its log says why. Shown is batch 0"),
        pytest.param("stopping", "The query is stopping. Shown is batch 0", marks=pytest.mark.slow),
    ],
)
def test_what_is_wrong_with_the_query_is_shown(running: Browser, state: str, expected: str) -> None:
    settings = job()
    health = Health(10.0)
    page = LivePage(settings, health)
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("why", "The job starts; no batch is done yet")
        assert seen.page.locator("main").is_hidden()
        page.on_batch_done(skewed(0))
        health.reset_stall_timer()
        seen.wait("state", "running")
        assert seen.page.locator("#note").is_hidden()
        health.on_state_changed(state)
        seen.wait("state", state)
        assert seen.text("why").startswith(expected)


def test_all_works_from_the_keyboard(running: Browser) -> None:
    settings = job()
    with served(followed(settings, range(9)), settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 8$")

        def press(*keys: str) -> None:
            for key in keys:
                seen.page.keyboard.press(key)

        def focused() -> str:
            name: str = seen.page.evaluate("document.activeElement.id")
            return name

        def tab_to(selector: str) -> None:
            # Terms come between.
            while not seen.page.evaluate(f"document.activeElement.matches('{selector}')"):
                press("Tab")

        tab_to("#plot")
        press("Home", "ArrowRight", "ArrowRight", "ArrowLeft")
        assert seen.text("readout").startswith("Partition 1: ")
        plot = seen.page.locator("#plot")
        assert plot.get_attribute("aria-valuenow") == "1"
        assert plot.get_attribute("aria-valuetext") == seen.text("readout")
        marked = seen.page.eval_on_selector_all(
            ".bars i", "all => all.map((bar, at) => [at, bar.className]).filter(pair => pair[1])"
        )
        assert marked[:2] == [[1, "on"], [17, "on"]]
        press("End")
        assert seen.text("readout").startswith("Partition 15: ")
        tab_to("summary")
        press("Enter")
        seen.page.locator("#table tbody tr").nth(15).wait_for()
        assert seen.page.locator("#table tbody tr").count() == 16
        tab_to("#pick")
        press("ArrowLeft", "ArrowLeft")
        assert seen.text("title") == "Batch 6"
        assert seen.text("picked").startswith("6: ")
        press("Shift+Tab")
        assert focused() == "live"
        press("Enter")
        assert seen.text("title") == "Batch 8"
        assert seen.page.locator("#live").is_hidden()
        assert seen.errors == []


def test_without_routing_it_says_so(running: Browser) -> None:
    settings = job(grouping={"type": "none"})
    page = followed(settings)
    page.on_batch_done(BatchDone(progress(0), None))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("no-loads", "^Grouping none: nothing is routed")
        assert seen.page.locator("#loads").is_hidden()
        assert seen.page.locator("#cost").is_hidden()
        assert seen.text("verdict").startswith("Batch 1.5 s: waiting 0.3, ")
        assert seen.text("max") == "\N{EN DASH}"
        assert seen.errors == []


def test_a_key_is_text_whatever_it_says(running: Browser) -> None:
    settings = job(**{"metrics.hot_key_names": True})
    page = followed(settings)
    name = "<img src=/x onerror=alert(1)><script>alert(1)</script>"
    hostile = skewed(0)
    assert hostile.stats is not None
    for key in hostile.stats.hot_keys:
        object.__setattr__(key, "name", name)
    page.on_batch_done(hostile)
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        assert seen.page.locator("#hot tbody th").first.inner_text() == name
        assert seen.page.locator("#hot img").count() == 0
        assert seen.errors == []
        # And were it markup after all, the policy would not run it.
        dialogs: list[Any] = []
        seen.page.on("dialog", lambda dialog: (dialogs.append(dialog), dialog.dismiss()))
        markup = "<img src=x onerror=alert(1)>"
        seen.page.evaluate("text => document.body.insertAdjacentHTML('beforeend', text)", markup)
        seen.page.wait_for_timeout(300)
        assert any("Content Security Policy" in error for error in seen.errors)
        assert dialogs == []


def test_the_password_is_used_for_the_data_too(running: Browser) -> None:
    auth = BasicAuth(user="u", password=Secret("p"))
    plain = job()
    metrics = plain.metrics.model_copy(update={"basic_auth": auth})
    settings = plain.model_copy(update={"metrics": metrics})
    with served(followed(settings, range(2)), settings) as server:
        credentials = {"username": "u", "password": "p"}
        seen = Seen(running, server.page_url, http_credentials=credentials)
        seen.wait("title", "^Batch 1$")


@pytest.mark.slow
def test_an_open_page_costs_the_driver_under_one_per_cent(running: Browser) -> None:
    settings = job(partitions=1000)
    page = followed(settings, range(2))
    coming = [skewed(number, partitions=1000) for number in range(2, 10)]
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 1$")
        started, worked = time.monotonic(), time.process_time()
        for batch in coming:
            page.on_batch_done(batch)
            time.sleep(1.0)
        share = (time.process_time() - worked) / (time.monotonic() - started)
        print(f"{share:.2%} of a core")
        assert share < 0.01
        seen.wait("title", "^Batch 9$")


def test_a_job_without_records_says_what_it_waits_for(running: Browser) -> None:
    settings = job()
    page = followed(settings)
    with served(page, settings) as server:
        page._health.reset_stall_timer()
        seen = Seen(running, server.page_url)
        seen.wait("why", "The query waits for its first records")
        page.on_batch_done(done(0))
        page.on_idle_poll({})
        seen.wait("when", "ago, no records since")
