"""`unskew run`: execute a job until it ends or is stopped."""

import argparse
import os
import sys
import traceback
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from unskew.config.arguments import add_job_argument, choice, parse_whole_number
from unskew.config.errors import ExternalError, UnskewError, UsageError

if TYPE_CHECKING:
    from unskew.config.loader import Loaded

_LOG_FORMS = ("auto", "json", "console")
_DRY_ROWS = 20
_DRY_ROWS_MAX = 10_000
_SPARK_LEVELS = ("off", "error", "warn", "info")


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the command's arguments."""
    parser.description = (
        "Run a job. On a terminal one line shows the latest batch, otherwise each batch is a line"
        " of the log, on standard error. Ctrl-C and SIGTERM let the batch under way finish, or"
        " abandon it after 15 s; the next start goes on from the checkpoint. Exit codes: 0 the job"
        " ended or SIGTERM stopped it, 130 Ctrl-C did, 1 something outside failed, 2 the command"
        " line or the job file is wrong."
    )
    add_job_argument(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="replace a value of the file, for example --set source.bootstrap_servers=kafka:9092"
        " or --set spark.spark.master=local[2]; VALUE is YAML",
    )
    parser.add_argument(
        "--available-now", action="store_true", help="process what is there, then end"
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="print what the first records of the source become, a line of JSON for each row, and"
        " end: sinks, dead letters and checkpoint are not touched",
    )
    parser.add_argument(
        "--rows",
        type=parse_whole_number(1, _DRY_ROWS_MAX),
        metavar="N",
        help=f"with --dry-run: how many records (default: {_DRY_ROWS})",
    )
    parser.add_argument(
        "--log",
        type=choice(*_LOG_FORMS),
        metavar="FORM",
        default="auto",
        help=f"how to report: {', '.join(_LOG_FORMS)} (default: auto, by the terminal)",
    )
    parser.add_argument(
        "--spark-log",
        type=choice(*_SPARK_LEVELS),
        metavar="LEVEL",
        help=f"what of Spark's own log to show: {', '.join(_SPARK_LEVELS)} (default: off, with"
        " --debug error)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Run the job; the exit code."""
    from unskew.config.loader import load  # noqa: PLC0415 - keeps --help fast
    from unskew.config.types.secrets import redact  # noqa: PLC0415

    loaded = load(
        arguments.job, parse_overrides(arguments.set, available_now=arguments.available_now)
    )
    if loaded.job is None or loaded.problems:
        raise UsageError(*loaded.lines())
    if arguments.rows is not None and not arguments.dry_run:
        raise UsageError("run: --rows: belongs to --dry-run")
    quiet_spark(arguments.spark_log, debug=arguments.debug)
    kind: type[UnskewError] = ExternalError
    try:
        return (_run_dry if arguments.dry_run else _run)(loaded, arguments)
    except UnskewError as error:
        # Of some expressions only Spark knows that the file is wrong.
        kind = UsageError if isinstance(error, UsageError) else ExternalError
        lines = [redact(line, loaded.hidden) for line in error.problems]
        cause: BaseException = error
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:  # noqa: BLE001 - whatever it is, a user gets one line
        text = " ".join(str(error).split())[:300]
        line = f"{loaded.job.name}: unexpected {type(error).__name__}: {text}"
        lines = [redact(line, loaded.hidden) + "; --debug shows where"]
        cause = error
    if arguments.debug:
        sys.stderr.write(redact("".join(traceback.format_exception(cause)), loaded.hidden))
    if arguments.log == "json":
        from unskew.jobs.observe.terminal import Log  # noqa: PLC0415

        Log(loaded.job.name, "json").write_event("failed", "error", problems=lines)
        return kind.exit_code
    raise kind(*lines) from None


def _run_dry(loaded: "Loaded", arguments: argparse.Namespace) -> int:
    from unskew.jobs.engine.samples.dry_run import show_first_rows  # noqa: PLC0415

    assert loaded.job is not None
    for line in show_first_rows(loaded.job, arguments.rows or _DRY_ROWS):
        print(line)
    return 0


def _run(loaded: "Loaded", arguments: argparse.Namespace) -> int:
    # Spark, numba and Prometheus take a second to import: the job is checked before.
    from unskew.jobs.checkpoint.files import open_journal  # noqa: PLC0415
    from unskew.jobs.checkpoint.identity import describe_changed_code  # noqa: PLC0415
    from unskew.jobs.checkpoint.lock import check_not_in_use  # noqa: PLC0415
    from unskew.jobs.engine.preflight import check_before_spark  # noqa: PLC0415
    from unskew.jobs.engine.service import run_in_session  # noqa: PLC0415
    from unskew.jobs.engine.session import JvmEndedError  # noqa: PLC0415
    from unskew.jobs.local.signals import Stop, call_on_signals  # noqa: PLC0415
    from unskew.jobs.observe.board import make_board  # noqa: PLC0415
    from unskew.jobs.observe.health import Health, compute_stall_seconds  # noqa: PLC0415
    from unskew.jobs.observe.hold_metrics import hold_metrics_after_failure  # noqa: PLC0415
    from unskew.jobs.observe.page.page import LivePage  # noqa: PLC0415
    from unskew.jobs.observe.terminal import Line, Log  # noqa: PLC0415
    from unskew.jobs.observe.web.server import MetricsServer  # noqa: PLC0415
    from unskew.jobs.query.pipeline import Pipeline  # noqa: PLC0415

    job = loaded.job
    assert job is not None
    # The query takes the lock itself; here a second start is refused before Spark is started.
    check_not_in_use(job.checkpoint)
    stop = Stop()
    live = arguments.log == "auto" and sys.stderr.isatty()
    health = Health(compute_stall_seconds(job))
    board = make_board(job, health)
    page = LivePage(job, health)
    with ExitStack() as stack:
        stack.enter_context(call_on_signals(stop))
        server = stack.enter_context(MetricsServer(job.metrics, board, health, page))
        status: Any = Line(job.name) if live else Log(job.name, arguments.log)
        stack.enter_context(hold_metrics_after_failure(job, health, board, status, stop))
        check_before_spark(Pipeline(job, open_journal(job)))
        status.write_event("metrics", url=server.url, page=server.page_url)
        if changed := describe_changed_code(job):
            status.write_event("operator_changed", what=changed)
        try:
            run_in_session(job, board, health, page, status, stop=stop)
        except JvmEndedError:
            # A signal to the whole process group may have ended the JVM before us.
            if not stop.asked:
                raise
    return stop.exit_code


def parse_overrides(
    words: list[str], *, available_now: bool = False, command: str = "run"
) -> dict[str, object]:
    """Parse the values of `--set`, by path."""
    from unskew.config.problems.problem import DocumentError  # noqa: PLC0415
    from unskew.config.yaml.reader import parse  # noqa: PLC0415

    values: dict[str, object] = {}
    for word in words:
        path, equals, text = word.partition("=")
        if not equals or not all(path.split(".")):
            raise UsageError(f"{command}: --set: PATH=VALUE, such as partitions=32 (got {word!r})")
        if not text.strip():
            raise UsageError(f"{command}: --set {path}: no value; '' is an empty text, null none")
        try:
            node, problems = parse(text)
        except DocumentError as error:
            problems = list(error.problems)
        if problems:
            raise UsageError(f"{command}: --set {path}: {problems[0].rule}")
        values[path] = node.data()
    if available_now:
        values["trigger"] = {"type": "available_now"}
    return values


def quiet_spark(level: str | None = None, *, debug: bool) -> None:
    """Set Spark's log level before it starts; off by default."""
    if not debug:
        from pyspark.logger import PySparkLogger  # noqa: PLC0415

        # Pyspark logs every exception with its trace beside raising it.
        for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
            PySparkLogger.getLogger(name).disabled = True
    level = level or ("error" if debug else "off")
    given = os.environ.get("SPARK_SUBMIT_OPTS", "")
    os.environ["SPARK_SUBMIT_OPTS"] = f"{given} -Dunskew.log.level={level}".strip()
