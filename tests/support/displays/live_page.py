"""A live page to look at: real batches of skewed keys, a real server, a real browser."""

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.support.batches import progress
from tests.support.running.programs import find_program
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.grouping.registry import create
from unskew.grouping.spark.report import LATENCY_BOUNDS_SECONDS, compute_loads_under_key
from unskew.jobs.observe.batches.batch import BatchDone, Routing
from unskew.jobs.observe.batches.batch_stats import BatchStats, HotKey
from unskew.jobs.observe.batches.stages import BatchStages, StageTime
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.page.page import LivePage
from unskew.jobs.observe.web.server import MetricsServer

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def job(**changes: Any) -> Job:
    """A word count under `level`, with changes by path."""
    return load_job("word_count", {"partitions": 16, **changes})


def heights_of(loads: Any, top: int, height: float) -> list[float]:
    """How high bars of these loads are where `top` fills the height, in pixels."""
    return [pytest.approx(height * load / top, abs=1.0) for load in loads.tolist()]


def skewed(
    number: int,
    grouping: str = "level",
    partitions: int = 16,
    records: int = 20_000,
    z: float = 1.2,
    began: float | None = None,
) -> BatchDone:
    """A batch of Zipf keys as this grouping, asked itself, would have spread it."""
    generator = np.random.default_rng(number)
    share = np.arange(1, 2001) ** -z
    keys = generator.choice(2000, records, p=share / share.sum()).astype(np.uint64)
    routed = create(grouping, partitions=partitions, seed=0).route(keys)
    hashes, counts = np.unique(keys, return_counts=True)
    homes = compute_loads_under_key(hashes, counts, np.empty(0), partitions, 0)
    under_key = np.zeros(partitions, np.int64)
    under_key[homes.partitions] = homes.records
    pairs = np.unique(np.stack([keys, routed.astype(np.uint64)]), axis=1)
    load = np.bincount(routed, minlength=partitions)
    stats = BatchStats(
        number,
        records=load,
        busy_seconds=load * 1e-4,
        numbers={
            "keys": np.bincount(pairs[1].astype(np.int64), minlength=partitions),
            "state_bytes": load,
            "latency_seconds": np.zeros(partitions),
        },
        latency_counts=np.zeros((partitions, len(LATENCY_BOUNDS_SECONDS) + 1), np.int64),
        under_key=under_key,
        under_key_seconds=under_key * 1e-4,
        replication=pairs.shape[1] / hashes.size,
        rejected={"not_utf8": 3} if number % 10 == 7 else {},
        hot_keys=tuple(
            HotKey(int(hashes[at]) * 0x9E3779B97F4A7C15 % 2**64, f"w{hashes[at]}", int(counts[at]))
            for at in np.argsort(-counts, kind="stable")[:10]
        ),
    )
    return _make_batch(stats, partitions, time.time() if began is None else began, generator)


def _make_batch(
    stats: BatchStats, partitions: int, began: float, generator: np.random.Generator
) -> BatchDone:
    """The finished batch of these figures, with the times of its stages."""
    stages = _make_stages(began, float(stats.busy_seconds.max()), float(stats.busy_seconds.sum()))
    ended = stages[-1].ended + 0.06 + 0.04 * generator.random()
    at = datetime.fromtimestamp(began, UTC).isoformat(timespec="milliseconds")
    return BatchDone(
        progress(
            stats.batch,
            timestamp=at.replace("+00:00", "Z"),
            numInputRows=int(stats.records.sum()),
            durationMs={"triggerExecution": int((ended - began) * 1000), "addBatch": 1},
        ),
        stats,
        Routing(2, 0.0213, 4, {}),
        stages=BatchStages(stages, partitions, shuffled=True, merges=True),
    )


def _make_stages(began: float, slowest: float, busy: float) -> tuple[StageTime, ...]:
    """Reading, the work and the merge, with gaps between them."""
    read, work, merge = began + 0.08, began + 0.36, began + 0.42 + slowest
    return (
        StageTime(read, read + 0.27, 0.5, reads_shuffle=False, writes=False),
        StageTime(work, work + slowest + 0.05, busy, reads_shuffle=True, writes=False),
        StageTime(merge, merge + 0.12, 0.2, reads_shuffle=True, writes=False),
    )


@contextmanager
def served(followed: LivePage, settings: Job) -> Iterator[MetricsServer]:
    """Serve the page of a job at its metrics port."""
    health = followed._health
    with MetricsServer(settings.metrics, Board(settings.name, health), health, followed) as server:
        yield server


def followed(settings: Job, batches: range = range(0), **kind: Any) -> LivePage:
    """A page that has seen these batches of a running query."""
    health = Health(1e6)
    page = LivePage(settings, health)
    for number in batches:
        page.on_batch_done(skewed(number, settings.grouping.type, settings.partitions, **kind))
    if batches:
        health.reset_stall_timer()
    return page


@contextmanager
def browser() -> Iterator[Browser]:
    """Run a headless Chromium."""
    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=str(find_program("chromium")), args=FLAGS)
        try:
            yield running
        finally:
            running.close()


class Seen:
    """An open page, all it asked for, and what went wrong in it; closed with its browser."""

    def __init__(self, running: Browser, url: str, **context: Any) -> None:
        given = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce", **context}
        self.page: Page = running.new_context(**given).new_page()
        self.errors: list[str] = []
        self.asked: list[str] = []
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", self._record_message)
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(url)

    def _record_message(self, message: Any) -> None:
        if message.type in {"error", "warning"}:
            self.errors.append(message.text)

    def text(self, name: str) -> str:
        """The text of the element of this id."""
        return self.page.locator(f"#{name}").inner_text()

    def wait(self, name: str, text: str) -> None:
        """Wait until the element holds the text."""
        element = self.page.locator(f"#{name}").filter(has_text=re.compile(text))
        element.wait_for(state="attached", timeout=20_000)

    def rows(self, table: str, columns: int) -> list[list[str]]:
        """The first columns of a table's rows, without its head."""
        texts = self.page.locator(f"#{table} tbody tr").all_inner_texts()
        return [row.split("\t")[:columns] for row in texts]

    def wait_for_rows(self, table: str, expected: list[list[str]]) -> None:
        """Wait until a table holds these rows: the page fills it after its other parts."""
        columns, deadline = len(expected[0]), time.monotonic() + 20
        while (rows := self.rows(table, columns)) != expected:
            assert time.monotonic() < deadline, rows
            time.sleep(0.05)

    def heights(self, name: str) -> list[float]:
        """How high the bars of a chart are."""
        heights: list[float] = self.page.eval_on_selector_all(
            f"#{name} > i", "bars => bars.map(bar => bar.getBoundingClientRect().height)"
        )
        return heights

    def scrolls_sideways(self) -> bool:
        """Is the page wider than its window?"""
        wide: bool = self.page.evaluate(
            "document.documentElement.scrollWidth > document.documentElement.clientWidth"
        )
        return wide
