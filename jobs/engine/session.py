"""Starting Spark with what a streaming job here needs, and stopping it without leftovers."""

import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from py4j.protocol import Py4JError
from pyspark import SparkContext, accumulators
from pyspark.core import context
from pyspark.sql import SparkSession

from unskew.config.errors import ExternalError
from unskew.config.models.decode import AvroDecode
from unskew.config.models.grouping import LocalGrouping
from unskew.config.models.job import Job
from unskew.config.types.secrets import reveal
from unskew.grouping.spark.private_files import make_private_folder
from unskew.grouping.spark.warm_up import start_workers
from unskew.jobs.checkpoint.lock import make_jvm_lock
from unskew.jobs.engine.launch import launch
from unskew.jobs.engine.spark_errors import translate_spark_errors
from unskew.jobs.local.jars import fetch_jars
from unskew.jobs.local.java import find_java_home
from unskew.jobs.local.resources import find_resource
from unskew.jobs.operators.registry import is_computed_by_spark
from unskew.jobs.query.source import make_file_settings
from unskew.jobs.sinks.registry import list_targets

# RocksDB with a changelog keeps state off the heap and its commits small.
# Up to 500 records that a task fetched beyond its end are kept for the next batch, which often
# reads them elsewhere. Spark keeps them for five minutes: those of hundreds of short batches.
_SETTINGS = {
    "spark.master": "local[*]",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.kafka.consumer.fetchedData.cache.timeout": "20s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "5s",
}
_JVM_STOP_SECONDS = 30.0
# A killed JVM closes its connections a moment before its exit can be seen.
_JVM_ENDS_SECONDS = 0.5
JVM_ENDED = (
    "the JVM ended (killed?); unless you ended it, look in the log of the kernel or container for"
    " the out-of-memory killer. The next start continues from the checkpoint"
)
# The thresholds of the JVM's optimizing compiler, ten times its own. Until the first batch's end it
# takes a third of the JVM's processor time, from the work that is waited for, and nearly all of it
# for what a start calls some thousand times. What a batch calls for each record gets there anyway.
# Code that waits for it is larger, and a JVM fails whose room for code is full: so it has more.
_OPTIMIZE_LATER = "-XX:ReservedCodeCacheSize=512m " + " ".join(
    f"-XX:Tier4{name}Threshold={calls}"
    for name, calls in (
        ("Invocation", 50_000),
        ("MinInvocation", 6_000),
        ("Compile", 150_000),
        ("BackEdge", 400_000),
    )
)
# Only where everything runs on one machine. Loopback: executors elsewhere could not reach it.
# Daemon: workers are forked with everything imported.
# Unix sockets: over TCP each task waits 40 ms (Nagle's algorithm and delayed acknowledgement).
_LOCAL_SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.python.daemon.module": "unskew.jobs.engine.python_daemon",
    "spark.python.unix.domain.socket.enabled": "true",
}
# Spark would take a frame from any local user, or from any pod, before it knows whose it is. With
# these masters it makes a secret for each start itself, and hands it on by no command line.
_AUTHENTICATED = {"spark.authenticate": "true"}
_ENCRYPTED = {
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
}
# A record of five bytes may say that it holds a text of two gigabytes, or a list as long: Avro
# would make room for it before it looks whether there are as many bytes.
_AVRO_LIMITS = " ".join(
    f"-Dorg.apache.avro.limits.{name}.maxLength={most}"
    for name, most in (("bytes", 64 << 20), ("string", 64 << 20), ("collectionItems", 1_000_000))
)
_DRIVER_OPTIONS, _EXECUTOR_OPTIONS = (
    f"spark.{each}.extraJavaOptions" for each in ("driver", "executor")
)
SHORT_LIVED = {"spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
"""For a JVM that lives for a minute: its optimizing compiler and its collector's threads take the
cores from the work, and what they gain comes later. Half of the processor time of `unskew test`."""
_NAMED_SECRETS = ("spark.authenticate.secret", "spark.authenticate.secret.file")
_FILE_MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
_BY_FILE_SYSTEM = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
)


@contextmanager
def open_job_session(job: Job) -> Iterator[SparkSession]:
    """The Spark session that a job asks for; its exceptions are raised as those of this project."""
    targets = [target for _, target in list_targets(job)]
    settings = {
        "spark.sql.streaming.stopTimeout": "10s",
        **(make_file_settings(job.partitions) if isinstance(job.grouping, LocalGrouping) else {}),
        **{name: value for target in targets for name, value in target.spark_settings().items()},
        **reveal(job.spark),
        **_limit_avro(job),
        "spark.sql.shuffle.partitions": str(job.merge.partitions),
    }
    jar_sets = {name for each in targets for name in each.jar_sets}
    # Spark's exceptions are texts of its JVM: they are read before the session ends it. What ends
    # the start of one has the same causes.
    with (
        translate_spark_errors(job),
        session(job.name, settings, jar_sets) as spark,
        translate_spark_errors(job),
    ):
        yield spark


def give_head_start(spark: SparkSession, job: Job) -> list[threading.Thread]:
    """Begin to start what the first batch needs, in threads, while the driver plans the query.

    Planning takes seconds of one core. Spark's Python workers take as long for their imports, and
    the library of the state store is unpacked first: without a head start both wait for the plan.
    What fails here fails again in the first batch, which reports it.
    """
    threads: list[threading.Thread] = []
    if not is_computed_by_spark(job):
        # Kernels are loaded when the query's routing is known.
        threads.append(start_workers(spark, _load_nothing))
    if str(spark.sparkContext.master).startswith("local"):
        threads.append(threading.Thread(target=_load_state_store, args=(spark,), daemon=True))
        threads[-1].start()
    return threads


def _load_nothing() -> None:
    """Load nothing beyond what a worker imports."""


def _load_state_store(spark: SparkSession) -> None:
    with suppress(Exception):  # also where the session ends meanwhile
        classes: Any = spark._jvm  # noqa: SLF001 - Python's API has no such call
        classes.org.apache.spark.sql.execution.streaming.state.RocksDBLoader.loadLibrary()


def _limit_avro(job: Job) -> dict[str, str]:
    """The limits for executors, where records are Avro's; those of the job itself go before."""
    if not isinstance(job.decode, AvroDecode):
        return {}
    return {_EXECUTOR_OPTIONS: f"{_AVRO_LIMITS} {reveal(job.spark).get(_EXECUTOR_OPTIONS, '')}"}


@contextmanager
def session(
    name: str, settings: Mapping[str, str] | None = None, jar_sets: Iterable[str] = ()
) -> Iterator[SparkSession]:
    """A Spark session with the Kafka connector and more jars; stopped at the end, its JVM too."""
    _quiet_broken_connections()
    # pyspark's launcher and its Python workers read these; the job need not set them.
    os.environ["JAVA_HOME"] = str(find_java_home())
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    brought = [path for each in ("spark", *sorted(jar_sets)) for path in fetch_jars(each)]
    log_settings = f"-Dlog4j2.configurationFile={find_resource('log4j2.properties')}"
    own = {"spark.jars": ",".join(map(str, brought)), _DRIVER_OPTIONS: log_settings}
    chosen = {**_SETTINGS, **own, **(settings or {})}
    if chosen["spark.master"].startswith("local"):
        chosen = {**_LOCAL_SETTINGS, **chosen}
        # Before the job's own options, which are valid where there are both.
        chosen[_DRIVER_OPTIONS] = f"{_OPTIMIZE_LATER} {chosen[_DRIVER_OPTIONS]}"
        # Without an address Spark looks one up, and warns of it, before its logging is configured.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    chosen = {**choose_authentication(chosen), **chosen}
    chosen[_DRIVER_OPTIONS] = f"{_AVRO_LIMITS} {chosen[_DRIVER_OPTIONS]}"
    _make_local_folders(chosen.get("spark.local.dir", ""))
    for key, value in chosen.items():
        builder = builder.config(key, value)
    try:
        with defer_signals():
            launch(chosen)
            spark = builder.getOrCreate()
        yield spark
    except Exception as error:
        if has_jvm_ended() or _is_stopped():
            raise JvmEndedError(f"{name}: {JVM_ENDED}") from error
        raise
    finally:
        _stop()


class JvmEndedError(ExternalError):
    """The JVM ended, or is ending, although this process did not stop Spark."""


def choose_authentication(settings: Mapping[str, str]) -> dict[str, str]:
    """Make Spark's ports ask for its secret, where Spark makes one itself or the user names one."""
    master = settings["spark.master"]
    if master.startswith("k8s://"):
        return {**_AUTHENTICATED, **_ENCRYPTED}
    named = any(name in settings for name in _NAMED_SECRETS)
    local = master.startswith("local") and not master.startswith("local-cluster")
    return dict(_AUTHENTICATED) if named or local else {}


def _make_local_folders(folders: str) -> None:
    """Make the folders of Spark's own files, private; one that cannot be made Spark names."""
    with suppress(OSError):
        for folder in filter(None, map(str.strip, folders.split(","))):
            make_private_folder(Path(folder))


def has_jvm_ended() -> bool:
    """Has the JVM of this process's session ended, or does it end within a moment?"""
    gateway = SparkContext._gateway  # noqa: SLF001 - pyspark has no public way to ask
    process = getattr(gateway, "proc", None)
    if process is None:
        return False
    try:
        process.wait(_JVM_ENDS_SECONDS)
    except subprocess.TimeoutExpired:
        return False
    return True


def _is_stopped() -> bool:
    """Has the JVM stopped Spark, as it does first when a signal ends it?"""
    active: Any = SparkContext._active_spark_context  # noqa: SLF001 - no public way
    try:
        return active is not None and bool(active._jsc.sc().isStopped())  # noqa: SLF001
    except (Py4JError, OSError):
        return True


@contextmanager
def lock_in_jvm(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Hold a second lock from within the JVM, which may outlive this process by seconds."""
    path = make_jvm_lock(checkpoint)
    if path is None:
        yield
        return
    java: Any = spark._jvm.java  # type: ignore[union-attr]  # noqa: SLF001 - no public way
    file = java.io.RandomAccessFile(path, "rw")
    with suppress(Py4JError):  # a mount without locks
        file.getChannel().tryLock()
    try:
        yield
    finally:
        with suppress(Py4JError, OSError):  # the JVM is gone, and the lock with it
            file.close()


@contextmanager
def change_settings(spark: SparkSession, changes: Mapping[str, str]) -> Iterator[None]:
    """Change these of the session's settings for what starts in here; then put them back."""
    before = {name: spark.conf.get(name, None) for name in changes}
    for name, value in changes.items():
        spark.conf.set(name, value)
    try:
        yield
    finally:
        for name, known in before.items():
            if known is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, known)


@contextmanager
def rename_within_jvm(spark: SparkSession, checkpoint: str) -> Iterator[None]:
    """Let queries that start in here rename a local checkpoint's files within the JVM.

    By default Spark uses Hadoop's FileContext, which there starts a process for every look at a
    name: a tenth of a second in a batch of four state partitions. The other manager is as atomic,
    rename(2) both times, and writes the same checksums; but on HDFS only FileContext replaces a
    file that is there.
    """
    # pyspark has no public way to read Hadoop's settings.
    hadoop: Any = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001
    location = checkpoint if ":/" in checkpoint else str(hadoop.get("fs.defaultFS"))
    if not location.startswith("file:") or spark.conf.get(_FILE_MANAGER, None) is not None:
        yield
        return
    with change_settings(spark, {_FILE_MANAGER: _BY_FILE_SYSTEM}):
        yield


@contextmanager
def defer_signals() -> Iterator[None]:
    """Hold Ctrl-C and SIGTERM back until the session is there.

    pyspark's launcher, interrupted while its JVM starts, loses that JVM, which then keeps running.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    arrived: list[int] = []

    def note(number: int, _frame: object) -> None:
        if not arrived:
            # Without an answer one would press Ctrl-C again.
            print("stopping once Spark has started", file=sys.stderr, flush=True)
        arrived.append(number)

    signals = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(number, note) for number in signals]
    # A context would put its own handler in place of ours, long before the session is complete.
    kept = SimpleNamespace(signal=lambda *_: None, SIGINT=signal.SIGINT)
    try:
        with patch.object(context, "signal", kept):
            yield
    finally:
        for deferred, handler in zip(signals, before, strict=True):
            signal.signal(deferred, handler)
        for number in arrived[:1]:
            signal.raise_signal(number)


def _quiet_broken_connections() -> None:
    """Print no trace of a connection that breaks because the JVM ended before this process.

    py4j logs each, and each exception of a callback, beside raising it.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    logging.getLogger().addFilter(_is_not_of_py4j)
    servers: tuple[Any, ...] = (
        accumulators.AccumulatorTCPServer,
        accumulators.AccumulatorUnixServer,
    )
    for server in servers:
        server.handle_error = lambda *_: None


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    # One of its modules logs by the root logger.
    return record.module != "java_gateway"


def _stop() -> None:
    """Stop Spark and wait for its JVM, which could otherwise run longer than this process."""
    # pyspark has no public way to end the JVM, nor to start another one afterwards.
    active, gateway = SparkContext._active_spark_context, SparkContext._gateway  # noqa: SLF001
    process = getattr(gateway, "proc", None)
    try:
        if active is not None:
            if process is not None and process.poll() is not None:
                # Nothing is left to stop in the JVM; what is left is in this process.
                active._jsc = None  # noqa: SLF001
            with suppress(OSError, EOFError):  # it may end at this moment
                active.stop()
    finally:
        if gateway is not None:
            gateway.shutdown()
            _end(process)
        SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
        SparkSession._instantiatedSession = None  # noqa: SLF001


def _end(process: "subprocess.Popen[bytes] | None") -> None:
    """Close the JVM's standard input, at which it ends; kill it if it does not end in time."""
    if process is None:
        return
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_JVM_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
