"""Spark's own logs of a query, fenced: a start that was taken over makes no entry in them.

Of two entries of one number in its logs of offsets and commits Spark takes the first, whoever it is
from: on a checkpoint without locks also that of a driver that was frozen and woke up. So the two
logs of a running query make their files through `_FencedFiles`, which looks first whose the
checkpoint is. Spark has no setting for this but a class in a jar, and the field that they are put
into is private: where a Spark has another, the job runs without this fence, and says so.
"""

from collections.abc import Callable
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

_LOG = "org.apache.spark.sql.execution.streaming.checkpointing.HDFSMetadataLog"
_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.CheckpointFileManager"
_FIELD = "fileManager"


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


def fence_logs(
    spark: SparkSession, query: StreamingQuery, check_owner: Callable[[], None]
) -> str | None:
    """Let `check_owner` raise before each further entry of the query's offsets and commits.

    Where that is not possible, say what follows.
    """
    try:
        _fence(spark, query, check_owner)
    except Py4JNetworkError:
        raise  # the JVM is gone
    except Py4JError:
        return (
            f"Spark {spark.version} has other logs of offsets and commits than 4.2.0, and they are"
            " not fenced: on a checkpoint without locks, let no second start run beside a driver"
            " that may only be frozen"
        )
    return None


def _fence(spark: SparkSession, query: StreamingQuery, check_owner: Callable[[], None]) -> None:
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - pyspark has no public way
    ensure_callback_server_started(gateway)  # type: ignore[no-untyped-call]
    files = gateway.jvm.java.lang.Class.forName(_LOG).getDeclaredField(_FIELD)
    files.setAccessible(True)
    running: Any = query._jsq.streamingQuery()  # noqa: SLF001 - likewise
    for log in (running.offsetLog(), running.commitLog()):
        files.set(log, _FencedFiles(log.fileManager(), check_owner))
