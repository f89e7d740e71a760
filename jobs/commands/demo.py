"""`unskew demo`: a real Kafka, a real Spark, the same stream under two groupings."""

import argparse
import importlib.util
from pathlib import Path

from rich.console import Console

from unskew.config.arguments import choice, parse_whole_number
from unskew.config.errors import UsageError
from unskew.grouping.options.printed import show
from unskew.grouping.registry import GROUPINGS
from unskew.jobs.commands.run import quiet_spark

_PNG = "unskew-demo.png"
_LINES = (1_000, 10_000_000)


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Count the words of a stream in which one word flares up, under `key` and under another"
        " grouping, with a live page and a summary at the end. Exit codes: 0 totals and dead"
        " letters are exactly what was written, 1 they are not or something outside failed,"
        " 2 wrong options, 130 Ctrl-C."
    )
    parser.add_argument(
        "--grouping", default="level", help="what to compare with `key` (default: level)"
    )
    parser.add_argument(
        "--lines", default="105000", help="lines of ten words to write (default: 105000)"
    )
    parser.add_argument(
        "--png", metavar="FILE", help=f"the picture (default: {_PNG}, if matplotlib is there)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run it and print the summary; 1 if a total is wrong."""
    lines, png = _read_options(arguments)
    from unskew.jobs.demo import run as demo  # noqa: PLC0415 - keeps --help fast
    from unskew.jobs.demo.results import describe_left_out, draw, make_summary  # noqa: PLC0415

    quiet_spark(debug=arguments.debug)
    console = Console()
    outcomes = demo.run(list(dict.fromkeys(["key", arguments.grouping])), lines, console)
    console.print()
    console.print(make_summary(outcomes))
    console.print(describe_left_out(outcomes), soft_wrap=True)
    console.print(
        f"Each word costs {demo.COST} after the shuffle, as a lookup or a model would. Plain counts"
        " need no grouping: Spark's own groupBy combines them before the shuffle.",
        soft_wrap=True,
    )
    if png is None:
        console.print("For a picture: pip install 'unskew[plot]'", markup=False)
    else:
        first = (demo.BATCHES - demo.FLARING) // 2
        draw(png, outcomes, range(first, first + demo.FLARING))
        console.print(f"picture: {png}")
    return 0 if all(outcome.exact for outcome in outcomes) else 1


def _read_options(arguments: argparse.Namespace) -> tuple[int, Path | None]:
    """Read the number of lines and the picture's path; an error reports every problem."""
    problems = []
    try:
        choice(*GROUPINGS)(arguments.grouping)
    except argparse.ArgumentTypeError as error:
        problems.append(f"demo: --grouping: {error}")
    lines = 0
    try:
        lines = parse_whole_number(*_LINES)(arguments.lines)
    except argparse.ArgumentTypeError as error:
        problems.append(f"demo: --lines: {error}")
    plot = importlib.util.find_spec("matplotlib") is not None
    png = Path(arguments.png or _PNG)
    if arguments.png and not plot:
        problems.append("demo: --png: needs matplotlib: pip install 'unskew[plot]'")
    if arguments.png and (png.suffix != ".png" or not png.parent.is_dir()):
        problems.append(
            f"demo: --png: FILE.png in a folder that is there (got {show(arguments.png)})"
        )
    if problems:
        raise UsageError(*problems)
    return lines, png if plot else None
