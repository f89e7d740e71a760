"""A driver that stood still while another start took its checkpoint over, without locks."""

import json
import signal
import time
from pathlib import Path

import pytest

from tests.jobs.engine.failures.test_jvm_killed import remarks, wait_for_batch, words
from tests.support.running.job_process import Running, finished, running
from tests.support.running.processes import children_named
from unskew.jobs.checkpoint.files import open_journal_in
from unskew.jobs.checkpoint.lock import JVM_LOCK, LOCK
from unskew.jobs.observe.batches.batch_stats import read_batch_stats

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

RECORDS, BROKEN = 600, 7


def signal_driver(job: Running, number: signal.Signals) -> None:
    """Signal the process and its JVM, which leads a process group of its own."""
    for process in (job.process, *children_named("java", job.process.pid)):
        process.send_signal(number)


@pytest.mark.parametrize("wakes", ["beside the second", "after the second"])
def test_a_driver_that_wakes_up_writes_nothing_and_ends(tmp_path: Path, wakes: str) -> None:
    started = words(tmp_path, "console", records=RECORDS, broken=BROKEN)
    checkpoint = tmp_path / "checkpoint"
    with running(started, tmp_path / "log") as first:
        wait_for_batch(first, tmp_path)
        signal_driver(first, signal.SIGSTOP)
        owner = (checkpoint / "unskew" / "owner").read_text()
        # As on storage without locks.
        for name in (LOCK, JVM_LOCK):
            (checkpoint / name).unlink()
        if wakes == "beside the second":
            with running([*started, "--available-now"], tmp_path / "log-second") as second:
                # Before that the first one owns the checkpoint, and rightly goes on.
                second.wait(lambda: (checkpoint / "unskew" / "owner").read_text() != owner)
                time.sleep(3)
                signal_driver(first, signal.SIGCONT)
                assert second.process.wait(200) == 0, second.text()
        else:
            code, _, errors = finished(started, "--available-now", "--log", "console")
            assert code == 0, errors
            signal_driver(first, signal.SIGCONT)
        assert first.process.wait(120) == 1, first.text()
        assert remarks(first) == []
        (problem,) = first.events()[-1]["problems"]
        assert "another" in problem, problem

    stats = read_batch_stats(str(checkpoint), open_journal_in(str(checkpoint)), 0)
    assert stats is not None
    assert (stats.total, dict(stats.rejected)) == (RECORDS, {"not_decoded": BROKEN})
    dead_letters = [
        json.loads(line)
        for file in sorted((tmp_path / "dead").glob("batch_id=*/*.json"))
        for line in file.read_text().splitlines()
    ]
    assert [each["reason"] for each in dead_letters] == ["not_decoded"] * BROKEN
