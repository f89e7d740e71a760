"""Running a job: start its query, follow it batch by batch, stop it cleanly."""

import json
import time
import uuid
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from unskew.config.models.job import Job
from unskew.grouping.spark.journal import KEPT_BATCHES, Journal
from unskew.jobs.checkpoint import identity
from unskew.jobs.checkpoint.fenced_logs import fence_logs
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.checkpoint.hash_key import make_hash_key
from unskew.jobs.checkpoint.lock import lock_checkpoint
from unskew.jobs.checkpoint.merge_state import MergePartition, read_merge_state
from unskew.jobs.checkpoint.spark_log import read_last_commit
from unskew.jobs.engine.choosing.chooser import make_chooser
from unskew.jobs.engine.choosing.other_ways import OtherWays
from unskew.jobs.engine.failed_record import name_failed_record
from unskew.jobs.engine.preflight import check_expressions_first
from unskew.jobs.engine.rejected_batches import RejectedBatches
from unskew.jobs.engine.rejected_share import RejectedShare
from unskew.jobs.engine.retries import run_with_retries
from unskew.jobs.engine.session import (
    change_settings,
    give_head_start,
    lock_in_jvm,
    open_job_session,
    rename_within_jvm,
)
from unskew.jobs.engine.spark_errors import SPARK_ERRORS, PassingError, translate_spark_errors
from unskew.jobs.engine.stage_times import SparkJobs, StageTimes
from unskew.jobs.engine.table_writers import TableWriters
from unskew.jobs.local.signals import GRACE_SECONDS, Stop
from unskew.jobs.observe.batches.batch import BatchDone, compute_lag, read_routing
from unskew.jobs.observe.batches.batch_stats import read_batch_stats
from unskew.jobs.observe.batches.rejected_samples import (
    RejectedSample,
    make_samples,
    read_rejected_rows,
)
from unskew.jobs.observe.batches.spark_counts import keep_spark_counts
from unskew.jobs.observe.follower import Follower
from unskew.jobs.operators.registry import is_computed_by_spark
from unskew.jobs.query.pipeline import Pipeline, set_trigger
from unskew.jobs.sinks import dead_letters
from unskew.jobs.sinks.rejected_totals import TOTAL_REJECTED
from unskew.jobs.sinks.result_writer import make_writer, read_last_written

_TASKS_CHECK_SECONDS = 5.0
_OWNER_CHECK_SECONDS = 10.0
_POLL_SECONDS: Any = 0.2  # pyspark declares an int, and takes fractions


class Service:
    """One running job."""

    def __init__(
        self,
        job: Job,
        spark: SparkSession,
        followers: tuple[Follower, ...] = (),
        stop: Stop | None = None,
    ) -> None:
        self.job = job
        self.spark = spark
        self.journal: Journal = replace(open_journal(job), owner=uuid.uuid4().hex)
        self._chooser = make_chooser(job, self.journal)
        self._pipeline = Pipeline(job, self.journal)
        self._rejected_batches = RejectedBatches(self._pipeline)
        self._spark_jobs = SparkJobs(spark)
        self._table_writers = TableWriters(job, self._spark_jobs)
        self._stage_times = StageTimes(job, spark)
        self._other_ways = OtherWays(spark.sparkContext.defaultParallelism)
        self._followers = followers
        self._stop = stop or Stop()
        self._seen = -1
        self._published = -1
        self._rejected: Mapping[str, int] = {}
        self.made_progress = False
        self._rejected_share = RejectedShare(job)
        self._merge_state: tuple[MergePartition, ...] = ()
        self._journal_sizes = (0, 0)
        self._newest: object = None

    def run(self) -> None:
        """Run until the query ends by itself or is asked to stop."""
        try:
            with (
                translate_spark_errors(self.job),
                name_failed_record(self.spark, lambda: self._pipeline),
                lock_checkpoint(self.job.checkpoint),
                lock_in_jvm(self.spark, self.job.checkpoint),
            ):
                self._run_queries()
        except PassingError:
            raise  # whoever starts queries says whether there is another start
        except BaseException:
            self._enter("failed")
            raise
        self._enter("stopped")

    def _run_queries(self) -> None:
        """Start the query and follow it; once more for each other grouping that is chosen."""
        while True:
            self._prepare()
            with rename_within_jvm(self.spark, self.job.checkpoint):
                query = self._start()
            try:
                self._chooser.started()
                self._follow(query)
                ended = not query.isActive
            finally:
                _stop(query)
            self._observe(query)
            if not self._chooser.wants_change or self._stop.asked or ended:
                return
            self._enter("starting")
            self._chooser.stopped(read_last_written(self.job))

    def _prepare(self) -> None:
        """Bring journal and dead letters to the batch that the checkpoint committed last."""
        # First: where there are no locks, a driver that was frozen may wake up at any moment.
        self.journal.take_over()
        committed, written = read_last_commit(self.job), read_last_written(self.job)
        routing_changed = identity.has_routing_changed(self.job)
        # A batch that was not committed runs again, perhaps routed otherwise. Of one that the sink
        # has, no task runs: what is in the journal is all that there will be of it.
        self.journal.drop_from(written + 1)
        if routing_changed:
            # Before the new identity is written: a crash in between must leave no old states.
            self.journal.drop_states()
        self._settle(written)
        make_hash_key(self.job.checkpoint)
        self._publish(committed)
        self._seen = committed

    def _settle(self, written: int) -> None:
        """Let the query have the grouping that is chosen for the batches after `written`."""
        running = self._chooser.settle(self.spark, written)
        identity.write_identity(self.job, running)
        self._pipeline = replace(self._pipeline, job=running, chosen=running is not self.job)
        self._rejected_batches = RejectedBatches(self._pipeline)
        for follower in self._followers:
            if self._chooser.why:
                follower.on_grouping_chosen(running.grouping.type, self._chooser.why)

    def _start(self) -> StreamingQuery:
        planned = self._pipeline.build_results(self.spark)
        with change_settings(self.spark, planned.settings):
            query = set_trigger(make_writer(planned.rows, self.job, self.journal), self.job).start()
        unfenced = fence_logs(self.spark, query, self.journal.check_owner)
        for follower in self._followers:
            if unfenced is not None:
                follower.on_warning(unfenced)
        return query

    def _follow(self, query: StreamingQuery) -> None:
        tasks = _TaskCompletions(self.spark)
        looked = time.monotonic()
        # Whether it has ended also raises the error of one that failed.
        while not query.awaitTermination(_POLL_SECONDS):
            self._observe(query)
            if self._chooser.wants_change:
                return
            if time.monotonic() - looked > _OWNER_CHECK_SECONDS:
                looked = time.monotonic()
                # Each write looks too, but a query without new records makes none.
                with suppress(OSError):
                    self.journal.check_owner()
            completed = tasks.has_new()
            for follower in self._followers:
                follower.time_passed()
                if completed:
                    follower.on_tasks_done()
            if self._stop.asked:
                self._enter("stopping")
                self._finish(query)
                return

    def _finish(self, query: StreamingQuery) -> None:
        """Let the batch under way finish, if it does in time."""
        seen, deadline = self._seen, time.monotonic() + GRACE_SECONDS
        while query.isActive and query.status["isTriggerActive"] and self._seen == seen:
            if time.monotonic() > deadline:
                return
            query.awaitTermination(_POLL_SECONDS)
            self._observe(query)
        if not query.isActive:
            query.awaitTermination(_POLL_SECONDS)

    def _observe(self, query: StreamingQuery) -> None:
        """Look at the query's progress."""
        newest = query.lastProgress
        mark = newest and (newest["batchId"], newest["timestamp"])
        if newest is not None and mark != self._newest:
            self._newest = mark
            for progress in (json.loads(each.json) for each in query.recentProgress):
                self._take_progress(progress)

    def _take_progress(self, progress: dict[str, Any]) -> None:
        batch = int(progress["batchId"])
        self.made_progress = True
        if "addBatch" not in progress["durationMs"]:
            if batch > self._seen:
                for follower in self._followers:
                    follower.on_idle_poll(compute_lag(progress))
        elif batch > self._seen:
            self._seen = batch
            self._after_batch(batch, progress)

    def _after_batch(self, batch: int, progress: dict[str, Any]) -> None:
        """Publish a finished batch's dead letters, and show its figures to the followers."""
        samples = self._publish_newest(batch, progress)
        # A size that cannot be read now is only missing from the displays: the job goes on.
        with suppress(OSError, pa.ArrowException):
            self._merge_state = read_merge_state(self.job.checkpoint)
        stages = self._spark_jobs.read_stages(progress["runId"], batch)
        written = self._table_writers.read_batch(progress, stages)
        if written is not None and not is_computed_by_spark(self._pipeline.job):
            self.journal.write_written_files(batch, written.to_snapshot())
        done = BatchDone(
            progress,
            read_batch_stats(
                self.job.checkpoint, self.journal, batch, max(10, self.job.metrics.hot_keys)
            ),
            read_routing(self.journal, batch),
            self._merge_state,
            written=written,
            stages=self._stage_times.read_batch(stages, self._pipeline.job),
            samples=samples,
        )
        done = replace(
            done,
            beside_work=self._other_ways.of_batch(done, self._pipeline.job),
            choice=self._chooser.take_batch(done),
        )
        keep_spark_counts(self.journal, done)
        # Only now the journal has all files of the batch.
        with suppress(OSError, pa.ArrowException):
            self._journal_sizes = self.journal.sum_size_bytes(), len(self.journal.batches())
        size_bytes, batches = self._journal_sizes
        done = replace(done, journal_bytes=size_bytes, journal_batches=batches)
        for follower in self._followers:
            follower.on_batch_done(done)
        self.journal.purge(batch - KEPT_BATCHES)
        rejected = done.stats.rejected if done.stats else self._rejected
        self._rejected_share.add(done.source_records, rejected)

    def _publish_newest(self, batch: int, progress: dict[str, Any]) -> tuple[RejectedSample, ...]:
        """Publish a finished batch's dead letters; the first of them, for displays."""
        by_spark = is_computed_by_spark(self._pipeline.job)
        rows = [] if by_spark else read_rejected_rows(self.journal, batch)
        self._publish(batch, progress)
        rows = self._rejected_batches.first_of(batch) or rows
        shown = self.job.metrics.dead_letter_values
        return make_samples(self.job.checkpoint, rows, values=shown)

    def _publish(self, newest: int, progress: Mapping[str, Any] | None = None) -> None:
        """Write the rejected records of committed batches; a crash may have left several."""
        if is_computed_by_spark(self._pipeline.job):
            self._rejected = self._rejected_batches.write(self.spark, newest, progress)
            self._show_rejected(self._rejected)
        for batch in self.journal.batches():
            if self._published < batch <= newest:
                self._count_rejected_totals(batch)
                dead_letters.publish(
                    self.spark, self.job, self.journal, batch, self._write_rejected_again
                )
        self._published = newest

    def _write_rejected_again(self, batch: int) -> int:
        return sum(self._rejected_batches.write_batch(self.spark, batch).values())

    def _count_rejected_totals(self, batch: int) -> None:
        """Show how many totals a sink rejected; no report has them."""
        totals = sum(piece.num_rows for piece in self.journal.rejected_totals(batch))
        self._show_rejected({TOTAL_REJECTED: totals} if totals else {})

    def _show_rejected(self, counts: Mapping[str, int]) -> None:
        """Show rejected records that are in no report."""
        for follower in self._followers:
            if counts:
                follower.on_records_rejected(counts)

    def _enter(self, state: str) -> None:
        for follower in self._followers:
            follower.on_state_changed(state)


class _TaskCompletions:
    """Detect task completions within a long batch."""

    def __init__(self, spark: SparkSession) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        self._completed: frozenset[tuple[int, int]] = frozenset()
        self._checked = time.monotonic()

    def has_new(self) -> bool:
        """Were tasks completed since the last check? There is a check every few seconds."""
        if time.monotonic() - self._checked < _TASKS_CHECK_SECONDS:
            return False
        self._checked = time.monotonic()
        stages = map(self._tracker.getStageInfo, self._tracker.getActiveStageIds())
        completed = frozenset((stage.stageId, stage.numCompletedTasks) for stage in stages if stage)
        before, self._completed = self._completed, completed
        return completed != before


def run_in_session(job: Job, *followers: Follower, stop: Stop | None = None) -> None:
    """Run a job in a Spark session of its own, which is stopped at the end."""
    with open_job_session(job) as spark:
        give_head_start(spark, job)
        check_expressions_first(spark, Pipeline(job, open_journal(job)))
        stopping = stop or Stop()
        if not stopping.asked:
            run_with_retries(
                job, lambda: Service(job, spark, followers, stopping), followers, stopping
            )


def _stop(query: StreamingQuery) -> None:
    # Its error was raised already; one that does not stop in time ends with its session.
    with suppress(*SPARK_ERRORS):
        if query.isActive:
            query.stop()
