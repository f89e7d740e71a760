"""What a table has, read by its own log and without Spark."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow.parquet as pq

from unskew.jobs.sinks.tables.log import list_committed_files

Rows = Counter[tuple[str | None, int]]


def rows_of_table(table: Path) -> Rows:
    """The rows of a table of `country` and `number`, partitioned by the first."""
    rows: Rows = Counter()
    for name in files_of_log(table):
        country = unquote(name.partition("/")[0].removeprefix("country="))
        key = None if country == "__HIVE_DEFAULT_PARTITION__" else country
        numbers = pq.ParquetFile(table / name).read(["number"])["number"].to_pylist()
        rows.update((key, number) for number in numbers)
    return rows


def files_of_log(table: Path) -> set[str]:
    """The files of a table."""
    if (table / "_delta_log").exists():
        return set(_added_to_delta(table))
    return list_committed_files(str(table)) if table.exists() else set()


def files_outside_of_log(table: Path) -> set[str]:
    """The files of data in a table's folder that are not in the table."""
    # The files first: one that is committed meanwhile is none of them.
    there = {str(file.relative_to(table)) for file in table.rglob("country=*/*.parquet")}
    return there - files_of_log(table)


def _added_to_delta(table: Path) -> Iterator[str]:
    """The files of a Delta table to which rows were only added."""
    for version in sorted((table / "_delta_log").glob("*.json")):
        for action in map(json.loads, version.read_text().splitlines()):
            assert "remove" not in action
            if "add" in action:
                yield unquote(action["add"]["path"])
