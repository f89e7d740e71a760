"""Parses the options of `unskew generate` into a plan; reports all problems at once."""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unskew.config.arguments import checked, number, parse_whole_number
from unskew.config.errors import UsageError
from unskew.config.models.base import topic
from unskew.config.types.units import Duration
from unskew.grouping.options.printed import show
from unskew.grouping.options.suggestions import suggest_nearest
from unskew.jobs.generator.settings import FileTarget, KafkaTarget, OracleSettings, Plan, Settings

STREAMS = {"lines": "word_count", "trades": "vwap", "posts": "hashtags", "keys": "word_count"}
"""The streams, each with the shipped job that reads it."""
SERVERS = "KAFKA_BOOTSTRAP_SERVERS"
_SERVERS_DEFAULT = "127.0.0.1:9092"
_FILE_START = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Option:
    """One option: how it is read, and its default (for each stream, where they differ)."""

    value: str
    read: Callable[[str], Any]
    default: str | dict[str, str] | None
    summary: str

    def get_default(self, stream: str) -> str | None:
        """Look up the default for a stream."""
        return self.default.get(stream) if isinstance(self.default, dict) else self.default

    @property
    def help(self) -> str:
        """The text of `--help`."""
        if self.default is None:
            return self.summary
        if isinstance(self.default, str):
            return f"{self.summary} (default: {self.default})"
        each = ", ".join(f"{name} {value}" for name, value in self.default.items())
        return f"{self.summary} (default: {each})"


def _parse_duration(text: str) -> int:
    return checked(Duration.parse)(text).microseconds


def _parse_positive_duration(text: str) -> int:
    micros = _parse_duration(text)
    if not micros:
        raise argparse.ArgumentTypeError(f"a duration longer than 0 s (got {show(text)})")
    return micros


def _parse_moment(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        rule = f"a time such as {_FILE_START}"
        raise argparse.ArgumentTypeError(f"{rule} (got {show(text)})") from None
    if not 1970 < moment.year < 2200:
        raise argparse.ArgumentTypeError(f"a year from 1971 to 2199 (got {show(text)})")
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000) * 1000


def _check_writable(text: str) -> str:
    if Path(text).is_dir() or not text:
        raise argparse.ArgumentTypeError(f"a file's name (got {show(text)})")
    if not Path(text).parent.is_dir():
        raise argparse.ArgumentTypeError(f"a file in a folder that is there (got {show(text)})")
    return text


def _check_trace(text: str) -> str:
    # Numba takes a moment to import, and only the stream `keys` needs it.
    from unskew.grouping.simulation.specs import SpecError  # noqa: PLC0415
    from unskew.grouping.simulation.streams.traces import read_synthetic_trace  # noqa: PLC0415

    try:
        read_synthetic_trace(text)
    except SpecError as error:
        raise argparse.ArgumentTypeError("; ".join(error.problems)) from None
    return text


_SHARE = number(0, 1)
OPTIONS = {
    "seed": Option("N", parse_whole_number(0, 2**63 - 1), "1", "same seed, same stream"),
    "rate": Option("R", number(0.01, 1e7), "1000", "records a second, also of event time"),
    "records": Option("N", parse_whole_number(1, 10**12), None, "end after N records"),
    "duration": Option(
        "TIME", _parse_positive_duration, None, "end after this much time of the stream"
    ),
    "keys": Option(
        "N",
        parse_whole_number(1, 1_000_000),
        {"lines": "50000", "trades": "500", "posts": "10000", "keys": "1"},
        "different words, symbols or hashtags",
    ),
    "skew": Option(
        "Z",
        number(0, 10),
        {"lines": "1.1", "trades": "0.8", "posts": "1.0", "keys": "0"},
        "Zipf's exponent",
    ),
    "trace": Option(
        "SPEC",
        _check_trace,
        {"keys": "wikipedia-like"},
        "draw keys from a trace of `unskew simulate`, such as twitter-words-like:records=5000000",
    ),
    "drift": Option(
        "TIME",
        _parse_duration,
        {"lines": "30s", "trades": "0s", "posts": "0s", "keys": "0s"},
        "each key moves up a rank in such a time, and the hottest to the last; 0s: never",
    ),
    "flare": Option(
        "SHARE",
        _SHARE,
        {"lines": "0", "trades": "0.4", "posts": "0.5", "keys": "0"},
        "one key, another each time, flares up to this share: at once, of posts it rises and fades",
    ),
    "flare-every": Option(
        "TIME", _parse_positive_duration, "2min", "a flare comes in the middle of each such time"
    ),
    "flare-for": Option(
        "TIME",
        _parse_positive_duration,
        {"lines": "20s", "trades": "20s", "posts": "60s", "keys": "20s"},
        "how long a flare takes",
    ),
    "rejected": Option("SHARE", _SHARE, "0", "records that the job must reject, of every kind"),
    "late": Option("SHARE", _SHARE, "0", "records whose event time lies back"),
    "late-by": Option("TIME", _parse_duration, "20s", "how far back, at most"),
    "start": Option(
        "TIME",
        _parse_moment,
        None,
        f"event time of the first record, such as {_FILE_START}; a topic keeps records for its"
        " retention after it (default: now, with --fast such that the last one's is now; in a file"
        " that)",
    ),
    "words": Option(
        "N", parse_whole_number(2, 1000), "10", "words a line on average, half as many or more"
    ),
    "users": Option("N", parse_whole_number(1, 10_000_000), "100000", "different users of posts"),
    "topic": Option(
        "NAME",
        checked(topic),
        {name: name for name in STREAMS} | {"keys": "lines"},
        "the topic to write to",
    ),
    "partitions": Option(
        "N", parse_whole_number(1, 100_000), None, "how many the topic must have, at least"
    ),
    "out": Option(
        "FILE",
        _check_writable,
        None,
        "write a file instead, as fast as it goes: a record a line, or Kafka's columns if FILE"
        " ends with .parquet",
    ),
    "oracle": Option(
        "FILE",
        _check_writable,
        None,
        "write the job's exact totals here, as JSON (in memory until the end)",
    ),
    "window": Option("TIME", _parse_positive_duration, None, "totals of windows of event time"),
    "slide": Option("TIME", _parse_positive_duration, None, "a window begins in each such time"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options unconverted: argparse would stop at the first wrong value."""
    streams = ", ".join(f"{name} (for {job})" for name, job in STREAMS.items())
    parser.add_argument("stream", metavar="STREAM", help=f"one of {streams}")
    for name, option in OPTIONS.items():
        parser.add_argument(f"--{name}", metavar=option.value, help=option.help)
    parser.add_argument(
        "--fast", action="store_true", help="do not wait: --rate holds for event times only"
    )
    parser.add_argument(
        "--bootstrap-servers",
        metavar="HOST:PORT,...",
        help=f"the brokers (default: {SERVERS}, or {_SERVERS_DEFAULT})",
    )
    parser.add_argument(
        "--kafka",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a setting of the client, such as security.protocol=SASL_SSL, or with a secret from a"
        " file sasl.password=@FILE; may repeat",
    )


def read_plan(arguments: argparse.Namespace) -> Plan:
    """Read the plan; an error reports every problem."""
    problems: list[str] = []
    stream = arguments.stream
    if stream not in STREAMS:
        problems.append(f"STREAM: unknown (got {show(stream)}); {suggest_nearest(stream, STREAMS)}")
        stream = "lines"
    values: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        text = getattr(arguments, name.replace("-", "_"))
        given = option.get_default(stream) if text is None else text
        try:
            values[name] = None if given is None else option.read(given)
        except argparse.ArgumentTypeError as error:
            problems.append(f"--{name}: {error}")
    kafka = _read_kafka_settings(arguments.kafka, problems)
    problems += _find_contradictions(arguments, values) + _find_options_without_use(arguments)
    if problems:
        raise UsageError(*[f"generate: {problem}" for problem in problems])
    return _build_plan(arguments, stream, values, kafka)


def _read_kafka_settings(words: list[str], problems: list[str]) -> tuple[tuple[str, str], ...]:
    settings = []
    for word in words:
        name, equals, value = word.partition("=")
        if not (equals and name):
            problems.append(f"--kafka: NAME=VALUE (got {show(word)})")
        if value.startswith("@"):
            try:
                value = Path(value[1:]).read_text().rstrip("\n")
            except (OSError, UnicodeDecodeError) as error:
                problems.append(f"--kafka {name}: {value[1:]}: cannot be read: {error}")
        settings.append((name, value))
    return tuple(settings)


def _find_contradictions(arguments: argparse.Namespace, values: dict[str, Any]) -> list[str]:
    problems = []
    if arguments.records and arguments.duration:
        problems.append("--records and --duration: only one of them ends the stream")
    endless = not (arguments.records or arguments.duration or arguments.stream == "keys")
    if arguments.out and endless:
        problems.append("--out: a file must end: add --records or --duration")
    if arguments.out:
        given = [
            f"--{name.replace('_', '-')}"
            for name in ("topic", "partitions", "bootstrap_servers", "kafka")
            if getattr(arguments, name)
        ]
        problems += [f"--out and {name}: a file has none; leave one out" for name in given]
    if not arguments.oracle:
        given = [f"--{name}" for name in ("window", "slide") if getattr(arguments, name)]
        problems += [f"{name}: needs --oracle, which it configures; add that" for name in given]
    elif arguments.slide and not arguments.window:
        problems.append("--slide: windows overlap; add their length, --window")
    window, slide = values.get("window"), values.get("slide")
    if window and slide and slide > window:
        problems.append(f"--slide: at most --window (got {arguments.slide} and {arguments.window})")
    every, length = values.get("flare-every"), values.get("flare-for")
    if values.get("flare") and every and length and length > every:
        problems.append("--flare-for: at most --flare-every")
    return problems


def _find_options_without_use(arguments: argparse.Namespace) -> list[str]:
    """Find options that only another stream has."""
    if arguments.stream != "keys":
        what = "--trace: only of the stream keys; the others have --keys, --skew and --drift"
        return [what] if arguments.trace else []
    given = [name for name in _DRAWN if getattr(arguments, name.replace("-", "_")) is not None]
    return [f"--{name}: not of the stream keys, which has the trace's own" for name in given]


def _build_plan(
    arguments: argparse.Namespace,
    stream: str,
    values: dict[str, Any],
    kafka: tuple[tuple[str, str], ...],
) -> Plan:
    records = values["records"]
    if values["duration"] is not None:
        records = max(1, round(values["duration"] * values["rate"] / 1_000_000))
    if values["trace"] is not None:
        from unskew.grouping.simulation.streams.traces import read_synthetic_trace  # noqa: PLC0415

        there = read_synthetic_trace(values["trace"])[1].records
        records = there if records is None else min(records, there)
    target: KafkaTarget | FileTarget
    if arguments.out:
        target, start = FileTarget(values["out"]), _parse_moment(_FILE_START)
    else:
        servers = arguments.bootstrap_servers or os.environ.get(SERVERS) or _SERVERS_DEFAULT
        target = KafkaTarget(servers, values["topic"], values["partitions"], kafka)
        start = time.time_ns() // 1_000_000 * 1000
        if arguments.fast and records is not None:
            # Brokers refuse a time that is far ahead.
            start -= round(records / values["rate"] * 1000) * 1000
    settings = Settings(
        stream,
        start=start if values["start"] is None else values["start"],
        records=records,
        flare_every=values["flare-every"],
        flare_for=values["flare-for"],
        late_by=values["late-by"],
        **{name: values[name] for name in _SAME},
    )
    oracle = None
    if values["oracle"]:
        oracle = OracleSettings(values["oracle"], values["window"], values["slide"])
    return Plan(settings, target, oracle, paced=not (arguments.fast or arguments.out))


_DRAWN = ("keys", "skew", "drift", "flare", "flare-every", "flare-for", "words", "users")
"""What a trace decides in the place of these options, and what its records do not have."""
_SAME = (
    *("seed", "keys", "skew", "drift", "rate"),
    *("flare", "rejected", "late", "words", "users", "trace"),
)
"""Options whose value goes into the settings under their own name."""
