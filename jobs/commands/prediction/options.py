"""What `compare` is asked to predict, from words to checked values; all problems at once."""

import argparse
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_core import PydanticCustomError

from unskew.config.errors import UsageError
from unskew.config.types.units import Duration
from unskew.grouping.options.printed import show
from unskew.grouping.simulation.batch_cost import Constants
from unskew.grouping.simulation.loads import Work
from unskew.grouping.simulation.scenario import PARTITIONS_MAX, SOURCES_MAX
from unskew.grouping.simulation.specs import SpecError
from unskew.grouping.simulation.streams.traces import Trace, open_trace
from unskew.jobs.kafka.newest_records import Limits
from unskew.jobs.local.machine_constants import (
    Calibration,
    find_calibration_file,
    read_calibration,
)

RECORDS_MAX = 10_000_000
_BATCH_RECORDS_MAX = 1_000_000_000
_RECORDS, _SECONDS = 1_000_000, 15
_SOURCES = ("job", "topic", "file", "trace")
_PREDICTION_ONLY = (
    *("job", "topic", "file", "bootstrap_servers", "key", "cost", "setup", "partial_bytes"),
    *("slots", "records", "seconds", "client_config", "constants", "html"),
)
_SIMULATION_ONLY = (
    "cost_us",
    "arrival_per_second",
    "batch_seconds",
    "feedback_seconds",
    "seed",
    "speeds",
    "points",
    "plot",
)
_SECONDS_ONLY = ("cost", "setup", "partial_bytes", "slots", "constants", "html")
"""Options without effect under --table."""


@dataclass(frozen=True)
class Question:
    """Whose keys, how many partitions, what the operator takes, and how to answer."""

    partitions: int | None
    """None where the job says it."""
    slots: int | None
    batch_records: int | None
    work: Work | None
    """None where the job's operator is measured."""
    limits: Limits
    calibration: Calibration | None
    """None for the constants of the machine that the benchmarks ran on."""
    job: str | None = None
    topic: str | None = None
    servers: str = ""
    file: str | None = None
    trace: Trace | None = None
    trace_spec: str = ""
    sources: int | None = None
    """Tasks that read and route; by default as many as slots."""
    key: str | None = None
    client_options: dict[str, str] = field(default_factory=dict)
    show_keys: bool = False
    html: Path | None = None
    table: bool = False
    """Are files and writers of a table asked for, not seconds of a batch?"""

    @property
    def constants(self) -> Constants:
        """The model's constants of a batch's overhead, beside the work."""
        return self.calibration.constants if self.calibration else Constants()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a prediction."""
    parser.add_argument("job", nargs="?", metavar="JOB", help="a job: its source and operator")
    asked = parser.add_argument_group("predicted batches, also of `none` and `local`")
    for name, value, text in (
        ("--topic", "T", "sample the newest records of a topic"),
        ("--bootstrap-servers", "HOST:PORT,...", "its brokers"),
        ("--file", "PATH", "sample a file, a record's value a line"),
        (
            "--key",
            "EXPR",
            "the key in SQL over `key` and `value` (default: `key` of a topic, `value` of a file)",
        ),
        (
            "--cost",
            "T",
            "the operator's time for a record, such as 50us (default: a job's own, measured)",
        ),
        ("--setup", "T", "its time for each key that a task meets, such as 1ms"),
        ("--partial-bytes", "N", "size of one of its partial results"),
        ("--slots", "N", "partitions worked on at once (default: a local job's threads, else all)"),
        ("--records", "N", f"sample at most N records (default: {_RECORDS:,})"),
        ("--seconds", "N", f"stop reading after N seconds (default: {_SECONDS})"),
        ("--client-config", "FILE", "librdkafka's options, such as sasl.username=..., one a line"),
        ("--constants", "FILE", "a calibration (default: this user's; see unskew calibrate)"),
        ("--html", "FILE.html", "write a report"),
    ):
        asked.add_argument(name, metavar=value, help=text)
    asked.add_argument("--show-keys", action="store_true", help="show keys, not their hashes")
    asked.add_argument(
        "--table",
        action="store_true",
        help="predict files and the slowest writer of a table that is partitioned by the key",
    )


def is_prediction(arguments: argparse.Namespace) -> bool:
    """Is a prediction asked for, and not a simulation of balance alone, which is of a trace?"""
    return (
        arguments.trace is None
        or arguments.show_keys
        or arguments.table
        or any(getattr(arguments, name) is not None for name in _PREDICTION_ONLY)
    )


def read_question(arguments: argparse.Namespace) -> Question:
    """The question; an error reports every problem."""
    reader = _Reader(arguments)
    reader.check_sources()
    values: dict[str, Any] = {
        "partitions": reader.number("partitions", PARTITIONS_MAX),
        "slots": reader.number("slots", PARTITIONS_MAX),
        "batch_records": reader.number("batch_records", _BATCH_RECORDS_MAX),
        "work": reader.work(),
        "limits": Limits(
            reader.number("records", RECORDS_MAX) or _RECORDS,
            reader.number("seconds", 3600) or _SECONDS,
        ),
        "calibration": reader.attempt(reader.calibration),
        "client_options": reader.attempt(reader.client_options) or {},
        "html": reader.check_html(),
        "trace": reader.attempt(reader.trace),
        "sources": reader.number("sources", SOURCES_MAX),
    }
    if values["partitions"] is None and arguments.job is None and not reader.problems:
        reader.problems.append("--partitions: missing; the number of partitions to predict for")
    if reader.problems:
        raise UsageError(*dict.fromkeys(reader.problems))
    return Question(
        job=arguments.job,
        topic=arguments.topic,
        servers=arguments.bootstrap_servers or "",
        file=arguments.file,
        trace_spec=arguments.trace or "",
        key=arguments.key,
        show_keys=arguments.show_keys,
        table=arguments.table,
        **values,
    )


class _Reader:
    """Reads options one by one and keeps their problems."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self.problems: list[str] = []

    def attempt(self, read: Callable[[], Any]) -> Any:
        """Call `read`; on an error keep its problems and return None."""
        try:
            return read()
        except (UsageError, SpecError) as error:
            self.problems += error.problems
        return None

    def check_sources(self) -> None:
        """Check that exactly one source is given, with the options that it needs."""
        arguments = self._arguments
        named = [name for name in _SOURCES if getattr(arguments, name) is not None]
        flags = [name.upper() if name == "job" else f"--{name}" for name in named]
        if len(named) != 1:
            got = " and ".join(flags) or "none"
            self.problems.append(
                f"compare: give exactly one of JOB, --topic, --file and --trace (got {got})"
            )
        if arguments.topic is not None and not arguments.bootstrap_servers:
            self.problems.append("--bootstrap-servers: missing; the brokers of --topic")
        if arguments.topic is None and (arguments.bootstrap_servers or arguments.client_config):
            self.problems.append("--topic: missing; the topic to sample on the brokers")
        if arguments.key is not None and (arguments.job is not None or arguments.trace is not None):
            self.problems.append("--key: belongs to --topic or --file; a job names its own key")
        if arguments.key is not None and not arguments.key.strip():
            self.problems.append('--key: is empty; SQL over `key` and `value`, such as "value"')
        for name in _SIMULATION_ONLY:
            if getattr(arguments, name) is not None:
                flag = name.replace("_", "-")
                self.problems.append(f"--{flag}: belongs to a simulation of --trace without --cost")
        for name in _SECONDS_ONLY if arguments.table else ():
            if getattr(arguments, name) is not None:
                flag = name.replace("_", "-")
                self.problems.append(f"--{flag}: has no effect with --table; remove it")

    def number(self, name: str, most: int) -> int | None:
        """A whole number from 1; None if it was not given."""
        text = getattr(self._arguments, name)
        if text is None:
            return None
        if not (text.isascii() and text.isdecimal() and 1 <= int(text) <= most):
            flag = name.replace("_", "-")
            self.problems.append(f"--{flag}: a whole number from 1 to {most} (got {show(text)})")
            return None
        return int(text)

    def work(self) -> Work | None:
        """Read what the operator takes; None if it is to be measured."""
        arguments = self._arguments
        if arguments.table:
            return None
        carried = self.number("partial_bytes", 1_000_000)
        seconds = {name: self._parse_duration(name) for name in ("cost", "setup")}
        if arguments.cost is not None:
            return Work(seconds["cost"], seconds["setup"], carried or 0)
        if arguments.setup is not None or arguments.partial_bytes is not None:
            self.problems.append(
                "--cost: missing, but --setup and --partial-bytes need it; such as --cost 50us"
            )
        elif arguments.job is None:
            self.problems.append(
                "--cost: missing; an operator's time for a record, such as 50us, or name a JOB,"
                " whose operator is measured"
            )
        return None

    def _parse_duration(self, name: str) -> float:
        text = getattr(self._arguments, name)
        if text is None:
            return 0.0
        try:
            return Duration.parse(text).seconds
        except PydanticCustomError as error:
            self.problems.append(f"--{name}: {error.message()} (got {show(text)})")
        return 0.0

    def calibration(self) -> Calibration | None:
        """The named one, or this user's, if there is one."""
        named = self._arguments.constants
        if named is None:
            return read_calibration(find_calibration_file())
        calibration = read_calibration(Path(named))
        if calibration is None:
            raise UsageError(f"--constants: {named}: no such file; unskew calibrate writes it")
        return calibration

    def client_options(self) -> dict[str, str]:
        """The lines of a file of options."""
        named = self._arguments.client_config
        if named is None:
            return {}
        try:
            lines = Path(named).read_text().splitlines()
        except OSError as error:
            raise UsageError(f"--client-config: {named}: {error.strerror}") from error
        pairs = [line.partition("=") for line in lines if line.strip() and line.lstrip()[0] != "#"]
        wrong = [name for name, equals, _ in pairs if not equals]
        if wrong:
            raise UsageError(f"--client-config: {named}: name=value, one a line")
        return {name.strip(): value.strip() for name, _, value in pairs}

    def trace(self) -> Trace | None:
        """The trace, if one is named."""
        return open_trace(self._arguments.trace) if self._arguments.trace is not None else None

    def check_html(self) -> Path | None:
        """Check the file of the report."""
        text = self._arguments.html
        if text is None:
            return None
        if not text.endswith(".html"):
            self.problems.append(f"--html: a file name that ends with .html (got {show(text)})")
        elif not Path(text).absolute().parent.is_dir():
            self.problems.append(f"--html: {Path(text).parent}: no such folder")
        return Path(text)
