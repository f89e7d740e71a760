"""Checks before a query starts: master, folders, brokers, topics, databases, checkpoint.

They come before Spark starts, which takes seconds. But where a job has SQL expressions, or columns
of types that its operator may not take, what Spark says of those comes first: it needs no other
service, and brokers that are away are waited for.

Only what is certainly wrong is an error here. Where Kafka asks for SASL or TLS, the options are
those of the Java client, which no client here reads: there Spark's own error must do, as
`spark_errors` translates it.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

import pyarrow as pa
from pyspark.sql import SparkSession

from unskew.config.errors import ExternalError
from unskew.config.models.job import Job
from unskew.config.models.source import FilesSource, KafkaSource
from unskew.config.types.secrets import reveal
from unskew.grouping.errors import SnapshotError
from unskew.grouping.spark.locations import open_location
from unskew.grouping.spark.private_files import make_private_folder
from unskew.jobs.checkpoint.files import list_names
from unskew.jobs.checkpoint.identity import describe_unusable, has_routing_changed
from unskew.jobs.kafka.admin import NoBrokerError, admin, describe_missing_topic, describe_no_answer
from unskew.jobs.kafka.options import find_security_options
from unskew.jobs.query.check_expressions import check_expressions, needs_spark_first
from unskew.jobs.query.pipeline import Pipeline
from unskew.jobs.sinks.registry import list_targets
from unskew.jobs.sinks.result_writer import read_last_written

ANSWER_SECONDS = 5.0
_PREFIX = "kafka."
_CHECKPOINT = "checkpoint: "


def check_before_spark(pipeline: Pipeline) -> None:
    """The checks, unless Spark has something to judge first."""
    if not needs_spark_first(pipeline.job):
        check(pipeline)


def check_expressions_first(spark: SparkSession, pipeline: Pipeline) -> None:
    """Let Spark check the job's expressions, then run the checks that had to wait for that."""
    check_expressions(spark, pipeline.job)
    if needs_spark_first(pipeline.job):
        check(pipeline)


def check(pipeline: Pipeline) -> None:
    """Raise every problem there is, as one error."""
    job = pipeline.job
    problems = [
        *_check_folders(job),
        *_check_outputs_unused(job),
        *_check_brokers(job),
        *_check_targets(job),
    ]
    # What cannot be written is not read: the reason would be the same.
    if not any(problem.startswith(_CHECKPOINT) for problem in problems):
        problems += _check_checkpoint(pipeline)
    if problems:
        raise ExternalError(*problems)


def _check_folders(job: Job) -> Iterator[str]:
    """Folders of this machine that the job cannot write to; a remote one fails when Spark does."""
    for field, location in [("checkpoint", job.checkpoint), *_list_output_folders(job)]:
        if "://" in location and not location.startswith("file://"):
            continue
        try:
            _try_to_write(Path(open_location(location)[1]), private=not field.startswith("sinks"))
        except OSError as error:
            reason = error.strerror or str(error)
            yield f"{field}: {location}: cannot be written: {reason}; check the path and its owner"
    if isinstance(job.source, FilesSource) and "://" not in job.source.path:
        yield from _check_readable(job.source.path)


def _try_to_write(folder: Path, *, private: bool) -> None:
    """Make the folder, and a file in it that goes again; results keep the mode of the user's."""
    if private:
        make_private_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(prefix=".unskew-probe-", dir=folder):
        pass


def _list_output_folders(job: Job) -> Iterator[tuple[str, str]]:
    """List the folders that the job writes to, each with the field that names it."""
    for section, target in list_targets(job):
        for field, folder in target.folders().items():
            yield f"{section}.{field}", folder


def _check_outputs_unused(job: Job) -> Iterator[str]:
    """Report output folders that hold batches of another checkpoint."""
    root = job.checkpoint.rstrip("/")
    if _list_names(f"{root}/offsets"):
        return
    for field, location in _list_output_folders(job):
        if any(name.startswith("batch_id=") for name in _list_names(location)):
            yield (
                f"{field}: {location}: holds batches of another checkpoint, which this new one,"
                " counting from 0, would replace; name another folder, or move them away"
            )


def _list_names(location: str) -> list[str]:
    """Names in a folder; none if only Spark can open it, by Hadoop's settings."""
    with suppress(OSError, pa.ArrowException):
        return list_names(location)
    return []


def _check_targets(job: Job) -> Iterator[str]:
    """Run each target's own checks."""
    for section, target in list_targets(job):
        try:
            yield from (f"{section}: {problem}" for problem in target.problems(job))
        except ExternalError as error:
            yield from (f"{section}: {problem}" for problem in error.problems)


def _check_readable(location: str) -> Iterator[str]:
    if any(char in location for char in "*?[{"):
        return
    system, path = open_location(location)
    if system.get_file_info(path).type.name == "NotFound":
        yield f"source.path: {location}: does not exist; make the folder, files may come later"


def _check_checkpoint(pipeline: Pipeline) -> Iterator[str]:
    """Another job's checkpoint, or states and reports that the next batch could not read."""
    journal = pipeline.journal
    try:
        # Batches that run again are dropped before the next one, whatever is in them.
        written = read_last_written(pipeline.job)
        states = not has_routing_changed(pipeline.job)
        unreadable = journal.list_unreadable_files(written, states=states)
        yield from map(journal.describe_unreadable, unreadable)
    except ExternalError as error:
        yield from error.problems
    except SnapshotError as error:
        yield str(error)
    except OSError as error:
        yield describe_unusable(pipeline.job.checkpoint, error)
    except pa.ArrowException as error:  # errors of remote filesystems that are no OSError
        reason = str(error).partition("\n")[0]
        yield f"checkpoint: {pipeline.job.checkpoint}: cannot be used: {reason}"


def _check_brokers(job: Job) -> Iterator[str]:
    for (servers, wanted), options in _collect_topics(job).items():
        if not find_security_options(options):
            yield from _check_topics(servers, wanted)


TopicUses = tuple[tuple[str, str, bool], ...]
"""Where the job names a topic, the topic, and whether it is written to."""


def _collect_topics(job: Job) -> Mapping[tuple[str, TopicUses], Mapping[str, str]]:
    """The client's options, by brokers and topics."""
    topics: dict[str, list[tuple[str, str, bool]]] = {}
    options: dict[str, Mapping[str, str]] = {}
    source = job.source
    if isinstance(source, KafkaSource):
        servers = source.bootstrap_servers
        options[servers] = reveal(source.options)
        field = "source.subscribe" if source.subscribe else "source.assign"
        read = source.subscribe or list(source.assign or ())
        topics[servers] = [(field, topic, False) for topic in read]
    for section, target in list_targets(job):
        for topic in target.topics(job):
            client = dict(topic.client_options)
            servers = client.pop(f"{_PREFIX}bootstrap.servers")
            options[servers] = {**options.get(servers, {}), **client}
            written = (f"{section}.{topic.field}", topic.name, True)
            topics.setdefault(servers, []).append(written)
    return {(servers, tuple(wanted)): options[servers] for servers, wanted in topics.items()}


def _check_topics(servers: str, wanted: TopicUses) -> Iterator[str]:
    try:
        with admin(servers, ANSWER_SECONDS) as client:
            there = client.count_partitions()
            missing = [each for each in wanted if each[1] not in there]
            if any(written for _, _, written in missing) and client.allows_topic_creation():
                missing = [each for each in missing if not each[2]]
    except NoBrokerError:
        yield describe_no_answer(f"bootstrap_servers: {servers}", ANSWER_SECONDS)
        return
    for field, topic, _ in missing:
        yield describe_missing_topic(f"{field}: {topic} on {servers}", topic, there)
