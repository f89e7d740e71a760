"""The live page of a real job: its numbers are the journal's, and it outlives the job."""

import signal
from pathlib import Path
from typing import Any

import pytest

from tests.support.displays.live_page import Seen, browser
from tests.support.running.job_process import (
    Running,
    inspected,
    job_words,
    make_topics,
    produce,
    running,
)
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.local.child_processes import find_free_ports

pytestmark = [pytest.mark.spark, pytest.mark.e2e]


def _shown_seconds(value: float) -> str:
    """Hundredths, or thousandths where those would be none."""
    text = f"{value:.2f}"
    return text if float(text) else f"{value:.3f}"


def page_agrees(seen: Seen, checkpoint: Path) -> None:
    """What the page shows is what the journal says."""
    report: Any = inspected(checkpoint)
    last = report["batches"][-1]
    seen.wait("title", f"^Batch {last['batch']}$")
    ratio = "\N{MULTIPLICATION SIGN}"
    assert seen.text("max") == f"{last['max_over_mean']:.2f} {ratio}"
    assert seen.text("replication") == f"{last['replication']:.2f}"
    expected = [
        [
            str(partition["partition"]),
            f"{partition['last_batch']['records']:,}",
            f"{partition['last_batch']['under_key_records']:,}",
            _shown_seconds(partition["last_batch"]["busy_seconds"]),
            f"{partition['last_batch']['state_keys']:,}",
        ]
        for partition in report["partitions"]
    ]
    seen.wait_for_rows("table", expected)
    if len(report["batches"]) == 1:
        keys = [[key["hash"], f"{key['records']:,}"] for key in report["hot_keys"]]
        *head, _ = seen.rows("hot", 2)  # the last row is of all other keys
        assert head == keys[: len(head)]


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_page_is_the_journal_and_outlives_its_job(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, "paged")
    (port,) = find_free_ports(1)
    produce(broker, "paged", 2000, seed=1)
    words = job_words(broker.address, tmp_path, "paged", metrics__port=port)
    with browser() as chromium:
        with running([*words, "--set", "grouping.type=level"], tmp_path / "1.log") as job:
            first = job.wait_for_records(5 * 1980)
            seen = _opened(chromium, job)
            page_agrees(seen, tmp_path / "paged")
            assert first["unskew_max_over_mean_ratio", ""] < 1.01
            assert first["unskew_under_key_max_over_mean_ratio", ""] > 1.2
            assert job.stop(signal.SIGTERM)[0] == 0
        seen.wait("why", "The job does not answer")


def _opened(chromium: Any, job: Running) -> Seen:
    seen = Seen(chromium, job.events()[0]["page"])
    seen.wait("state", "running")
    seen.page.locator("summary").click()
    assert seen.errors == []
    return seen
