"""`grouping: auto` in whole jobs: changes, what is killed in between, and what is shown."""

import json
import signal
import time
from collections import Counter
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark.sql import SparkSession

from tests.support.batches import board_value
from tests.support.running.in_process import Ran
from tests.support.running.job_process import (
    WAIT_SECONDS,
    finished,
    job_words,
    make_topics,
    produce,
    running,
    totals,
)
from tests.support.running.processes import children_named
from unskew.grouping.choice.estimates import NAMES
from unskew.grouping.choice.records import BatchChoice
from unskew.grouping.choice.ways import list_ways
from unskew.grouping.spark.choice_file import (
    read_batch_choice,
    read_choices,
    read_known,
    write_batch_choice,
)
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.files import open_journal_in
from unskew.jobs.kafka.broker import Broker
from unskew.jobs.observe.board import Board
from unskew.jobs.observe.health import Health
from unskew.jobs.observe.inspection import inspect
from unskew.jobs.observe.inspection_output import print_tables

pytestmark = [pytest.mark.spark, pytest.mark.slow]

OF_WORDS: dict[str, Any] = {
    "decode": {"type": "text"},
    "event_time": "timestamp",
    "window": {"type": "none"},
    "lateness": None,
    "grouping": {"type": "auto", "sample_records": 0},
}


class KilledError(RuntimeError):
    """What ends a run in between."""


class Killed(Ran):
    """A run that ends when the service says that it is at this point."""

    def __init__(self, point: str, *given: Any, **changes: Any) -> None:
        self._point = point
        super().__init__(*given, **changes)

    def on_state_changed(self, state: str) -> None:
        """A change begins: it is decided, and the query still runs."""
        if state == self._point:
            raise KilledError(state)

    def on_grouping_chosen(self, grouping: str, why: str) -> None:
        """The journal has the choice, and no query runs yet."""
        if self._point == "chosen":
            raise KilledError(why)


class Files:
    """Files of words, a batch each, and their totals."""

    def __init__(self, folder: Path) -> None:
        (folder / "in").mkdir()
        self._folder = folder
        self._words: Counter[str] = Counter()

    def add(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            lines = [f"hot hot w{line * 7 % 90 + number}" for line in range(300)]
            (self._folder / "in" / f"{number}.txt").write_text("\n".join(lines) + "\n")
            self._words.update(word for line in lines for word in line.split())

    @property
    def totals(self) -> dict[Any, dict[str, int]]:
        return {(word,): {"count": count} for word, count in self._words.items()}


def expect_of(journal: Journal, way: str, batch: int) -> None:
    """Leave in the journal what makes the next measured batch decide for `way`."""
    read = read_known(journal, batch, dict)
    assert read is not None
    choice, known = read
    # All others have a fixed cost a million times that of a batch.
    fixed = {each: 1e-3 if each == way else 1e6 for each in list_ways(native=True)}
    products = {each: [most, *[0.0] * (len(NAMES) - 1)] for each, most in fixed.items()}
    eager = {**known, "products": products, "credits": {way: 1e9}}
    Path(journal.location, f"{batch:012d}", "batch.choice").unlink()
    write_batch_choice(journal, batch, choice, eager)


def ways_of(journal: Journal) -> dict[int, str]:
    """The way of each batch, as its own record says."""
    records = {batch: read_batch_choice(journal, batch) for batch in journal.batches()}
    return {batch: each.way for batch, each in records.items() if each is not None}


def planned(journal: Journal) -> dict[int, str]:
    """The way of each batch, as it was written before the batch."""
    choices = read_choices(journal)
    return {
        batch: next(each.way for each in reversed(choices) if each.batch <= batch)
        for batch in ways_of(journal)
    }


def test_a_change_is_made_within_a_run_and_shown(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = Files(tmp_path)
    files.add(0, 1)
    first = Ran(spark, tmp_path, "one", **OF_WORDS)
    expect_of(first.journal, "local", 0)
    files.add(1, 5)

    ran = Ran(spark, tmp_path, "one", **OF_WORDS)

    assert first.last | ran.last == files.totals
    ways = ways_of(ran.journal)
    assert ways == planned(ran.journal)
    assert next(iter(ways.values())) == "level"
    assert [*ways.values()][-1] == "local"
    assert [each.way for each in read_choices(ran.journal)] == ["level", "local"]
    board = Board("totals", Health(60.0))
    for done in ran.batches:
        board.on_batch_done(done)
    assert board_value(board, "grouping_changes") == 1
    assert 0 < board_value(board, "grouping_change_seconds") < 60
    assert board_value(board, "grouping_taken", "local") == 1
    assert board_value(board, "expected_batch_seconds", "level") > 0
    routed = [done.batch for done in ran.batches if done.routing is not None]
    assert routed == [batch for batch, way in ways.items() if way != "local" and batch > 0]
    inspection = inspect(str(ran.job.checkpoint))
    shown = inspection.data()["batches"]
    assert [batch["taken"] for batch in shown] == [*ways.values()]
    assert any("in place of level" in batch["taken_why"] for batch in shown)
    print_tables(inspection)
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("after")]
    assert len(lines) == 2  # a change, and what the newest batch says
    assert " local: local " in lines[0]
    assert " in place of level " in lines[0]
    assert lines[1].startswith(f"after batch {shown[-1]['batch']} local: ")


@pytest.mark.parametrize("point", ["starting", "chosen"])
def test_a_start_that_ends_in_a_change_goes_on_with_what_was_decided(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    files = Files(tmp_path)
    files.add(0, 1)
    first = Ran(spark, tmp_path, "one", **OF_WORDS)
    expect_of(first.journal, "local", 0)
    files.add(1, 5)
    if point == "chosen":
        with pytest.raises(KilledError):
            Killed("starting", spark, tmp_path, "one", **OF_WORDS)
    with pytest.raises(KilledError):
        Killed(point, spark, tmp_path, "one", **OF_WORDS)
    journal = open_journal_in(str(first.job.checkpoint))
    left = [each.way for each in read_choices(journal)]
    assert left == (["level"] if point == "starting" else ["level", "local"])

    ran = Ran(spark, tmp_path, "one", **OF_WORDS)

    assert first.last | ran.last == files.totals
    assert [each.way for each in read_choices(journal)] == ["level", "local"]
    written, before = ways_of(journal), planned(journal)
    assert written == before
    assert {*written.values()} == {"level", "local"}
    assert ran.batches[0].choice is not None
    assert ran.batches[0].choice.way == "local"


def test_an_operator_of_sparks_own_may_be_left_to_it_for_good(
    spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    lines = [f"w{line % 700}" for line in range(6000)]
    (tmp_path / "in" / "0.txt").write_text("\n".join(lines) + "\n")
    settings = {**OF_WORDS, "grouping": {"type": "auto"}}

    ran = Ran(spark, tmp_path, "one", **settings)
    again = Ran(spark, tmp_path, "one", **settings)

    totals = {(word,): {"count": count} for word, count in Counter(lines).items()}
    assert ran.last == totals
    (choice,) = read_choices(ran.journal)
    assert choice.way == "none"
    assert "final for the checkpoint" in choice.why
    assert (
        json.loads((Path(ran.job.checkpoint) / "unskew.json").read_text())["fixed"]["grouping.type"]
        == "none"
    )
    assert again.batches == []
    assert ran.batches[0].choice == BatchChoice("none", "none", choice.why)


@pytest.mark.e2e
@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_driver_that_is_killed_once_it_has_decided_starts_with_its_decision(
    broker: Broker, tmp_path: Path
) -> None:
    topic = "decided"
    make_topics(broker, topic)
    counts = produce(broker, topic, 300, seed=1)
    words = job_words(
        broker.address,
        tmp_path,
        topic,
        grouping="{type: auto, sample_records: 0}",
        source__records_per_batch=300,
    )
    code, _, errors = finished(words, "--available-now")
    assert code == 0, errors
    journal = open_journal_in(str(tmp_path / topic))
    expect_of(journal, "local", 0)
    counts += produce(broker, topic, 1200, seed=2)

    def decided() -> bool:
        records = (read_batch_choice(journal, batch) for batch in journal.batches())
        return any(each is not None and each.next_way == "local" for each in records)

    with running(words, tmp_path / "log") as job:
        job.wait(lambda: bool(children_named("java", job.process.pid)))
        jvm = children_named("java", job.process.pid)[0]
        deadline = time.monotonic() + WAIT_SECONDS
        while not decided():
            assert time.monotonic() < deadline, job.text()
            time.sleep(0.005)
        job.stop(signal.SIGKILL)
        psutil.wait_procs([jvm], 60)

    code, _, errors = finished(words, "--available-now")

    assert code == 0, errors
    assert totals(broker, f"{topic}-counts") == dict(counts)
    assert [each.way for each in read_choices(journal)] == ["level", "local"]
    assert ways_of(journal) == planned(journal)


def test_after_an_upgrade_a_job_goes_on_with_its_way_and_measures_anew(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = Files(tmp_path)
    files.add(0, 2)
    first = Ran(spark, tmp_path, "one", **OF_WORDS)
    newest = first.journal.batches()[-1]
    read = read_known(first.journal, newest, dict)
    assert read is not None
    of_other = {
        "version": 0,
        "way": "level",
        "estimates": {"values": [1.0]},
        "mood": "an older version's",
    }
    Path(first.journal.location, f"{newest:012d}", "batch.choice").unlink()
    write_batch_choice(first.journal, newest, read[0], of_other)
    files.add(2, 2)

    ran = Ran(spark, tmp_path, "one", **OF_WORDS)

    assert first.last | ran.last == files.totals
    choice = ran.batches[0].choice
    assert choice is not None
    assert choice.way == read[0].next_way
    assert "is of another version of Unskew" in choice.why
    assert planned(ran.journal) == ways_of(ran.journal)
    after = read_known(ran.journal, ran.journal.batches()[-1], dict)
    assert after is not None
    assert len(after[1]["estimates"]["values"]) == len(NAMES)
