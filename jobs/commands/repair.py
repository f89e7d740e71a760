"""`unskew repair`: set back the watermark of a checkpoint that one record moved into the future."""

import argparse
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from unskew.config.errors import ExternalError, UsageError
from unskew.grouping.options.printed import show

if TYPE_CHECKING:
    from unskew.jobs.checkpoint.watermark import LogFile

_EXAMPLE = "2026-03-01T12:00:00Z"


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the arguments."""
    parser.description = (
        "Set back the watermark of a checkpoint that a record with a wrong event time moved into"
        " the future, so that records count again that are dropped as late now. The job must not"
        " run. Prints what was dropped and is not brought back."
    )
    parser.add_argument(
        "checkpoint", metavar="CHECKPOINT", help="the job's checkpoint, path or URI"
    )
    parser.add_argument(
        "--watermark",
        metavar="TIME",
        help=f"the watermark to set, such as {_EXAMPLE} (default: the latest in the checkpoint"
        " that is not after now)",
    )


def run(arguments: argparse.Namespace) -> int:
    """Write the watermark, and print what that means."""
    # Imported here to keep --help fast.
    from unskew.jobs.checkpoint.lock import lock_checkpoint  # noqa: PLC0415
    from unskew.jobs.checkpoint.watermark import log_files, set_back  # noqa: PLC0415

    checkpoint = arguments.checkpoint
    asked = None if arguments.watermark is None else _parse_time(arguments.watermark)
    try:
        if not log_files(checkpoint):
            raise ExternalError(f"repair: {checkpoint}: has no batches; name a job's checkpoint")
        with lock_checkpoint(checkpoint):
            files = log_files(checkpoint)
            watermark = _find_latest_past(checkpoint, files) if asked is None else asked
            changed = set_back(checkpoint, files, watermark)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"repair: {checkpoint}: cannot be changed: {reason}") from error
    for line in _report(files, watermark) if changed else _report_unchanged(files):
        print(line)
    return 0


def _find_latest_past(checkpoint: str, files: Sequence["LogFile"]) -> int:
    now = int(datetime.now(UTC).timestamp() * 1000)
    past = [file.watermark for file in files if 0 < file.watermark <= now]
    if not past:
        raise UsageError(
            f"repair: {checkpoint}: has no watermark earlier than now; name one with"
            f" --watermark, e.g. {_EXAMPLE}"
        )
    return max(past)


def _report_unchanged(files: Sequence["LogFile"]) -> Iterator[str]:
    newest = max(file.watermark for file in files)
    yield f"watermark {_format_time(newest)}: not later than the one asked for; nothing was changed"


def _report(files: Sequence["LogFile"], watermark: int) -> Iterator[str]:
    newest = max(file.watermark for file in files)
    dropping = [
        file.batch for file in files if file.log == "offsets" and file.watermark > watermark
    ]
    yield f"watermark {_format_time(newest)}: set back to {_format_time(watermark)}"
    yield "not brought back:"
    if dropping:
        yield (
            f"- records of batches {min(dropping)} to {max(dropping)} that were dropped as late, if"
            " there were any: run the job over them again with another checkpoint and other sinks"
        )
    yield (
        "- windows that the watermark closed: their results are written and their state is gone. A"
        " record that comes for one now opens it again, and its result, without what was counted"
        " before, comes out again: a second row in files; in Kafka and PostgreSQL it replaces the"
        " complete one"
    )
    yield (
        "- the record whose time moved the watermark: its window, far in the future, stays in the"
        " state, or was written"
    )


def _parse_time(text: str) -> int:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None or at.timestamp() <= 0:
        raise UsageError(
            f"repair: --watermark: a time with its zone (got {show(text)}); e.g. {_EXAMPLE}"
        )
    return int(at.timestamp() * 1000)


def _format_time(millis: int) -> str:
    # Spark takes years that Python's dates do not have.
    try:
        return datetime.fromtimestamp(millis / 1000, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return f"{millis} ms after 1970"
