"""Time on the live page: where it went, what skew costs, what the words mean."""

import json
import time
from dataclasses import replace

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.support.displays.live_page import Seen, followed, job, served, skewed
from unskew.grouping.choice.records import BatchChoice, Expected
from unskew.jobs.observe.batches.rejected_samples import RejectedSample
from unskew.jobs.observe.batches.written import WrittenFiles

pytestmark = pytest.mark.e2e


def test_the_first_sentence_is_where_the_time_went(running: Browser) -> None:
    settings = job(grouping={"type": "key"})
    page = followed(settings, range(1), records=160_000)
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        (entry,) = json.loads(page.data())["batches"]
        parts = {
            name: f"{seconds:.1f}" if seconds >= 0.05 else f"{seconds:.2f}"
            for name, seconds in entry["parts"].items()
        }
        work = f"{parts['work']} (slowest partition {entry['slowest_busy_seconds']:.1f}; mean 1.0)"
        shown = ", ".join(
            f"{name} {work if name == 'work' else text}"
            for name, text in parts.items()
            if text != "0.00"
        )
        assert seen.text("verdict") == f"Batch {entry['seconds']:.1f} s: {shown}."
        lost = entry["seconds"] - entry["level_seconds"]
        assert seen.text("cost") == f"Skew costs {lost:.1f} s of the {entry['seconds']:.1f} s."


def test_lag_has_a_trend_and_arrivals_are_beside_the_throughput(running: Browser) -> None:
    settings = job()
    page, now = followed(settings), time.time()
    for number in range(5):
        batch = skewed(number, began=now + 10 * number)
        # 20,000 are read every 10 s, and 5,000 arrive.
        lag = {"lines": {"0": 100_000 - 15_000 * number}}
        batch.progress["sources"] = [{"endOffset": '{"lines": {"0": 0}}', "latestOffset": lag}]
        page.on_batch_done(batch)
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 4$")
        assert (seen.text("lag"), seen.text("trend")) == ("40K", "caught up in about 27 s")
        assert seen.text("arrivals") == "500/s arrive"
        assert seen.text("used").endswith("% of it used")


def test_every_term_is_explained_on_hover_and_on_focus(running: Browser) -> None:
    settings = job()
    page = followed(settings, range(1))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        tip = seen.page.locator("#tip")
        assert tip.is_hidden()
        seen.page.locator(".tiles dfn").nth(1).hover()
        assert tip.inner_text().startswith("Records in Kafka that were not read yet")
        seen.page.locator("#job").hover()
        assert tip.is_hidden()
        seen.page.locator("#part-work > dfn").focus()
        assert tip.inner_text().startswith(
            "From the first partition\N{RIGHT SINGLE QUOTATION MARK}s"
        )
        seen.page.keyboard.press("Escape")
        assert tip.is_hidden()
        # What is looked at stays where it is when the next batch comes.
        seen.page.locator("#imbalance dfn").focus()
        seen.page.keyboard.press("Escape")
        page.on_batch_done(skewed(1))
        seen.wait("title", "^Batch 1$")
        assert seen.page.evaluate("document.activeElement.dataset.term") == "imbalance"


def test_every_word_that_names_a_figure_is_a_term_and_every_term_is_on_the_page(
    running: Browser,
) -> None:
    settings, plain = job(grouping={"type": "auto"}), skewed(0)
    page = followed(settings)
    assert plain.stats is not None
    choice = BatchChoice("level", "local", "why", {"level": Expected(2.0, 0.1)}, 1.5, 70)
    counted = replace(plain.stats, results={"a": 1}, rejected={"not_utf8": 3})
    written = WrittenFiles(np.array([3, 1]), np.array([9_000, 1_000]), None)
    sample = RejectedSample("not_utf8", "lines", 2, 17, "9f86d081884c7d65")
    page.on_batch_done(replace(plain, choice=choice))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        named = terms_in(seen, "body")
        assert terms_in(seen, "#what") == {"grouping", "way", "operator", "partition"}
        assert terms_in(seen, "#part-work-more") == {"slowest partition", "mean"}
        page.on_batch_done(replace(skewed(1), stats=counted, written=written, samples=(sample,)))
        seen.wait("title", "^Batch 1$")
        assert terms_in(seen, "#lost") == {"reason"}
        assert seen.page.locator("#dead-letters, #results-part, #files-tile").count() == 3
        for selector in ("dt", "thead th", ".legend span", "h2:not(#title)", "#imbalance"):
            without = seen.page.locator(f"{selector}:visible:not(:has(dfn[data-term]))")
            assert without.all_inner_texts() == [], selector
        named |= terms_in(seen, "body")
        assert named == set(seen.page.evaluate("Object.keys(TERMS)"))
        assert seen.errors == []


def terms_in(seen: Seen, selector: str) -> set[str]:
    terms = seen.page.locator(f"{selector} dfn[data-term]")
    assert all(terms.evaluate_all("all => all.map(term => term.tabIndex === 0)"))
    return set(terms.evaluate_all("all => all.map(term => term.dataset.term)"))


def test_each_result_and_what_a_table_got_are_shown_where_there_are_any(running: Browser) -> None:
    settings, written = job(), WrittenFiles(np.array([3, 1]), np.array([9_000, 1_000]), None)
    page, plain = followed(settings), skewed(0)
    assert plain.stats is not None
    stats = replace(
        plain.stats,
        results={"by_user": 12_000, "by_page": 8_000},
        result_late={"by_user": 1_000, "by_page": 0},
        result_rejected={"by_user": 2},
        rejected={"by_user_null_key": 2, "not_decoded": 1},
    )
    page.on_batch_done(plain)
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        parts = [seen.page.locator(f"#{name}") for name in ("results-part", "files-tile")]
        assert not any(part.is_visible() for part in parts)
        page.on_batch_done(replace(skewed(1), stats=stats, written=written))
        expected = [["by_user", "11,000", "0", "3", "1,000"], ["by_page", "8,000", "0", "1", "0"]]
        seen.wait_for_rows("results", expected)
        assert all(part.is_visible() for part in parts)
        assert seen.page.locator("#watermark-tile").is_hidden()
        assert (seen.text("files"), seen.text("file-size")) == ("4", "2.5KB each in the mean")
        assert seen.errors == []


def test_dead_letters_have_samples_and_a_runbook(running: Browser) -> None:
    settings = job()
    page = followed(settings)
    sample = RejectedSample("not_utf8", "lines", 2, 17, "9f86d081884c7d65")
    page.on_batch_done(replace(skewed(0), samples=(sample,)))
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait_for_rows("samples", [["lines/2 at 17", "not_utf8", "9f86d081884c7d65"]])
        assert seen.text("value-head") == "Hash of the value"
        for link in seen.page.locator("a[href^=docs]").evaluate_all("all => all.map(a => a.href)"):
            answer = seen.page.request.get(link)
            assert (answer.status, answer.headers["content-type"]) == (
                200,
                "text/plain; charset=utf-8",
            )
            named = link.partition(":~:text=%23%20")[2]
            assert f"### {named}\n" in answer.text() if named else answer.text().startswith("# ")


def test_a_part_that_tenths_would_hide_has_one_digit_more(running: Browser) -> None:
    """A batch of seconds whose routing took 34 ms, and none that took nothing."""
    settings = job()
    page = followed(settings)
    batch = skewed(0, records=160_000)
    busy = np.full(16, 0.012)
    assert batch.routing is not None
    assert batch.stats is not None
    page.on_batch_done(
        replace(
            batch,
            stats=replace(batch.stats, busy_seconds=busy),
            routing=replace(batch.routing, seconds=0.034 * 0.5 / 0.27),
        )
    )
    with served(page, settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 0$")
        (entry,) = json.loads(page.data())["batches"]
        assert entry["seconds"] > 1
        assert entry["parts"]["route"] == pytest.approx(0.034, abs=1e-4)
        assert "route 0.03," in seen.text("verdict")
        assert "(slowest partition 0.01; mean 0.01)" in seen.text("verdict")
        assert "busy 12 ms;" in seen.text("readout")
        assert "0.00" not in seen.text("verdict")
