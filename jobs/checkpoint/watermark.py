"""Setting back a watermark that is too far ahead, in Spark's own logs of a checkpoint.

Spark takes a restarted query's watermark from the newest batch in `offsets`, or from the newest one
in `commits` if that is later; by the batch before it decides which rows of a batch are late. So no
file of either log may keep a later watermark than the one that is set.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyarrow import fs

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import open_location
from unskew.jobs.checkpoint.files import list_names, read_bytes, write_bytes

_FIELDS = {"commits": "nextBatchWatermarkMs", "offsets": "batchWatermarkMs"}
"""The field of a batch's watermark in milliseconds, by log; in the order of writing."""


@dataclass(frozen=True)
class LogFile:
    """A batch's file in a log of Spark's: a version, its metadata as JSON, and further lines."""

    log: str
    batch: int
    lines: tuple[str, ...]

    @property
    def watermark(self) -> int:
        """The watermark that it sets, in milliseconds."""
        return int(self._metadata[_FIELDS[self.log]])

    def replace_watermark(self, millis: int) -> bytes:
        """Return the file's content with another watermark."""
        metadata = {**self._metadata, _FIELDS[self.log]: millis}
        text = json.dumps(metadata, separators=(",", ":"))
        return "\n".join([self.lines[0], text, *self.lines[2:]]).encode()

    @property
    def _metadata(self) -> dict[str, Any]:
        metadata: dict[str, Any] = json.loads(self.lines[1])
        return metadata


def log_files(checkpoint: str) -> list[LogFile]:
    """The files of both logs, oldest batch first; an ExternalError names one that is damaged."""
    root = checkpoint.rstrip("/")
    return [_read(root, log, batch) for log in _FIELDS for batch in _list_batches(f"{root}/{log}")]


def set_back(checkpoint: str, files: list[LogFile], millis: int) -> int:
    """Give every file with a later watermark this one; how many there were."""
    later = [file for file in files if file.watermark > millis]
    for file in later:
        location = f"{checkpoint.rstrip('/')}/{file.log}/{file.batch}"
        # Before the file: Hadoop refuses one that its checksum does not fit, but reads one without.
        _remove_checksum(location)
        write_bytes(location, file.replace_watermark(millis))
    return len(later)


def _list_batches(folder: str) -> Iterator[int]:
    yield from sorted(int(name) for name in list_names(folder) if name.isdecimal())


def _read(root: str, log: str, batch: int) -> LogFile:
    location = f"{root}/{log}/{batch}"
    data = read_bytes(location) or b""
    file = LogFile(log, batch, tuple(data.decode(errors="replace").split("\n")))
    try:
        _ = file.watermark
    except (IndexError, KeyError, TypeError, ValueError) as error:
        raise ExternalError(
            f"repair: {location}: has no watermark that can be read; restore it from a copy"
        ) from error
    return file


def _remove_checksum(location: str) -> None:
    system, path = open_location(location)
    if isinstance(system, fs.LocalFileSystem):
        file = Path(path)
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
