"""What the writers of a job's table did in a batch: files and bytes by the table's log, seconds by
Spark's task metrics.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
from py4j.protocol import Py4JError

from unskew.config.models.job import Job
from unskew.jobs.engine.stage_times import Data, SparkJobs, read_writer_seconds
from unskew.jobs.observe.batches.written import WrittenFiles
from unskew.jobs.operators.registry import make_operator
from unskew.jobs.sinks.registry import make_sinks


class TableWriters:
    """Reads what the writers of a job's table did; nothing if the job's operator is not `rows`."""

    def __init__(self, job: Job, spark_jobs: SparkJobs) -> None:
        sink = make_sinks(job)[0]
        merges = make_operator(job.operator).merges
        self._sink = None if merges else sink
        self._writers = job.partitions
        self._spark_jobs = spark_jobs

    def read_batch(self, progress: dict[str, Any], stages: Sequence[Data]) -> WrittenFiles | None:
        """Read what they did in a batch from Spark's progress and stages; None if not known."""
        if self._sink is None:
            return None
        # Displays alone need it: the job goes on without.
        batch = int(progress["batchId"])
        with suppress(OSError, ValueError, KeyError, Py4JError, pa.ArrowException):
            files = self._sink.read_batch_files(batch, progress["id"])
            seconds = read_writer_seconds(self._spark_jobs, stages)
            if files is not None:
                return sum_by_writer(
                    [(f.writer or 0, f.size) for f in files], seconds, self._writers
                )
        return None


def sum_by_writer(
    files: Sequence[tuple[int, int]], seconds: Mapping[int, float], partitions: int
) -> WrittenFiles:
    """Sum files up, each with its writer and size.

    The seconds of all writers are unknown if those of a writer are.
    """
    # Without a shuffle the writers are the source's tasks, however many there are.
    writers = max([partitions - 1, *(writer for writer, _ in files), *seconds]) + 1
    numbers = np.array([writer for writer, _ in files], np.int64)
    sizes = np.zeros(writers, np.int64)
    np.add.at(sizes, numbers, np.array([size for _, size in files], np.int64))
    known = seconds.keys() >= {writer for writer, _ in files}
    times = np.array([seconds.get(writer, 0.0) for writer in range(writers)]) if known else None
    return WrittenFiles(np.bincount(numbers, minlength=writers), sizes, times)
