"""Reads Spark's own logs in a checkpoint: the newest commit, and the watermark of late rows."""

import json
import re

from unskew.config.models.job import Job
from unskew.jobs.checkpoint.files import names_in, read_bytes

_VERSION = re.compile(rb"v\d+")


def read_last_commit(job: Job) -> int:
    """The newest batch that the checkpoint says is done; -1 before the first."""
    return _read_newest(job, "commits")


def read_newest_offset(job: Job) -> int:
    """The newest batch that the checkpoint says was begun; -1 before the first."""
    return _read_newest(job, "offsets")


def read_query_id(job: Job) -> str:
    """The query's id, which a checkpoint keeps from its first start on."""
    data = read_bytes(f"{job.checkpoint.rstrip('/')}/metadata")
    assert data is not None, "written before the first batch"
    return str(json.loads(data)["id"])


def _read_newest(job: Job, log: str) -> int:
    names = names_in(f"{job.checkpoint.rstrip('/')}/{log}")
    return max((int(name) for name in names if name.isdecimal()), default=-1)


def list_damaged_logs(checkpoint: str) -> list[str]:
    """List files of Spark's logs that are no version followed by lines of JSON, newest first."""
    root = checkpoint.rstrip("/")
    damaged = []
    for log in ("offsets", "commits", "sources/0"):
        folder = f"{root}/{log}"
        numbers = sorted((int(name) for name in names_in(folder) if name.isdecimal()), reverse=True)
        damaged += [f"{folder}/{number}" for number in numbers if _is_damaged(f"{folder}/{number}")]
    metadata = f"{root}/metadata"
    if not _is_json(read_bytes(metadata) or b""):
        damaged.append(metadata)
    return damaged


def _is_damaged(file: str) -> bool:
    # Kafka's source begins its first offsets with a zero byte.
    version, *lines = (read_bytes(file) or b"").removeprefix(b"\0").split(b"\n")
    if not _VERSION.fullmatch(version) or not any(lines):
        return True
    # A source that has no offsets yet is a dash.
    return not all(_is_json(line) for line in lines if line not in {b"-", b""})


def _is_json(text: bytes) -> bool:
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
