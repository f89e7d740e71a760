"""`unskew run` against a real broker, as processes of their own."""

import json
import signal
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.engine.test_dead_letters import rejected_records
from tests.support.running.job_process import (
    Samples,
    finished,
    inspected,
    job_words,
    journal_agrees,
    make_topics,
    produce,
    running,
    totals,
)
from tests.support.running.topics import topic_records
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.files import JOURNAL_FOLDER
from unskew.jobs.checkpoint.merge_state import read_merge_state
from unskew.jobs.kafka.broker import Broker

pytestmark = [pytest.mark.e2e, pytest.mark.spark]

SNAPSHOTS = {
    "spark__spark.sql.streaming.stateStore.minDeltasForSnapshot": 1,
    "spark__spark.sql.streaming.stateStore.maintenanceInterval": "500ms",
}


def loads(metrics: Samples, name: str = "unskew_partition_batch_records") -> list[float]:
    return [metrics[name, str(partition)] for partition in range(4)]


@dataclass
class Story:
    """A job that is stopped and started again, each time under another grouping."""

    broker: Broker
    folder: Path
    expected: Counter[str] = field(default_factory=Counter)

    @property
    def checkpoint(self) -> Path:
        return self.folder / "story"

    def produce_lines(self, lines: int, seed: int) -> int:
        """Write more lines; the number of their words."""
        more = produce(self.broker, "story", lines, seed=seed)
        self.expected.update(more)
        return more.total()

    def words(self, **settings: object) -> list[str]:
        return job_words(self.broker.address, self.folder, "story", **settings)


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_balance_shows_restarts_go_on_and_totals_are_exact(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, "story")
    story = Story(broker, tmp_path)
    skewed = first_run(story)
    assert skewed > 1.3
    leave_a_dead_letter(story.checkpoint)
    assert under_level(story) < 1.01
    assert drained(story, grouping__type="fish", partitions=6) < 1.2

    assert totals(broker, "story-counts") == dict(story.expected)
    dead = [dict(each.headers()) for each in topic_records(broker, "story-dead")]
    assert len(dead) == 20 + 1 + 10 + 10
    assert {each["reason"] for each in dead} == {b"not_utf8"}
    assert len({(each["partition"], each["offset"]) for each in dead}) == 41


def first_run(story: Story) -> float:
    """Under `key`: what the metrics and the journal say, and a stop; max over mean."""
    words = story.produce_lines(2000, seed=1)
    settings = story.words(grouping__type="key", **SNAPSHOTS)
    with running(settings, story.folder / "1") as job:
        metrics = job.wait_for_records(words)
        assert (job.get("/healthz"), job.get("/readyz")) == ((200, "running\n"),) * 2
        journal_agrees(metrics, story.checkpoint)
        assert sum(loads(metrics, "unskew_partition_records_total")) == words
        assert metrics["unskew_dead_letters_total", "not_utf8"] == 20
        assert metrics["unskew_merge_state_rows", ""] == len(story.expected)
        assert metrics["unskew_query_state", "running"] == 1
        lag = {label: value for (name, label), value in metrics.items() if "lag" in name}
        assert lag == {"0,story": 0, "1,story": 0}
        # Without waiting for another batch: the newest snapshots count every word once.
        path, count = str(story.checkpoint), len(story.expected)
        job.wait(lambda: sum(each.rows or 0 for each in read_merge_state(path)) == count)
        code, seconds = job.stop(signal.SIGTERM, group=True)
        assert code == 0, job.text()
        assert seconds < 30
        assert "Traceback" not in job.text()
    return float(metrics["unskew_max_over_mean_ratio", ""])


def under_level(story: Story) -> float:
    """Under `level`: another thousand lines, and Ctrl-C; max over mean."""
    words = story.produce_lines(1000, seed=2)
    with running(story.words(grouping__type="level"), story.folder / "2") as job:
        metrics = job.wait_for_records(words)
        journal_agrees(metrics, story.checkpoint)
        assert any(name == "unskew_grouping_signal" for name, _ in metrics)
        code, seconds = job.stop(signal.SIGINT, group=True)
        assert code == 130, job.text()
        assert seconds < 30
        assert "Traceback" not in job.text()
    return float(metrics["unskew_max_over_mean_ratio", ""])


def drained(story: Story, **settings: object) -> float:
    """Another thousand lines, by a start that reads what is there and ends; max over mean."""
    story.produce_lines(1000, seed=3)
    code, _, errors = finished(story.words(**settings), "--available-now", "--log", "console")
    assert code == 0, errors
    batches: Any = inspected(story.checkpoint)["batches"]
    return float(batches[-1]["max_over_mean"])


def leave_a_dead_letter(checkpoint: Path) -> None:
    """As a crash does after the commit and before it went out: then it goes at the next start."""
    journal = Journal(str(checkpoint / JOURNAL_FOLDER))
    (newest,) = [batch for batch in journal.batches() if journal.are_dead_letters_written(batch)]
    (checkpoint / JOURNAL_FOLDER / f"{newest:012d}" / "dead-letters.published").unlink()
    journal.write_rejected(newest, 0, rejected_records(range(10**6, 10**6 + 1)))


@pytest.mark.slow
def test_plain_spark_gives_the_same_totals_and_keeps_its_dead_letters(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, "plain")
    expected = produce(broker, "plain", 1000, seed=4)
    words = job_words(broker.address, tmp_path, "plain", grouping__type="none")
    code, _, errors = finished(words, "--available-now", "--log", "json")
    assert code == 0, errors
    assert totals(broker, "plain-counts") == dict(expected)
    assert len(topic_records(broker, "plain-dead")) == 10
    events = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert [each["not_utf8"] for each in events if each["event"] == "dead_letters"] == [10]
    assert finished(["inspect", str(tmp_path / "plain")])[0] == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_batch_that_takes_too_long_is_abandoned_and_made_again(
    broker: Broker, tmp_path: Path
) -> None:
    make_topics(broker, "long")
    lines = produce(broker, "long", 4000, seed=5)
    paced = "{{type: paced, key: cast(offset % 3 as string), cost: {}}}"
    slow = job_words(broker.address, tmp_path, "long", operator=paced.format("100 ms"))
    with running(slow, tmp_path / "log") as job:
        offsets = tmp_path / "long" / "offsets" / "0"
        job.wait(offsets.exists)
        code, seconds = job.stop(signal.SIGTERM)
        assert code == 0, job.text()
        assert 14 < seconds < 32
    quick = job_words(broker.address, tmp_path, "long", operator=paced.format("0 us"))
    code, _, errors = finished(quick, "--available-now", "--log", "console")
    assert code == 0, errors
    batches = totals(broker, "long-counts")
    assert sorted(batches) == ["0", "1", "2"]
    assert sum(batches.values()) == 4000 - len(topic_records(broker, "long-dead"))
    assert lines.total() == 5 * sum(batches.values())


@pytest.mark.slow
def test_plain_spark_whose_main_query_fails_ends_the_job(broker: Broker, tmp_path: Path) -> None:
    make_topics(broker, "overrun")
    produce(broker, "overrun", 100, seed=5)
    words = job_words(broker.address, tmp_path, "overrun", grouping__type="none")
    offsets = tmp_path / "overrun" / "offsets"
    with running(words, tmp_path / "log") as job:
        job.wait(lambda: bool(topic_records(broker, "overrun-counts")))
        # As if another query had got hold of it; that of the refused records has its own.
        following = 1 + max(int(file.name) for file in offsets.iterdir() if file.name.isdecimal())
        (offsets / str(following)).write_text("somebody else's")
        produce(broker, "overrun", 100, seed=6)
        assert job.process.wait(120) == 1, job.text()
    assert "another query writes to it" in json.dumps(job.events()[-1])
    assert "Traceback" not in job.text()
