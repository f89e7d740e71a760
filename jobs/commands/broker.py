"""`unskew broker`: a local Kafka in the foreground."""

import argparse
import re
from pathlib import Path

from unskew.config.errors import ExternalError
from unskew.jobs.kafka.broker import Broker

_PARTITIONS_MAX = 1000  # more would not fit into the heap of a broker this small


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--port", type=_port, help="the port to listen on (default: a free one)")
    parser.add_argument(
        "--data", type=Path, help="keep topics here (default: a temporary folder, removed at end)"
    )
    parser.add_argument(
        "--topic",
        action="append",
        type=_topic,
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


def _port(text: str) -> int:
    if not (text.isdecimal() and 1 <= int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"from 1 to 65535 (got {text!r})")
    return int(text)


def _topic(text: str) -> tuple[str, int]:
    name, _, partitions = text.partition(":")
    if not re.fullmatch(r"[A-Za-z0-9._-]{1,249}", name) or name in {".", ".."}:
        raise argparse.ArgumentTypeError(
            f"a name is 1 to 249 letters, digits, '.', '_' or '-' (got {name!r})"
        )
    number = partitions or "1"
    if not (number.isdecimal() and 1 <= int(number) <= _PARTITIONS_MAX):
        raise argparse.ArgumentTypeError(
            f"partitions are from 1 to {_PARTITIONS_MAX} (got {partitions!r})"
        )
    return name, int(number)
