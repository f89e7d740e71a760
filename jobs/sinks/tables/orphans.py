"""Files of a table of Parquet files that are in no batch: left by batches that were cut off."""

import time
from contextlib import suppress
from dataclasses import dataclass

from pyarrow import fs

from unskew.config.errors import ExternalError
from unskew.grouping.spark.locations import open_location
from unskew.jobs.checkpoint.files import list_names
from unskew.jobs.sinks.tables.log import DELTA_LOG, SPARK_LOG, list_committed_files


@dataclass(frozen=True)
class Orphan:
    """A file of data that the table's log does not have."""

    name: str
    """Below the table's folder."""
    size: int


def find_orphans(folder: str, age_seconds: float) -> list[Orphan]:
    """The files that are in no batch and not younger than that, in order."""
    root = folder.rstrip("/")
    names = list_names(root)
    if DELTA_LOG in names:
        raise ExternalError(f"table: {folder}: is a Delta table; use VACUUM")
    if SPARK_LOG not in names:
        raise ExternalError(f"table: {folder}: has no {SPARK_LOG}; name the folder of a table")
    system, path = open_location(root)
    # The files first, so that one which a batch commits now is not taken for an orphan.
    files = system.get_file_info(fs.FileSelector(path, recursive=True))
    committed = list_committed_files(root)
    oldest_kept = time.time() - age_seconds
    orphans = [
        Orphan(info.path.removeprefix(f"{path}/"), int(info.size or 0))
        for info in files
        if _is_data(info) and info.mtime.timestamp() <= oldest_kept
    ]
    return sorted(
        (orphan for orphan in orphans if orphan.name not in committed), key=lambda each: each.name
    )


def remove(folder: str, orphans: list[Orphan]) -> None:
    """Remove them, and the checksums that Hadoop keeps beside files on a local disk."""
    system, path = open_location(folder.rstrip("/"))
    for orphan in orphans:
        parent, _, name = f"{path}/{orphan.name}".rpartition("/")
        system.delete_file(f"{parent}/{name}")
        with suppress(FileNotFoundError):
            system.delete_file(f"{parent}/.{name}.crc")


def _is_data(info: fs.FileInfo) -> bool:
    return bool(info.type == fs.FileType.File and info.base_name.startswith("part-"))
