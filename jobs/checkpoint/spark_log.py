"""Reads Spark's own logs in a checkpoint: the newest commit, what a batch read, the watermark."""

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from unskew.config.errors import ExternalError
from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import list_names, read_bytes, write_bytes

_VERSION = re.compile(rb"v\d+")
_FILES_UNTIL = "logOffset"
_COMPACTED = ".compact"


@dataclass(frozen=True)
class SourceRange:
    """What a batch read from its source."""

    time_ms: int
    """When the batch was triggered."""
    start: Mapping[str, Any]
    """Kafka's offsets, by topic and partition; nothing of files."""
    end: Mapping[str, Any]
    files: tuple[str, ...] = ()


def read_last_commit(job: Job) -> int:
    """The newest batch that the checkpoint says is done; -1 before the first."""
    return _read_newest(job, "commits")


def read_newest_offset(job: Job) -> int:
    """The newest batch that the checkpoint says was begun; -1 before the first."""
    return _read_newest(job, "offsets")


def read_query_id(job: Job) -> str:
    """The query's id, which a checkpoint keeps from its first start on."""
    query = find_query_id(job)
    assert query is not None, "written before the first batch"
    return query


def find_query_id(job: Job) -> str | None:
    """The query's id; None before the first start."""
    data = read_bytes(_metadata_file(job))
    try:
        return None if data is None else str(json.loads(data)["id"])
    except (ValueError, KeyError, TypeError) as error:
        problem = f"checkpoint: {_metadata_file(job)}: damaged or cut short; restore it from a copy"
        raise ExternalError(problem) from error


def make_query_id(job: Job) -> str:
    """The query's id; before the first start it is made and written, and Spark keeps it."""
    if find_query_id(job) is None:
        write_bytes(_metadata_file(job), json.dumps({"id": str(uuid.uuid4())}).encode())
    return read_query_id(job)


def _metadata_file(job: Job) -> str:
    return f"{job.checkpoint.rstrip('/')}/metadata"


def read_source_range(job: Job, batch: int) -> SourceRange | None:
    """Read what a batch read; None if it read nothing, or the log of offsets has lost it."""
    root = job.checkpoint.rstrip("/")
    time, end = _read_offsets(root, batch)
    _, start = _read_offsets(root, batch - 1) if batch else (0, {})
    if time is None or end is None or start is None or start == end:
        return None
    if _FILES_UNTIL in end:
        files = _list_files(root, start.get(_FILES_UNTIL, -1), end[_FILES_UNTIL])
        return SourceRange(time, {}, {}, tuple(dict.fromkeys(files)))
    if not start:
        # Where Kafka's source began.
        (start,) = _read_lines(f"{root}/sources/0/0")
    return SourceRange(time, start, end)


def _read_offsets(root: str, batch: int) -> tuple[int | None, dict[str, Any] | None]:
    """A batch's time, and where it ended in its source, which may have had nothing yet."""
    lines = _read_lines(f"{root}/offsets/{batch}")
    if not lines:
        return None, None
    metadata, source = lines
    return int(metadata["batchTimestampMs"]), source or {}


def _list_files(root: str, after: int, until: int) -> Iterator[str]:
    """The files that Spark's source of files added to its log there, as it lists them."""
    folder = f"{root}/sources/0"
    there = set(list_names(folder))
    names = {str(number) for number in range(after + 1, until + 1)}
    compacted = [int(name.removesuffix(_COMPACTED)) for name in there if name.endswith(_COMPACTED)]
    if compacted and not names <= there:
        # It has all entries before it, too, which may be gone.
        names.add(f"{max(compacted)}{_COMPACTED}")
    entries = [entry for name in sorted(names & there) for entry in _read_lines(f"{folder}/{name}")]
    for entry in entries:
        if after < entry["batchId"] <= until:
            yield unquote(entry["path"])


def _read_lines(file: str) -> list[Any]:
    """The lines of a log's entry after its version; none if it is not there."""
    with suppress(FileNotFoundError):
        _, *lines = (read_bytes(file) or b"").removeprefix(b"\0").split(b"\n")
        return [None if line == b"-" else json.loads(line) for line in lines if line]
    return []


def _read_newest(job: Job, log: str) -> int:
    names = list_names(f"{job.checkpoint.rstrip('/')}/{log}")
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def list_damaged_logs(checkpoint: str) -> list[str]:
    """List the damaged files of Spark's logs, those that are no version and lines of JSON."""
    root = checkpoint.rstrip("/")
    damaged = []
    for log in ("offsets", "commits", "sources/0"):
        folder = f"{root}/{log}"
        numbers = sorted(
            (int(name) for name in list_names(folder) if name.isdecimal()), reverse=True
        )
        damaged += [f"{folder}/{number}" for number in numbers if _is_damaged(f"{folder}/{number}")]
    metadata = f"{root}/metadata"
    if not is_json(read_bytes(metadata) or b""):
        damaged.append(metadata)
    return damaged


def _is_damaged(file: str) -> bool:
    # Kafka's source begins its first offsets with a zero byte.
    version, *lines = (read_bytes(file) or b"").removeprefix(b"\0").split(b"\n")
    if not _VERSION.fullmatch(version) or not any(lines):
        return True
    # A `-` stands for a source without offsets yet.
    return not all(is_json(line) for line in lines if line not in {b"-", b""})


def is_json(text: bytes) -> bool:
    """Can a line of a log be read as JSON?"""
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def read_late_watermark(checkpoint: str, batch: int) -> int | None:
    """The watermark by which Spark dropped late rows of a batch, in microseconds of event time.

    It is that of the batch before: a batch's own watermark, which Spark's progress has, closes
    windows after the batch's rows were added to them. None if the log of offsets no longer has it.
    """
    return 0 if batch == 0 else read_watermark(checkpoint, batch - 1)


def read_watermark(checkpoint: str, batch: int) -> int | None:
    """A batch's own watermark, in microseconds; None if the log of offsets does not have it."""
    try:
        data = read_bytes(f"{checkpoint.rstrip('/')}/offsets/{batch}") or b""
        return int(json.loads(data.split(b"\n")[1])["batchWatermarkMs"]) * 1000
    except (OSError, IndexError, KeyError, TypeError, ValueError, RecursionError):
        return None  # only the displays need it: the job goes on
