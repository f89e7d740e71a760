"""`unskew broker`: a local Kafka in the foreground."""

import argparse
from pathlib import Path

from config.errors import OutsideError
from jobs.broker import Broker


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--port", type=_port, help="the port to listen on (default: a free one)")
    parser.add_argument(
        "--data", type=Path, help="keep topics here (default: a temporary folder, removed at end)"
    )
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME[:PARTITIONS]", help="make a topic"
    )


def run(arguments: argparse.Namespace) -> int:
    """Print the address when it answers, then wait for Ctrl-C."""
    with Broker(arguments.port, arguments.data) as broker:
        for topic in arguments.topic:
            name, _, partitions = topic.partition(":")
            broker.create_topics([name], int(partitions or 1))
        print(broker.address, flush=True)
        code = broker.child.wait()
        raise OutsideError(f"broker: ended by itself, code {code}", *broker.child.log_tail())


def _port(text: str) -> int:
    port = int(text)
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"from 1 to 65535 (got {port})")
    return port
