"""The live page can be read: on every width, in light and dark, by a screen reader."""

from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser

from tests.support.displays.live_page import Seen, followed, heights_of, job, served, skewed
from unskew.jobs.observe.batches.batch_time import PARTS

pytestmark = pytest.mark.e2e


@pytest.mark.parametrize(
    "partitions", [1000, *(pytest.param(n, marks=pytest.mark.slow) for n in (2, 16))]
)
def test_it_fits_from_a_phone_to_a_wide_screen(running: Browser, partitions: int) -> None:
    settings = job(partitions=partitions, name="a" * 63)
    with served(followed(settings, range(3)), settings) as server:
        for width in (360, 800, 2000):
            seen = Seen(running, server.page_url, viewport={"width": width, "height": 800})
            seen.wait("title", "^Batch 2$")
            seen.page.locator("summary").click()
            assert not seen.scrolls_sideways(), width
            bars = seen.heights("routed")
            assert len(bars) >= min(partitions, 60)
            drawn = seen.page.evaluate("document.querySelector('#routed').scrollWidth")
            assert drawn <= seen.page.evaluate("document.querySelector('#routed').clientWidth")
            assert ("A bar is the fullest of" in seen.text("loads")) == (len(bars) < partitions)


def test_bars_of_many_partitions_show_the_fullest_of_each_few(running: Browser) -> None:
    settings = job(partitions=1000)
    with served(followed(settings, range(1)), settings) as server:
        seen = Seen(running, server.page_url, viewport={"width": 360, "height": 800})
        seen.wait("title", "^Batch 0$")
        bars = seen.heights("under")
        stats = skewed(0, partitions=1000).stats
        assert stats is not None
        each = -(-1000 // len(bars))
        while -(-1000 // each) > len(bars):
            each += 1
        padded = np.append(stats.under_key, np.zeros(each * len(bars) - 1000, np.int64))
        height = seen.page.eval_on_selector("#under", "box => box.clientHeight")
        loads = padded.reshape(-1, each).max(axis=1)
        assert bars == heights_of(loads, int(loads.max()), height)


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return sum(share * part for share, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark_are_readable(running: Browser, scheme: Any) -> None:
    settings = job()
    with served(followed(settings, range(2)), settings) as server:
        seen = Seen(running, server.page_url, color_scheme=scheme)
        seen.wait("title", "^Batch 1$")

        def colour(selector: str, of: str) -> float:
            style = f"at => getComputedStyle(at)['{of}']"
            return luminance(seen.page.eval_on_selector(selector, style))

        ground = colour("body", "backgroundColor")
        assert (ground > 0.5) == (scheme == "light")
        for selector, least in (("#verdict", 7), (".tiles dt", 4.5), ("#when", 4.5)):
            low, high = sorted((colour(selector, "color"), colour(".card", "backgroundColor")))
            assert (high + 0.05) / (low + 0.05) >= least, selector
        # Also the parts that this batch does not have.
        seen.page.eval_on_selector_all("#own-bar i", "all => all.forEach(a => a.style.width='9px')")
        drawn = [f"#own-bar .{name}" for name in PARTS]
        for selector in ("#routed i", *drawn):
            low, high = sorted(
                (colour(selector, "backgroundColor"), colour(".card", "backgroundColor"))
            )
            assert (high + 0.05) / (low + 0.05) >= 3, selector


def test_everything_that_is_drawn_has_a_name(running: Browser) -> None:
    settings = job()
    with served(followed(settings, range(2)), settings) as server:
        seen = Seen(running, server.page_url)
        seen.wait("title", "^Batch 1$")
        tree = seen.page.context.new_cdp_session(seen.page).send("Accessibility.getFullAXTree")
        named = {role: [] for role in ("image", "slider", "region", "button", "heading")}
        for node in tree["nodes"]:
            role = node.get("role", {}).get("value")
            if role in named and not node["ignored"]:
                named[role].append(node["name"]["value"])
        assert {role: len(names) for role, names in named.items()} == {
            "image": 3,
            "slider": 2,
            "region": 4,
            "button": 0,
            "heading": 5,
        }
        assert all(name for names in named.values() for name in names)
        assert seen.page.get_by_role("slider", name="Show batch").count() == 1
        label = seen.page.locator("#plot").get_attribute("aria-label") or ""
        stats = skewed(1).stats
        assert stats is not None
        own, under = stats.max_over_mean, stats.under_key_max_over_mean
        sign = "\N{MULTIPLICATION SIGN}"
        assert label.endswith(f"fullest {own:.2f} {sign} and {under:.2f} {sign} the mean")
