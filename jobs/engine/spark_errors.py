"""Spark's exceptions as one line: the innermost cause with a text, without its trace."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from unskew.config.errors import ExternalError
from unskew.config.models.job import Job
from unskew.grouping.errors import GroupingError
from unskew.jobs.checkpoint.spark_log import list_damaged_logs
from unskew.jobs.operators.user_code.failing_rows import ROW_MARK
from unskew.jobs.sinks.registry import make_sinks


def _find_jvm_cause(lines: list[str]) -> str:
    """Find the innermost cause of a Java exception, in its trace as py4j prints it."""
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    first = next((line[2:] for line in lines if line.startswith(": ")), "")
    return shorten(causes[-1] if causes else first)


SPARK_ERRORS = (PySparkException, Py4JError)
"""The exceptions that pyspark raises when something fails in the JVM."""
CAUSES_MAX = 20
LENGTH_MAX = 600
_BEGINNING = 500
_READ_MAX = 4_000
# Parts of a text that only Spark's developers can use.
_CLASS_TAG = re.compile(r"^\[[A-Z0-9_]+(\.[A-Z0-9_]+)*\]\s*")
_TAIL = re.compile(r"\s*(SQLSTATE: \w+|;\s*line \d+ pos \d+|\bline \d+, pos \d+).*$", re.DOTALL)
_JAVA_CLASS = re.compile(r"^(?:[a-z][\w$]*\.)+([A-Z][\w$]*)(?::\s*|$)")
_PYTHON_LINE = re.compile(r"^(?:([\w.]+)\.)?(\w+)(?:: (.*))?$", re.DOTALL)
_OURS = "unskew."
_FROM_JVM = "py4j.protocol.Py4JJavaError"
_CAUSE = "Caused by: "
_TRACE = "Traceback (most recent call last)"
# What Spark says of a file in its logs without naming it.
_DAMAGED_LOG = re.compile(
    r"Incomplete log file|No content to map|malformed log file|UnsupportedLogVersion|"
    r"JsonParseException|JsonEOFException|MismatchedInputException|InvalidDefinitionException|"
    r"UnrecognizedPropertyException"
)
_LOST_TASK = re.compile(r"Job aborted due to stage failure.*?\(TID \d+\) \([^)]*\): ", re.DOTALL)
_SPARK_ONLY = frozenset({"SparkException", "AnalysisException", "ParseException", "Exception"})

# Of two commits to a Delta table at the same moment, the later: its transaction was undone.
_DELTA_CONFLICT = re.compile(
    r"Concurrent(Append|DeleteRead|DeleteDelete|Write)Exception|(Metadata|Protocol)ChangedException"
)
_NO_ROOM = "no space left on device: make room; the checkpoint goes on from the last whole batch"
_KNOWN = (
    (
        re.compile(
            r"KAFKA_DATA_LOSS|data may have been (lost|missed)|failOnDataLoss|OffsetOutOfRange|"
            r"Fetch position .* is out of range|Cannot fetch offset"
        ),
        (
            "records that the checkpoint expects are gone from Kafka: expired, or their topic was"
            " deleted and created again. source.fail_on_data_loss: false continues without them; a"
            " new checkpoint starts over"
        ),
    ),
    (
        re.compile(r"UnknownTopicOrPartition|does not host this topic"),
        (
            "source or sinks: a topic is not there (any more); unskew topics JOB makes it, or"
            " change the job"
        ),
    ),
    (
        re.compile(r"Failed to find data source: kafka|ClassNotFoundException: .*kafka"),
        "the Kafka connector is missing; unskew jars fetches it",
    ),
    (
        re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|CONCURRENT_QUERY|[Cc]oncurrent update to the"),
        "checkpoint: another query writes to it at this moment; run a job once",
    ),
    (
        re.compile(r"ConcurrentTransactionException"),
        "sinks: another start of this query adds its batches to the Delta table; run a job once",
    ),
    (
        _DELTA_CONFLICT,
        (
            "sinks: another writer, such as OPTIMIZE, changed the Delta table at the same moment:"
            " {cause}"
        ),
    ),
    (
        re.compile(r"JAVA_GATEWAY_EXITED"),
        "Spark's JVM did not start; its output is above",
    ),
    (
        re.compile(r"No space left on device"),
        _NO_ROOM,
    ),
    (
        # UNRELEASED is left out: another task holds the state's lock, and nothing is damaged.
        re.compile(
            r"CANNOT_LOAD_STATE_STORE\.(?!UNRELEASED|\w*OUT_OF_MEMORY)|"
            r"STATE_STORE_UNEXPECTED_EMPTY_FILE|STATE_STORE_ROW_CHECKSUM"
        ),
        (
            "checkpoint: {checkpoint}/state: the merge's state cannot be loaded: {cause}; if a file"
            " in it is damaged or missing, restore it from a copy, or name another checkpoint"
            " folder to start over"
        ),
    ),
    (
        re.compile(r"SaslAuthenticationException"),
        "Kafka refuses user or password: {cause}; check kafka.sasl.jaas.config and the mechanism",
    ),
    (
        re.compile(r"SunCertPathBuilderException|CertificateException|SSLHandshakeException"),
        "Kafka's certificate is not trusted: {cause}; check the truststore, and the servers' names",
    ),
    (
        re.compile(r"(Topic|Group|Cluster|TransactionalId)AuthorizationException"),
        "Kafka does not permit this user: {cause}; it needs Read on what it reads, Write elsewhere",
    ),
    (
        re.compile(
            r"TimeoutException: (Call|Topic|Timed out waiting|Timeout)|No resolvable bootstrap|"
            r"Timeout expired while fetching|not present in metadata"
        ),
        "Kafka does not answer, or not about these topics; check brokers, options and permissions",
    ),
)


# Of Kafka; of PostgreSQL, by the names of libpq's errors in psycopg; of object stores and HDFS, by
# Hadoop's clients and by pyarrow's, with which the journal is read and written; of Delta.
_PASSING = re.compile(
    r"TimeoutException: |DisconnectException|NetworkException|NotLeaderOrFollower|"
    r"(Leader|Broker|Coordinator)NotAvailable|No resolvable bootstrap|Timeout expired while|"
    r"psycopg(\.errors)?\.(OperationalError|AdminShutdown|CrashShutdown|CannotConnectNow|"
    r"IdleInTransactionSessionTimeout|DeadlockDetected|TooManyConnections)|"
    r"ConnectException|Socket(Timeout)?Exception|UnknownHostException|NoRouteToHostException|"
    r"SlowDown|Service ?Unavailable|TooManyRequests|RequestTimeout|"
    r"(S3|Gcs|Abfs|HttpResponse)\w*Exception.*\b(429|500|502|503|504)\b|"
    r"AWS Error (SLOW_DOWN|THROTTLING|SERVICE_UNAVAILABLE|NETWORK_CONNECTION|REQUEST_TIMEOUT|"
    r"INTERNAL_FAILURE|UNKNOWN \(HTTP status (429|500|502|503|504)\))|"
    r"google::cloud::Status\((UNAVAILABLE|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|INTERNAL|ABORTED)|"
    r"Azure Error: \[(ServerBusy|OperationTimedOut|InternalError)\]|" + _DELTA_CONFLICT.pattern
)
_LASTING = re.compile(
    r"password authentication failed|no pg_hba|does not exist|permission denied|"
    r"AuthenticationException|AuthorizationException"
)


class PassingError(ExternalError):
    """A fault of another service that may pass."""


class ConflictError(PassingError):
    """Another writer's commit to the same table came first: all else works."""


@contextmanager
def translate_spark_errors(job: Job) -> Iterator[None]:
    """Raise Spark's exceptions as an ExternalError of one line."""
    try:
        yield
    except SPARK_ERRORS as error:
        raise _choose_kind(error)(explain_spark_error(job, error)) from error
    except GroupingError as error:  # by the journal, in the driver
        raise ExternalError(str(error)) from error
    except OSError as error:  # likewise
        if may_pass(error):
            raise PassingError(f"{job.name}: {shorten(str(error))}") from error
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ExternalError(f"{job.name}: {_NO_ROOM}") from error


def _choose_kind(error: BaseException) -> type[ExternalError]:
    if not may_pass(error):
        return ExternalError
    return ConflictError if _DELTA_CONFLICT.search(_join_causes(error)) else PassingError


def may_pass(error: BaseException) -> bool:
    """Is it a fault of another service that may pass, such as a broker that is away?"""
    everything = _join_causes(error)
    return bool(_PASSING.search(everything)) and not _LASTING.search(everything)


def _join_causes(error: BaseException) -> str:
    return "\n".join(part for text in list_causes(error) for part in _cut_plan(text))


def explain_spark_error(job: Job, error: BaseException) -> str:
    """One line that says why the query failed."""
    texts = list_causes(error)
    innermost = next((text for text in reversed(texts) if text.strip()), str(error))
    if _DAMAGED_LOG.search(innermost):
        return f"{job.name}: {_find_damaged_log(job)}: {shorten(innermost)}"
    everything = "\n".join(part for text in texts for part in _cut_plan(text))
    for pattern, meaning in _KNOWN:
        if pattern.search(everything):
            cause = shorten(innermost).rstrip(".")
            return f"{job.name}: {meaning.format(cause=cause, checkpoint=job.checkpoint)}"
    return f"{job.name}: {shorten(innermost)}"


def _cut_plan(text: str) -> Iterator[str]:
    """Keep a text's beginning: further on there may be a plan, which may contain any word.

    Of a worker's trace also the exceptions, which are at its end.
    """
    yield text[:_BEGINNING]
    if _TRACE in text:
        yield shorten(text)
        for line in text.splitlines():
            if line.startswith((_CAUSE, ": ")):
                yield line[:_BEGINNING]


def _find_damaged_log(job: Job) -> str:
    """Find which of Spark's logs cannot be read, and what to do."""
    with suppress(OSError, pa.ArrowException):
        damaged = list_damaged_logs(job.checkpoint)
        if damaged:
            return f"checkpoint: {', '.join(damaged)}: damaged or cut short; restore it from a copy"
        damaged = [file for sink in make_sinks(job) for file in sink.list_damaged_files()]
        if damaged:
            return f"sinks: {', '.join(damaged)}: damaged or cut short; restore it from a copy"
    return f"checkpoint: {job.checkpoint}: a log of Spark's in it is damaged; restore it"


def list_causes(error: BaseException) -> list[str]:
    """List the texts of an exception and its causes, outermost first, each after its class."""
    java: Any = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is None:
        cause = getattr(error, "_cause", None)
        own = str(getattr(error, "_desc", "") or error)
        return [own, *(list_causes(cause) if cause is not None else [])]
    texts = []
    try:
        for _ in range(CAUSES_MAX):
            texts.append(str(java.toString()))
            java = java.getCause()
            if java is None:
                break
    except Py4JError:  # the JVM is gone: return what was read so far
        pass
    return texts


def shorten(text: str) -> str:
    """Keep the part of a text that a user can use."""
    if _TRACE in text:
        return _find_python_error(text)
    # The patterns below take the square of the length of a run of blanks: the text is cut first.
    text = text.strip()[:_READ_MAX]
    lost = _LOST_TASK.search(text)
    if lost:
        return shorten(text[lost.end() :])
    kind = _JAVA_CLASS.match(text)
    simple = kind.group(1) if kind else ""
    rest = _CLASS_TAG.sub("", text[kind.end() :].strip() if kind else text.strip())
    rest = _TAIL.sub("", rest)
    first = re.split(r"\n== |\n\n|\n\s+at ", rest, maxsplit=1)[0]
    first = " ".join(first.split())[:LENGTH_MAX]
    if not first:
        return simple or "it failed without a reason"
    return first if not simple or simple in _SPARK_ONLY else f"{simple}: {first}"


def _find_python_error(text: str) -> str:
    """Find the last line of a worker's trace: the exception; without the class if it is ours."""
    lines = text.rpartition(_TRACE)[2].splitlines()
    ends = [line for line in lines if line and not line[0].isspace() and ":" in line]
    last = next((line for line in reversed(ends) if _PYTHON_LINE.match(line)), "a worker failed")
    if _FROM_JVM in last:
        return _find_jvm_cause(lines)
    match = _PYTHON_LINE.match(last)
    if match and (match.group(1) or "").startswith(_OURS):
        return ROW_MARK.sub("", match.group(3) or match.group(2))[:LENGTH_MAX]
    return last[:LENGTH_MAX]
