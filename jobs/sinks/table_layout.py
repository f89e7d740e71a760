"""The layout of a table, columns and what it is partitioned by, and whose table it is.

Delta keeps its layout itself. A table of Parquet files has a file beside Spark's log that says what
job writes it: Spark's sink goes by the number of a batch alone, and would take the batches of a
second job for its own and skip them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from unskew.config.errors import ExternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# Readers take no notice of names that begin with an underscore.
OWNER_FILE = "_unskew_table.json"
_VERSION = 1


@dataclass(frozen=True)
class Layout:
    """A table's columns with their types as Spark writes them, and what it is partitioned by."""

    columns: Mapping[str, str]
    partition_by: Sequence[str]

    @classmethod
    def of(cls, rows: "DataFrame", partition_by: Sequence[str]) -> "Layout":
        """The layout that a table of these rows has."""
        columns = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
        return cls(columns, list(partition_by))

    def with_new_columns(self, rows: "Layout") -> "Layout":
        """The table's layout once rows with further columns are in it."""
        return Layout({**self.columns, **rows.columns}, self.partition_by)


@dataclass(frozen=True)
class Owner:
    """The job that writes a table of Parquet files, and the table's layout."""

    job: str
    layout: Layout


def read_owner(path: str) -> Owner | None:
    """Whose table is in the folder; None if no job has written there."""
    from unskew.jobs.checkpoint.files import read_bytes

    data = read_bytes(f"{path}/{OWNER_FILE}")
    if data is None:
        return None
    try:
        known = json.loads(data)
        return Owner(known["job"], Layout(**known["layout"]))
    except (ValueError, KeyError, TypeError) as error:
        raise ExternalError(f"table: {path}/{OWNER_FILE}: cannot be read; restore it") from error


def write_owner(path: str, owner: Owner) -> None:
    """Write whose table this is; an ExternalError if that cannot be written."""
    from unskew.jobs.checkpoint.files import write_bytes

    text = json.dumps({"version": _VERSION, **asdict(owner)}, indent=1)
    try:
        write_bytes(f"{path}/{OWNER_FILE}", f"{text}\n".encode())
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"table: {path}: cannot be written: {reason}") from error


def check_layout(path: str, table: Layout, rows: Layout, *, merges_columns: bool) -> None:
    """An ExternalError if rows of one layout cannot be added to a table of another."""
    problems = [f"table: {path}: {each}" for each in _differences(table, rows, merges_columns)]
    if problems:
        raise ExternalError(*problems)


def _differences(table: Layout, rows: Layout, merges_columns: bool) -> Iterator[str]:
    if list(table.partition_by) != list(rows.partition_by):
        yield (
            f"is partitioned by {_listed(table.partition_by)}, and partition_by says"
            f" {_listed(rows.partition_by)}; change it back, or name another folder"
        )
    for name, kind in rows.columns.items():
        known = table.columns.get(name)
        if known is not None and known != kind:
            yield (
                f"column {name} is {known.upper()} there and {kind.upper()} in the rows; cast it,"
                " or name another folder"
            )
    new = [name for name in rows.columns if name not in table.columns]
    gone = [name for name in table.columns if name not in rows.columns]
    if new and not merges_columns:
        yield f"has no column {', '.join(new)}; write schema_changes: merge to add it"
    if gone and not merges_columns:
        yield (
            f"has a column {', '.join(gone)} that the rows lack; write schema_changes: merge to"
            " leave it null"
        )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
