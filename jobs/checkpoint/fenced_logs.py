"""Spark's own logs of a query, fenced: a start that was taken over makes no entry in them.

Of two entries of one number in its logs of offsets and commits Spark takes the first, whoever it is
from: on a checkpoint without locks also that of a driver that was frozen and woke up. So the two
logs of a running query make their files through `_FencedFiles`, which looks first whose the
checkpoint is. Spark has no setting for this but a class in a jar.
"""

from collections.abc import Callable
from typing import Any

from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_LOG = "org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog"
_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"


class _FencedFiles:
    """The files of a log as Spark's own manager has them; each new one after a look."""

    class Java:
        """What py4j reads: the Java interface that Spark calls."""

        implements = (_FILES,)

    def __init__(self, files: Any, check_owner: Callable[[], None]) -> None:
        self._files = files
        self._check_owner = check_owner

    def createAtomic(self, path: Any, overwrite: bool) -> Any:  # noqa: N802 - Spark's own
        self._check_owner()
        return self._files.createAtomic(path, overwrite)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)


def fence_logs(spark: SparkSession, query: StreamingQuery, check_owner: Callable[[], None]) -> None:
    """Let `check_owner` raise before each further entry of the query's offsets and commits."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - pyspark has no public way
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    files = gateway.jvm.java.lang.Class.forName(_LOG).getDeclaredField("fileManager")
    files.setAccessible(True)
    running: Any = query._jsq.streamingQuery()  # noqa: SLF001 - likewise
    for log in (running.offsetLog(), running.commitLog()):
        files.set(log, _FencedFiles(log.fileManager(), check_owner))
