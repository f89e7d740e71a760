"""`unskew generate`: a realistic skewed stream into Kafka or a file, and its exact totals."""

import argparse
import sys

from unskew.jobs.generator.options import add_options, read_plan


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.description = (
        "Write a skewed stream for a shipped job into Kafka or a file: `lines` of text, `trades`,"
        " `posts`, or `keys` of a trace, such as those like published streams (wikipedia-like,"
        " twitter-words-like, trades-like, memetracker-like, amazon-like, stocks-like,"
        " hashtags-like). Without --records or --duration it goes on until Ctrl-C. The same options"
        " and --start give the same bytes. Durations are a number and a unit, such as 30s or 2min."
        " Exit codes: 0 all was written or SIGTERM ended it, 130 Ctrl-C did (what was handed over"
        " is written still), 1 something outside failed or what was handed over took too long to"
        " write after a stop, 2 the command line is wrong."
    )
    add_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the stream; the exit code."""
    plan = read_plan(arguments)
    # Arrow and the Kafka client take a moment to import: options are checked before.
    from unskew.jobs.generator.oracle import Oracle  # noqa: PLC0415
    from unskew.jobs.generator.outputs import open_output  # noqa: PLC0415
    from unskew.jobs.generator.progress import Progress  # noqa: PLC0415
    from unskew.jobs.generator.registry import open_stream, start_totals  # noqa: PLC0415
    from unskew.jobs.generator.stream_writer import Writer  # noqa: PLC0415
    from unskew.jobs.local.signals import Stop, call_on_signals  # noqa: PLC0415

    def report_unfinished() -> None:
        print("generate: stopped while records were still unwritten", file=sys.stderr)

    stop = Stop(overdue_code=1, overdue=report_unfinished)
    with call_on_signals(stop):
        stream = open_stream(plan.settings)
        oracle = None
        if plan.oracle is not None:
            oracle = Oracle(plan.oracle, stream, start_totals(stream))
        output = open_output(plan.target, plan.settings.stream)
        target_rate = plan.settings.rate if plan.paced else None
        progress = Progress(plan.settings.stream, output.name, target_rate)
        Writer(stream, output, oracle, progress, stop).run(paced=plan.paced)
    return stop.exit_code if stop.asked else 0
