"""When a query's batches begin."""

from pyspark.sql.streaming.readwriter import DataStreamWriter

from unskew.config.models.job import Job
from unskew.config.models.window import IntervalTrigger


def with_trigger(writer: DataStreamWriter, job: Job) -> DataStreamWriter:
    """`writer` with the job's trigger."""
    if isinstance(job.trigger, IntervalTrigger):
        return writer.trigger(processingTime=job.trigger.interval.interval)
    return writer.trigger(availableNow=True)
