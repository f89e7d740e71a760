"""When a query's batches begin."""

from pyspark.sql.streaming.readwriter import DataStreamWriter

from config.models.job import Job
from config.models.window import IntervalTrigger


def triggered(writer: DataStreamWriter, job: Job) -> DataStreamWriter:
    """`writer` with the job's trigger."""
    if isinstance(job.trigger, IntervalTrigger):
        return writer.trigger(processingTime=job.trigger.interval.interval)
    return writer.trigger(availableNow=True)
