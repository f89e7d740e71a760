"""The grouping of each start of a query: the job's own, or what `auto` takes.

After each batch `auto` decides by what the batch took (`grouping.choice.decider`). A decision is in
the journal with the batch; for another grouping the service stops the query and starts it from its
checkpoint. Before that start the journal says from which batch on the way is taken, so a start that
is killed anywhere in between goes on with the same.
"""

import time
from dataclasses import dataclass
from typing import Any, Protocol

from pyspark.sql import SparkSession

from unskew.config.models.grouping import GROUPING_MODELS, AutoGrouping
from unskew.config.models.job import Job
from unskew.config.models.source import FilesSource
from unskew.config.types.secrets import reveal
from unskew.grouping.choice.decider import Decider
from unskew.grouping.choice.records import BatchChoice, Choice
from unskew.grouping.choice.ways import LEVEL, LEVEL_SECONDS, list_ways
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import HASHED, LOCAL, Work
from unskew.grouping.spark.choice_file import (
    read_choices,
    read_known,
    write_batch_choice,
    write_choices,
)
from unskew.grouping.spark.journal import Journal
from unskew.jobs.checkpoint.identity import is_made_by_spark
from unskew.jobs.engine.choosing.first_choice import choose_first
from unskew.jobs.engine.choosing.measured import measure
from unskew.jobs.local.machine_constants import find_calibration
from unskew.jobs.observe.batches.batch import BatchDone
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.query.source import make_file_settings

_OTHER_VERSION = (
    "what was measured so far is of another version of Unskew, which estimates other things: what"
    " each way takes is measured again"
)


class Chooser(Protocol):
    """Chooses the grouping of each start of the query; the service calls it."""

    why: str
    """Why the query has its grouping; empty where the job says it."""
    wants_change: bool
    """Is the query to be restarted with another grouping?"""

    def settle(self, spark: SparkSession, written: int) -> Job:
        """The job with the grouping of the batches after `written`."""

    def started(self) -> None:
        """Called when the query has started."""

    def take_batch(self, done: BatchDone) -> BatchChoice | None:
        """Take a finished batch into account; return the choice, None where nothing is chosen."""

    def stopped(self, written: int) -> None:
        """Called when the query was stopped for a change, after the batch `written`."""


class GivenGrouping:
    """The job's own grouping."""

    why = ""
    wants_change = False

    def __init__(self, job: Job) -> None:
        self._job = job

    def settle(self, spark: SparkSession, written: int) -> Job:
        """Return the job unchanged."""
        return self._job

    def started(self) -> None:
        """Do nothing: a fixed grouping keeps no state."""

    def take_batch(self, done: BatchDone) -> BatchChoice | None:
        """Return None: the grouping is fixed."""
        return None

    def stopped(self, written: int) -> None:
        """Never called: a fixed grouping wants no change."""


@dataclass
class _Change:
    """A change under way."""

    decided: float
    seconds: float = 0.0
    discarded_records: int = 0


class AutoChooser:
    """The grouping that `auto` takes."""

    def __init__(self, job: Job, journal: Journal) -> None:
        self.why = ""
        self.wants_change = False
        self._job = job
        self._journal = journal
        self._way = ""
        self._decider: Decider | None = None
        self._change: _Change | None = None
        self._first_of_start = True
        self._slots = 1

    def settle(self, spark: SparkSession, written: int) -> Job:
        """Take the way that the journal says; at the very first start, by a sample."""
        self._slots = spark.sparkContext.defaultParallelism
        choices = read_choices(self._journal)
        if not self.wants_change:
            self._resume(spark, choices, written)
        assert self._way
        if not choices or choices[-1].way != self._way:
            choice = Choice(written + 1, self._way, self.why)
            write_choices(self._journal, (*choices, choice))
        self.wants_change, self._first_of_start = False, True
        self._set_file_pieces(spark)
        return self._job.model_copy(update={"grouping": make_grouping_section(self._way)})

    def _resume(self, spark: SparkSession, choices: tuple[Choice, ...], written: int) -> None:
        by_spark = is_made_by_spark(self._job)
        if by_spark:
            self._way = HASHED
            self.why = choices[-1].why if choices else "the checkpoint is plain Spark's"
            return
        gain, native = self._job.grouping.gain_min, make_operator(self._job.operator).native
        ways = list_ways(native)
        known = read_known(self._journal, written, lambda data: Decider.from_json(data, gain, ways))
        work: Work | None = None
        if known is not None:
            self._way, self.why, self._decider = known[0].next_way, known[0].why, known[1]
            if self._decider is None:
                self.why = f"as before; {_OTHER_VERSION}"
        elif choices and (by_spark is None or choices[-1].way in ways):
            self._way, self.why = choices[-1].way, choices[-1].why
        else:
            alone = by_spark is None and native
            first = choose_first(self._job, spark, _read_constants(), spark_alone=alone)
            self._way, self.why, work = first.way, first.why, first.work
        if self._decider is None and self._way in ways:
            self._decider = Decider.begin(self._way, _read_constants(), work, gain, ways)

    def _set_file_pieces(self, spark: SparkSession) -> None:
        """Files are cut by settings of the session, which a query takes when it starts."""
        if not isinstance(self._job.source, FilesSource):
            return
        for name, value in make_file_settings(self._job.partitions).items():
            if name in reveal(self._job.spark):
                continue  # the user's own
            if self._way == LOCAL:
                spark.conf.set(name, value)
            elif spark.conf.get(name, None) == value:
                spark.conf.unset(name)

    def started(self) -> None:
        """Record how long the change took."""
        if self._change is not None:
            self._change.seconds = time.time() - self._change.decided

    def take_batch(self, done: BatchDone) -> BatchChoice | None:
        """Learn from the batch, and decide; both are in the journal then."""
        if self._decider is None:
            return BatchChoice(self._way, self._way, self.why)
        measured = measure(done, self._way, self._slots)
        if measured is None:
            return None
        if self.wants_change:
            choice = BatchChoice(self._way, self._decider.way, self.why)
        elif self._first_of_start:
            # Its workers start and load code: the next batches are not like it.
            late = max(0.0, done.seconds - self._decider.expect(measured))
            choice = self._report_change(late)
        else:
            decision = self._decider.decide(measured)
            choice = BatchChoice(self._way, decision.way, decision.why, decision.expected)
        self._first_of_start = False
        write_batch_choice(self._journal, done.batch, choice, self._decider.to_json())
        if choice.next_way != self._way and not self.wants_change:
            self._change = _Change(time.time())
            self.wants_change, self.why = True, choice.why
        return choice

    def _report_change(self, late: float) -> BatchChoice:
        """The first batch of a start, which ends a change if there was one."""
        assert self._decider is not None
        change, self._change = self._change, None
        if change is None:
            return BatchChoice(self._way, self._way, self.why)
        seconds = change.seconds + late
        self._decider.take_change(seconds)
        return BatchChoice(
            self._way,
            self._way,
            self.why,
            change_seconds=seconds,
            discarded_records=change.discarded_records,
        )

    def stopped(self, written: int) -> None:
        """Count the unfinished batch's records as discarded, and switch to the new way."""
        assert self._change is not None
        assert self._decider is not None
        self._change.discarded_records = _count_records_after(self._journal, written)
        self._way = self._decider.way


def make_chooser(job: Job, journal: Journal) -> Chooser:
    """Make the chooser that the job's grouping needs."""
    if isinstance(job.grouping, AutoGrouping):
        return AutoChooser(job, journal)
    return GivenGrouping(job)


def make_grouping_section(way: str) -> Any:
    """Make the `grouping` section of a job for a way."""
    if way == LEVEL_SECONDS:
        return GROUPING_MODELS[LEVEL](type=LEVEL, balance="seconds")
    return GROUPING_MODELS[way](type=way)


def _read_constants() -> Constants:
    calibration = find_calibration()
    return calibration.constants if calibration else Constants()


def _count_records_after(journal: Journal, written: int) -> int:
    """Records that were routed, or worked on, in batches that run again."""
    records = 0
    for batch in journal.batches():
        if batch > written:
            routed = sum(routes.records for routes in journal.routes(batch).values())
            worked = sum(
                int(report.arrays["records"][0]) for report in journal.reports(batch).values()
            )
            records += max(routed, worked)
    return records
