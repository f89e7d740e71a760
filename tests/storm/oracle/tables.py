"""The rows of a table of files by its own log, read without Spark and without the jobs' code."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.storm.oracle.outcome import parquet_rows

_LOGS = ("_delta_log", "_spark_metadata")
_ENTRY = re.compile(r"(\d+)(\.json|\.compact)?")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def lake_rows(folder: Path) -> Iterator[dict[str, Any]]:
    """The rows of a table, with the columns that it is partitioned by as texts."""
    for name in sorted(committed_names(folder)):
        parts = (part.partition("=") for part in name.split("/")[:-1])
        values = {
            column: None if value == _NO_VALUE else unquote(value) for column, _, value in parts
        }
        for row in parquet_rows(folder / name):
            yield {**row, **values}


def committed_names(folder: Path) -> set[str]:
    """The files of a table, relative to it: what its log says was added, less what was removed."""
    names: set[str] = set()
    for entry in _entries(folder):
        for line in entry.read_text().splitlines():
            if line.startswith("{"):
                _apply(json.loads(line), f"/{folder.name}/", names)
    return names


def _entries(folder: Path) -> list[Path]:
    """The entries of the log by number; a compact one, which repeats all before it, is the last."""
    paths = [path for log in _LOGS for path in (folder / log).glob("*")]
    matches = [(match, path) for path in paths if (match := _ENTRY.fullmatch(path.name))]
    matches.sort(key=lambda pair: (int(pair[0].group(1)), pair[0].group(2) == ".compact"))
    return [path for _, path in matches]


def _apply(action: dict[str, Any], root: str, names: set[str]) -> None:
    if action.get("action") == "add":  # Spark's own log has whole addresses
        names.add(unquote(action["path"]).rpartition(root)[2])
    elif "add" in action:
        names.add(unquote(action["add"]["path"]))
    elif "remove" in action:
        names.discard(unquote(action["remove"]["path"]))
