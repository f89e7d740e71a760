"""`unskew topics`: make the Kafka topics that jobs read and write, before their first start."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from unskew.config.arguments import parse_whole_number
from unskew.config.errors import ExternalError, UsageError

if TYPE_CHECKING:
    from unskew.jobs.kafka.admin import Admin

_ANSWER_SECONDS = 15.0
_LEFT_TO_THE_BROKER = -1
_PARTITIONS_MAX = 10_000
_REPLICATION_MAX = 100


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Make the topics that jobs read from and write to, on the brokers that they name. A topic"
        " that exists stays as it is: if it has fewer partitions than --partitions, it is reported"
        " as an error, once the others are made. Topics of results are compacted: they keep the"
        " last total of each key, and of windows only as long as the brokers keep records. Prints"
        " a line a topic."
    )
    parser.add_argument(
        "jobs",
        nargs="+",
        metavar="JOB",
        help="a job file, or the name of a shipped job such as word_count",
    )
    parser.add_argument(
        "--partitions",
        type=parse_whole_number(1, _PARTITIONS_MAX),
        default=_LEFT_TO_THE_BROKER,
        metavar="N",
        help="partitions of each new topic (default: the brokers')",
    )
    parser.add_argument(
        "--replication",
        type=parse_whole_number(1, _REPLICATION_MAX),
        default=_LEFT_TO_THE_BROKER,
        metavar="N",
        help="replicas of each new topic (default: the brokers')",
    )


def run(arguments: argparse.Namespace) -> int:
    """Make what is missing."""
    # Imported here to keep --help fast.
    from unskew.config.loader import load  # noqa: PLC0415
    from unskew.jobs.kafka.admin import NoBrokerError, admin, describe_no_answer  # noqa: PLC0415

    loaded = [load(name) for name in arguments.jobs]
    problems = [line for each in loaded for line in each.lines()]
    if problems:
        raise UsageError(*problems)
    for line in _report_patterns([each.job for each in loaded]):
        print(line, flush=True)
    for servers, topics in _collect_topics([each.job for each in loaded]).items():
        try:
            with admin(servers, _ANSWER_SECONDS) as client:
                known = client.count_partitions()
                for line in _make_topics(
                    client, topics, known, arguments.partitions, arguments.replication
                ):
                    print(line, flush=True)
        except NoBrokerError as error:
            raise ExternalError(
                describe_no_answer(f"topics: {servers}", _ANSWER_SECONDS)
            ) from error
        problems += _report_missing_partitions(topics, known, arguments.partitions)
    if problems:
        raise ExternalError(*problems)
    return 0


def _collect_topics(jobs: list[Any]) -> Mapping[str, Mapping[str, dict[str, str]]]:
    """The topics with their settings, by brokers."""
    from unskew.config.models.source import KafkaSource  # noqa: PLC0415
    from unskew.jobs.sinks.registry import list_targets  # noqa: PLC0415

    needed: dict[str, dict[str, dict[str, str]]] = {}
    for job in jobs:
        for written in (topic for _, target in list_targets(job) for topic in target.topics(job)):
            _reject_secured(job.name, written.client_options)
            servers = written.client_options["kafka.bootstrap.servers"]
            needed.setdefault(servers, {})[written.name] = dict(written.settings)
        if isinstance(job.source, KafkaSource):
            _reject_secured(job.name, job.source.options)
            read = job.source.subscribe or job.source.assign or ()
            # What a job writes and another reads keeps the settings of the one that writes it.
            for topic in read:
                needed.setdefault(job.source.bootstrap_servers, {}).setdefault(topic, {})
    return needed


def _report_patterns(jobs: list[Any]) -> Iterator[str]:
    from unskew.config.models.source import KafkaSource  # noqa: PLC0415

    for job in jobs:
        if isinstance(job.source, KafkaSource) and job.source.pattern:
            yield f"{job.source.pattern}: source.pattern names no topics; create its topics by hand"
        elif not _collect_topics([job]):
            yield f"{job.name}: neither reads nor writes a topic"


def _reject_secured(job: str, options: Mapping[str, Any]) -> None:
    """Refuse SASL and TLS options: they are for Kafka's Java client, which is not used here."""
    from unskew.config.types.secrets import reveal  # noqa: PLC0415
    from unskew.jobs.kafka.options import find_security_options  # noqa: PLC0415

    if names := find_security_options(reveal(options)):
        raise UsageError(
            f"topics: {job}: {names[0]}: unskew topics cannot use TLS or SASL; create the"
            " topics with Kafka's kafka-topics.sh"
        )


def _report_missing_partitions(
    topics: Iterable[str], known: Mapping[str, int], partitions: int
) -> Iterator[str]:
    for topic in sorted(topics):
        there = known.get(topic, partitions)
        if there < partitions:
            yield (
                f"topics: {topic}: has {there} partitions, --partitions asks for {partitions};"
                " add some with Kafka's own kafka-topics.sh, or ask for fewer"
            )


def _make_topics(
    client: "Admin",
    topics: Mapping[str, dict[str, str]],
    known: Mapping[str, int],
    partitions: int,
    replicas: int,
) -> Iterator[str]:
    from unskew.jobs.kafka.admin import TopicError  # noqa: PLC0415

    for topic in sorted(topics.keys() & known.keys()):
        yield f"{topic}: is there, partitions: {known[topic]}"
    for topic in sorted(topics.keys() - known.keys()):
        try:
            # Another start of the same command may have been quicker.
            client.create(topic, topics[topic], partitions, replicas)
        except TopicError as error:
            raise ExternalError(f"topics: {topic}: cannot be made: {error}") from error
        yield f"{topic}: made"
