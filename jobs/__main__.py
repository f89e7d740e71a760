"""`unskew`, also `python -m unskew`: runs one command, turns errors into lines and exit codes."""

import argparse
import importlib
import os
import signal
import sys
import traceback
from types import ModuleType

from unskew import __version__
from unskew.config.arguments import CommandParser
from unskew.config.errors import UnskewError, UsageError
from unskew.grouping.errors import GroupingError
from unskew.grouping.options.printed import show
from unskew.grouping.options.suggestions import suggest_nearest

# A command's module is imported when it runs: `lint` loads no Spark, `--help` no numba.
COMMANDS = {
    "init": ("project.init", "write a small project: a job, its operator, its samples"),
    "test": ("project.try_out", "run a job over sample records and compare with what is expected"),
    "lint": ("job_files.lint", "check job files and print every problem"),
    "explain": ("job_files.explain", "print the effective job: defaults filled in, secrets hidden"),
    "schema": ("job_files.schema", "write the JSON schema of job files"),
    "run": ("run", "execute a job until it ends or is stopped"),
    "inspect": ("inspect", "show a job's balance, hot keys and sizes from its checkpoint"),
    "repair": ("repair", "set back a checkpoint's watermark that is in the future"),
    "table": ("table", "remove files of a table of Parquet files that no batch committed"),
    "dead-letters": ("dead_letters", "list a job's dead letters, or produce their records again"),
    "simulate": (
        "simulation.simulate",
        "route a trace with groupings and compare balance, state and time",
    ),
    "compare": (
        "simulation.compare",
        "predict batches of every grouping for your own keys, and say if one is needed",
    ),
    "calibrate": ("local.calibrate", "measure what `compare` must know of this machine"),
    "jars": ("local.jars", "fetch the JVM artifacts into the cache and print their paths"),
    "java": ("local.java", "print the JAVA_HOME that Spark and Kafka run on"),
    "topics": ("topics", "make the Kafka topics that jobs read and write"),
    "generate": ("generate", "write a skewed stream into Kafka or a file, and its exact totals"),
    "broker": ("local.broker", "run a local Kafka broker in the foreground"),
    "demo": ("demo", "run an example: broker, stream, Spark and a summary"),
}
"""The module in `jobs/commands/` and what the command does, by the command's name."""
EXIT_USAGE = UsageError.exit_code
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


def main(arguments: list[str] | None = None) -> int:
    """Run one command; the exit code."""
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    try:
        _check_command(words)
        parsed = _parser(words).parse_args(words)
    except UsageError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except GroupingError as error:  # a command's import: its kernels' cache cannot be used
        print(error, file=sys.stderr)
        return EXIT_USAGE
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # not under `nohup`
            signal.signal(number, _interrupt)
    try:
        code: int = _module(parsed.command).run(parsed)
        sys.stdout.flush()
    except KeyboardInterrupt:
        print(f"unskew {parsed.command}: interrupted", file=sys.stderr)
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # The reader of the pipe ended (`| head`): no error, and no message has a reader.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE_CLOSED
    except (UnskewError, GroupingError) as error:
        if parsed.debug:
            traceback.print_exc()
        print(error, file=sys.stderr)
        return error.exit_code if isinstance(error, UnskewError) else EXIT_USAGE
    return code


def _check_command(words: list[str]) -> None:
    if words and not words[0].startswith("-") and words[0] not in COMMANDS:
        suggestion = suggest_nearest(words[0], COMMANDS)
        raise UsageError(f"unskew: unknown command (got {show(words[0])}); {suggestion}")


def _parser(words: list[str]) -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="unskew", description="Skew-proof partitioning for PySpark Structured Streaming."
    )
    parser.add_argument("--version", action="version", version=f"unskew {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (_, summary) in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary.capitalize() + ".")
        command.add_argument("--debug", action="store_true", help="print the trace of an error")
        if name in words[:1]:
            _module(name).configure(command)
    return parser


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"unskew.jobs.commands.{COMMANDS[name][0]}")


def _interrupt(signum: int, _frame: object) -> None:
    # SIGTERM, or a closed terminal, ends a command as Ctrl-C does: nothing is left behind.
    signal.signal(signum, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
