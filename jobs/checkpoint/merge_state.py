"""How large the merge's state is, partition by partition, from the checkpoint's own files.

Spark's progress has sums only. A state partition's folder holds snapshots (`VERSION.zip`, with a
small JSON that counts keys and names its data files), those data files, and a changelog for each
version since. What a restart would have to load is the newest snapshot and the changelogs after it.
"""

import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from pyarrow import fs

from unskew.grouping.spark.locations import open_location

# Of a damaged archive zipfile also says that it is encrypted, ends early, or cannot be inflated.
_UNREADABLE = (
    OSError,
    EOFError,
    RuntimeError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    zipfile.BadZipFile,
    zlib.error,
)
_FILE = re.compile(r"(\d+)(?:_[^.]*)?\.(zip|changelog)")


@dataclass(frozen=True)
class MergePartition:
    """One partition of the merge's state: rows as of its newest snapshot, if it has one."""

    partition: int
    rows: int | None
    bytes: int


def read_merge_state(checkpoint: str) -> tuple[MergePartition, ...]:
    """The state partitions of a checkpoint, in order; none before the first batch."""
    system, root = open_location(checkpoint)
    folder = f"{root}/state/0"
    partitions = [
        _read_partition(system, info.path, int(info.base_name))
        for info in system.get_file_info(fs.FileSelector(folder, allow_not_found=True))
        if info.base_name.isdecimal()
    ]
    return tuple(sorted(partitions, key=lambda each: each.partition))


def _read_partition(system: fs.FileSystem, folder: str, number: int) -> MergePartition:
    sizes: dict[tuple[str, int], int] = {}
    for info, match in _list_files(system, folder):
        sizes[match.group(2), int(match.group(1))] = info.size or 0
    snapshots = [version for kind, version in sizes if kind == "zip"]
    newest = max(snapshots, default=0)
    changes = sum(
        size for (kind, version), size in sizes.items() if kind == "changelog" and version > newest
    )
    if not snapshots:
        return MergePartition(number, None, changes)
    rows, data = _read_snapshot(system, folder, newest)
    return MergePartition(number, rows, sizes["zip", newest] + data + changes)


def _list_files(
    system: fs.FileSystem, folder: str
) -> Iterator[tuple[fs.FileInfo, "re.Match[str]"]]:
    for info in system.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
        match = _FILE.fullmatch(info.base_name)
        if match:
            yield info, match


def _read_snapshot(system: fs.FileSystem, folder: str, version: int) -> tuple[int | None, int]:
    """Keys of a snapshot, and bytes of the data files that it names."""
    try:
        with system.open_input_stream(f"{folder}/{version}.zip") as stream:
            archive = zipfile.ZipFile(io.BytesIO(stream.readall()))
        # A line with the format's version comes first.
        about = json.loads(archive.read("metadata").decode().partition("\n")[2])
        named = [*about.get("sstFiles", ()), *about.get("logFiles", ())]
        return int(about["numKeys"]), sum(int(file["sizeBytes"]) for file in named)
    except _UNREADABLE:
        # Spark may be removing or replacing it at this moment; the next batch sees the next one.
        return None, 0
