"""`unskew compare` as a person has it: its report in a real browser, and how long it takes."""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.displays.live_page import Seen, browser
from unskew.grouping.simulation.loads import WAYS
from unskew.jobs.__main__ import main

ASKED = ("--partitions", "16", "--cost", "50us", "--setup", "1ms")
SECONDS_MAX = 10.0


def write_keys(file: Path, records: int) -> Path:
    ranks = np.random.default_rng(1).zipf(1.4, records) % 50_000
    file.write_text("".join(f"user-{rank}\n" for rank in ranks.tolist()))
    return file


@pytest.mark.e2e
def test_the_report_is_whole_in_a_browser(tmp_path: Path) -> None:
    keys, report = write_keys(tmp_path / "keys.txt", 4000), tmp_path / "report.html"
    assert main(["compare", "--file", str(keys), *ASKED, "--html", str(report)]) == 0

    with browser() as running:
        seen = Seen(running, report.as_uri())
        pictures = seen.page.locator("svg")
        boxes = [pictures.nth(number).bounding_box() for number in range(pictures.count())]
        words = seen.page.locator("svg").first.text_content() or ""
        wide = seen.page.evaluate("document.documentElement.scrollWidth > window.innerWidth")

        seen.page.set_viewport_size({"width": 390, "height": 844})
        narrow = seen.page.evaluate("document.documentElement.scrollWidth")
        rows = seen.page.locator("tr")
        heights = [rows.nth(number).evaluate("row => row.clientHeight") for number in range(9)]
        text_height = seen.page.locator("svg text").first.evaluate(
            "text => text.getBoundingClientRect().height"
        )

    assert len(boxes) == 2
    assert all(box is not None and box["width"] > 300 and box["height"] > 100 for box in boxes)
    assert all(way in words for way in WAYS)
    assert not wide
    assert narrow == 390
    assert max(heights[1:]) < 40  # no name is broken
    assert text_height > 9
    assert seen.asked == [report.as_uri()]
    assert seen.errors == []


@pytest.mark.slow
def test_a_million_records_take_less_than_ten_seconds_with_warm_caches(tmp_path: Path) -> None:
    keys = write_keys(tmp_path / "keys.txt", 1_000_000)
    words = [sys.executable, "-m", "unskew", "compare", "--file", str(keys), *ASKED]
    words += ["--records", "1000000", "--json"]
    subprocess.run(words, capture_output=True, check=True)

    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)

    # Processor time: others may be at work, too.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < SECONDS_MAX
