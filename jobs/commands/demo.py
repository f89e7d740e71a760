"""`unskew demo`: a real Kafka, a real Spark, the same stream under two groupings."""

import argparse

from rich.console import Console

from config.errors import UsageError
from grouping.registry import GROUPINGS
from jobs import demo


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument(
        "--grouping", default="level", help="what to compare with `key` (default: level)"
    )
    parser.add_argument("--lines", type=int, default=200_000, help="lines of ten words to write")


def run(arguments: argparse.Namespace) -> int:
    """Run it and print the summary; 1 if a total is wrong."""
    if arguments.grouping not in GROUPINGS:
        names = ", ".join(GROUPINGS)
        raise UsageError(f"demo: --grouping: one of {names} (got {arguments.grouping!r})")
    if not 1_000 <= arguments.lines <= 10_000_000:
        raise UsageError(f"demo: --lines: from 1000 to 10000000 (got {arguments.lines})")
    console = Console()
    groupings = list(dict.fromkeys(["key", arguments.grouping]))
    outcomes = demo.run(groupings, arguments.lines, console)
    for outcome in outcomes:
        console.print(f"\nwords a partition under [bold]{outcome.grouping}[/]")
        console.print(*demo.bars(outcome), sep="\n", highlight=False)
    console.print()
    console.print(demo.summary(outcomes))
    return 0 if all(outcome.exact for outcome in outcomes) else 1
