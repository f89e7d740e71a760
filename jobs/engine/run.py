"""Running a job from a Python program."""

from pathlib import Path

from pyspark import SparkContext

from unskew.config.errors import UsageError
from unskew.config.loader import load_job
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import open_journal
from unskew.jobs.engine.preflight import check_before_spark
from unskew.jobs.engine.service import run_in_session
from unskew.jobs.query.pipeline import Pipeline


def run_job(job: Job | str | Path) -> None:
    """Run a job until its query ends, as `unskew run` does, but without log, metrics and page.

        run_job(load_job("job.yaml"))
        run_job(load_job("word_count", {"trigger": {"type": "available_now"}}))  # what is there

    job: what `load_job` returned; or the path of a job file, or the name of a shipped job.

    The job gets a Spark session of its own, which is stopped at the end: stop any other session of
    this process before. A KeyboardInterrupt stops the job; the next run goes on from its
    checkpoint. A mistake in the file, and what can be found out before Spark starts, such as a
    missing topic, is raised at once: all problems as the lines of one exception.
    """
    if SparkContext._active_spark_context is not None:  # noqa: SLF001 - there is no public way
        raise UsageError("run_job: this process has a Spark session already; stop it before")
    whole = job if isinstance(job, Job) else load_job(job)
    check_before_spark(Pipeline(whole, open_journal(whole)))
    run_in_session(whole)
