"""The live page's pictures in docs/images: `python -m docs.reference.screenshots`.

Runs the demo's word count under `level` on a real Kafka and a real Spark, in batches on a trigger,
and takes pictures of its page on a phone, a tablet and a desktop while it runs. Needs Chromium.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from threading import Thread
from typing import Any

from playwright.sync_api import Browser, sync_playwright

from unskew.config.models.job import Job
from unskew.config.models.window import IntervalTrigger
from unskew.config.types.units import Duration
from unskew.jobs.commands.run import quiet_spark
from unskew.jobs.demo import run as demo
from unskew.jobs.engine.service import run_in_session
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.signals import Stop
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.observe.board import make_board
from unskew.jobs.observe.follower import Follower
from unskew.jobs.observe.health import Health, compute_stall_seconds
from unskew.jobs.observe.page.page import LivePage
from unskew.jobs.observe.web.server import MetricsServer

IMAGES = Path(__file__).resolve().parent.parent / "images"
SIZES: Mapping[str, tuple[int, int]] = {
    "live-page-390.png": (390, 844),
    "live-page-820.png": (820, 1180),
    "live-page.png": (1440, 900),
}
"""A phone, a tablet and a desktop: width and height of the window."""
LINES = 160_000
BATCHES = 20
TRIGGER = "4 s"
_FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]


class StopsWithin(Follower):
    """Stops the job while the word still flares up, in the batch with a fullest partition."""

    def __init__(self, stop: Stop, take: Any) -> None:
        self._stop, self._take, self._seen = stop, take, 0

    def on_batch_done(self, done: BatchDone) -> None:
        self._seen += bool(done.stats)
        if self._seen == BATCHES * 2 // 3:
            # In a thread of its own: Playwright runs a loop, and the service goes on meanwhile.
            taking = Thread(target=self._take)
            taking.start()
            taking.join()
            self._stop.ask()


def make_pictured_job(broker: Broker, folder: Path) -> Job:
    """The demo's job, in more and smaller batches, one after the other on a trigger."""
    job = demo.make_job("level", broker, folder, LINES * demo.BATCHES // BATCHES)
    trigger = IntervalTrigger(type="interval", interval=Duration.parse(TRIGGER))
    return job.model_copy(update={"trigger": trigger, "partitions": demo.PARTITIONS})


def take_pictures(url: str, folder: Path) -> None:
    """One of each size, of the whole page."""
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=_FLAGS)
        try:
            for name, (width, height) in SIZES.items():
                _take_picture(browser, url, folder / name, {"width": width, "height": height})
        finally:
            browser.close()


def _take_picture(browser: Browser, url: str, file: Path, viewport: Any) -> None:
    context = browser.new_context(viewport=viewport, reduced_motion="reduce", color_scheme="light")
    page = context.new_page()
    page.goto(url)
    page.locator("#title").filter(has_text="Batch").wait_for()
    page.locator("#hot tbody tr").first.wait_for()
    page.screenshot(path=str(file), full_page=True)
    context.close()


def main(folder: Path = IMAGES) -> None:
    """Run the job, and write the pictures."""
    quiet_spark(debug=False)
    with tempfile.TemporaryDirectory(prefix="unskew-pictures-") as home, Broker() as broker:
        broker.create_topics(["lines"], partitions=4)
        demo.write(broker, LINES, Path(home))
        job = make_pictured_job(broker, Path(home))
        health = Health(compute_stall_seconds(job))
        board, page, stop = make_board(job, health), LivePage(job, health), Stop()
        with MetricsServer(job.metrics, board, health, page) as server:
            take = StopsWithin(stop, lambda: take_pictures(server.page_url, folder))
            run_in_session(job, board, health, page, take, stop=stop)
    sys.stdout.write(json.dumps({name: str(folder / name) for name in SIZES}, indent=2) + "\n")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
