"""`unskew broker`: a local Kafka in the foreground."""

import argparse
from pathlib import Path

from unskew.config.arguments import checked, parse_whole_number
from unskew.config.errors import ExternalError
from unskew.config.models.base import topic
from unskew.jobs.kafka.broker import Broker

_PARTITIONS_MAX = 1000  # more would not fit into the heap of a broker this small


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--port",
        type=parse_whole_number(1, 65535),
        help="the port to listen on (default: a free one)",
    )
    parser.add_argument(
        "--data", type=Path, help="keep topics here (default: a temporary folder, removed at end)"
    )
    parser.add_argument(
        "--topic",
        action="append",
        type=_parse_topic,
        default=[],
        metavar="NAME[:PARTITIONS]",
        help="make a topic",
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the address when it answers, then wait for Ctrl-C."""
    with Broker(arguments.port, arguments.data) as broker:
        for name, partitions in arguments.topic:
            broker.create_topics([name], partitions)
        print(broker.address, flush=True)
        code = broker.child.wait()
        raise ExternalError(f"broker: ended by itself, code {code}", *broker.child.log_tail())


def _parse_topic(text: str) -> tuple[str, int]:
    name, colon, partitions = text.partition(":")
    count = parse_whole_number(1, _PARTITIONS_MAX)(partitions) if colon else 1
    return checked(topic)(name), count
