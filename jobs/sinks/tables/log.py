"""Which files a batch added to a table, read from the table's own log without Spark.

A table of Parquet files has the log of Spark's file sink, `_spark_metadata`: a file a batch, each
of which lists what the batch added; every tenth is a `.compact`, which has all that came before and
then its own. A Delta table has `_delta_log`: a file a transaction, which names query and batch.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from unskew.config.errors import ExternalError
from unskew.config.rules.folders import normal
from unskew.grouping.spark.locations import find_local_path, open_location
from unskew.jobs.checkpoint.files import list_names, read_bytes
from unskew.jobs.checkpoint.spark_log import is_json
from unskew.jobs.sinks.tables.layout import OWNER_FILE

SPARK_LOG = "_spark_metadata"
DELTA_LOG = "_delta_log"
_BATCH = re.compile(r"(\d+)(\.compact)?")
_VERSION = re.compile(r"\d{20}\.json")
# A version, or a state of the table up to one.
_ANY_VERSION = re.compile(r"\d{20}\.(json|checkpoint\b.*)")
_WRITER = re.compile(r"(?:.*/)?part-(\d+)-[^/]+")
# What a folder has that is a table of the format.
_MARKS = {"delta": {DELTA_LOG}, "parquet": {SPARK_LOG, OWNER_FILE}}
# The first line of a file of Spark's log.
_HEADER = b"v1"
# Transactions of others that may follow a batch's until it is looked for.
_NEWEST_VERSIONS = 50


@dataclass(frozen=True)
class TableFile:
    """A file that a batch added to a table."""

    path: str
    size: int

    @property
    def writer(self) -> int | None:
        """The task that wrote it, by its number in the name; None if it has none."""
        match = _WRITER.fullmatch(self.path)
        return int(match.group(1)) if match else None


def find_newest_batch(path: str) -> int:
    """Find the newest batch in the log of Spark's file sink; -1 if there is none."""
    return max(_list_batches(path), default=-1)


def has_batch(path: str, batch: int) -> bool:
    """Is a batch, or a newer one, in the log of Spark's file sink?"""
    newest = _find_known_batch(path)
    return newest is not None and newest >= batch


def lacks_batches(path: str, committed: int) -> bool:
    """Does the log of Spark's file sink lack batches that a checkpoint has committed?

    A log that begins with a later batch, since the job wrote elsewhere before, cannot be read.
    """
    newest = _find_known_batch(path)
    return newest is not None and newest < committed


def _find_known_batch(path: str) -> int | None:
    """Find the newest batch; None where only Spark can open the folder."""
    with suppress(OSError, pa.ArrowException):
        return find_newest_batch(path)
    return None


def find_other_contents(path: str, table_format: str, *, begun: bool) -> str | None:
    """Find what makes a folder unfit for a table of this format; None if nothing does.

    begun: has the job begun a batch? Then files without a log may be what a crash left of it.
    """
    try:
        names = set(list_names(path))
    except (OSError, pa.ArrowException):  # Spark may open what pyarrow cannot
        return None
    if names & _MARKS[table_format]:
        return None
    if names & _MARKS["parquet"]:
        return "is a table of Parquet files; write format: parquet, or name another folder"
    if names & _MARKS["delta"]:
        return "is a Delta table; write format: delta, or name another folder"
    shown = sorted(name for name in names if _is_of_data(name))
    if not shown or begun:
        return None
    return f"is no table and has files ({shown[0]}), which readers would lose; name an empty folder"


def lacks_log(path: str) -> bool:
    """Has the folder of a Delta table files, and no version of the table?"""
    with suppress(OSError, pa.ArrowException):  # Spark may open what pyarrow cannot
        names = list_names(f"{path}/{DELTA_LOG}")
        has_version = any(_ANY_VERSION.fullmatch(name) for name in names)
        return not has_version and any(_is_of_data(name) for name in list_names(path))
    return False


def _is_of_data(name: str) -> bool:
    return not name.startswith(("_", "."))


def list_damaged_files(path: str) -> list[str]:
    """List the files of a table's log that are no lines of JSON."""
    files = [f"{path}/{DELTA_LOG}/{name}" for name in list_names(f"{path}/{DELTA_LOG}")]
    named = [file for file in files if file.endswith(".json")]
    named += [f"{path}/{SPARK_LOG}/{name}" for name in _list_batches(path).values()]
    return [file for file in named if not _has_lines(read_bytes(file) or b"")]


def _has_lines(data: bytes) -> bool:
    lines = data.splitlines()
    entries = lines[1:] if lines[:1] == [_HEADER] else lines
    return bool(lines) and all(is_json(line) for line in entries)


def list_files_of_batch(path: str, batch: int) -> list[TableFile] | None:
    """List the files that a batch added to a table of Parquet files; None if the log lacks it."""
    names = _list_batches(path)
    name = names.get(batch)
    if name is None:
        return None
    if not name.endswith(".compact"):
        return _parse_entries(read_bytes(f"{path}/{SPARK_LOG}/{name}") or b"")
    before = _count_bytes_before(path, names, batch)
    return (
        None if before is None else _parse_entries(_read_from(f"{path}/{SPARK_LOG}/{name}", before))
    )


def list_committed_files(path: str) -> set[str]:
    """List the names, below the folder, of all files of a table of Parquet files.

    An ExternalError if the log names files elsewhere, as it does when it is read by another path
    than the job has: none of those below the folder would be known.
    """
    names = _list_batches(path)
    compacts = [batch for batch, name in names.items() if name.endswith(".compact")]
    first = max(compacts, default=-1)
    wanted = [name for batch, name in names.items() if batch >= first]
    files = (
        file
        for name in wanted
        for file in _parse_entries(read_bytes(f"{path}/{SPARK_LOG}/{name}") or b"")
    )
    root = normal(find_local_path(path) or path)
    return {_name_below(root, file.path) for file in files}


def _name_below(root: str, file: str) -> str:
    """Name a file of the log from a table's folder on, which may have been moved under its name."""
    if normal(file).startswith(f"{root}/"):
        return normal(file).removeprefix(f"{root}/")
    folder = root.rpartition("/")[2]
    _, there, name = file.rpartition(f"/{folder}/")
    if not there or "=" in folder:  # which a folder below it may be called as well
        problem = f"its log names files elsewhere ({file}); name the folder as the job has it"
        raise ExternalError(f"table: {root}: {problem}")
    return name


def list_files_of_transaction(path: str, query: str, batch: int) -> list[TableFile] | None:
    """List the files that a query's batch added to a Delta table; None if not in the newest."""
    folder = f"{path}/{DELTA_LOG}"
    versions = [name for name in list_names(folder) if _VERSION.fullmatch(name)]
    for name in reversed(versions[-_NEWEST_VERSIONS:]):
        actions = list(_parse_actions(read_bytes(f"{folder}/{name}") or b""))
        if any(_is_of(action.get("txn"), query, batch) for action in actions):
            added = [action["add"] for action in actions if "add" in action]
            return [TableFile(unquote(each["path"]), int(each["size"])) for each in added]
    return None


def has_transaction(path: str, query: str, batch: int) -> bool:
    """Is a query's batch among the newest of a Delta table?"""
    with suppress(OSError, pa.ArrowException):  # Spark may open what pyarrow cannot
        return list_files_of_transaction(path, query, batch) is not None
    return False


def _is_of(transaction: Any, query: str, batch: int) -> bool:
    return bool(transaction) and (transaction["appId"], transaction["version"]) == (query, batch)


def _list_batches(path: str) -> dict[int, str]:
    """List the files of Spark's log by batch; where there are two, the compact one."""
    matches = [_BATCH.fullmatch(name) for name in list_names(f"{path}/{SPARK_LOG}")]
    return {int(match.group(1)): match.group() for match in matches if match}


def _count_bytes_before(path: str, names: dict[int, str], batch: int) -> int | None:
    """Count the bytes that earlier batches wrote to a compact file; None if these are gone."""
    since = max(
        (other for other, name in names.items() if other < batch and name.endswith(".compact")),
        default=0,
    )
    total = len(_HEADER)
    for other in range(since, batch):
        if other not in names:
            return None
        total += _read_size(f"{path}/{SPARK_LOG}/{names[other]}") - len(_HEADER)
    return total


def _read_size(location: str) -> int:
    system, path = open_location(location)
    info: fs.FileInfo = system.get_file_info(path)
    return int(info.size or 0)


def _read_from(location: str, offset: int) -> bytes:
    system, path = open_location(location)
    with system.open_input_file(path) as file:
        file.seek(offset)
        data: bytes = file.read()
    return data


def _parse_entries(data: bytes) -> list[TableFile]:
    added = [action for action in _parse_actions(data) if action.get("action") == "add"]
    # The path is a URI: of what is escaped in a folder's name the percent signs are, once more.
    return [TableFile(unquote(each["path"]), int(each["size"])) for each in added]


def _parse_actions(data: bytes) -> Iterator[dict[str, Any]]:
    for line in data.splitlines():
        if line.startswith(b"{"):
            yield json.loads(line)
