"""The layout of a table, columns and what it is partitioned by, and whose table it is.

Delta keeps its layout itself. A table of Parquet files has a file beside Spark's log that says what
job and query write it: Spark's sink goes by the number of a batch alone, and would take the batches
of a second query for its own and skip them. It is written before the first batch of a start, so a
layout of which no batch was committed yet does not bind.

Names are compared without their case, as Spark does.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from unskew.config.errors import ExternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from unskew.config.models.job import Job

# Readers ignore names that begin with an underscore.
OWNER_FILE = "_unskew_table.json"
_VERSION = 1


@dataclass(frozen=True)
class Layout:
    """A table's columns with their types as Spark writes them, and what it is partitioned by."""

    columns: Mapping[str, str]
    partition_by: Sequence[str]
    zone: str | None = None
    """The time zone of timestamps in the names of its folders; None if there are none."""

    @classmethod
    def from_rows(cls, rows: "DataFrame", partition_by: Sequence[str]) -> "Layout":
        """Make the layout that a table of these rows has."""
        columns = {field.name: field.dataType.simpleString() for field in rows.schema.fields}
        in_names = any(columns.get(name) == "timestamp" for name in partition_by)
        zone = rows.sparkSession.conf.get("spark.sql.session.timeZone") if in_names else None
        return cls(columns, list(partition_by), zone)

    def add_new_columns(self, rows: "Layout") -> "Layout":
        """The table's layout once rows with further columns are in it."""
        known = {name.lower() for name in self.columns}
        new = {name: kind for name, kind in rows.columns.items() if name.lower() not in known}
        return Layout({**self.columns, **new}, self.partition_by, self.zone or rows.zone)

    def rename(self, rows: "DataFrame") -> "DataFrame":
        """The rows with columns as the table spells them.

        Readers other than Spark tell names apart by case, and so does a file system its folders.
        """
        names = {name.lower(): name for name in self.columns}
        changed = {name: names.get(name.lower(), name) for name in rows.columns}
        return rows.withColumnsRenamed({old: new for old, new in changed.items() if old != new})


@dataclass(frozen=True)
class Owner:
    """The job that writes a table of Parquet files, and the table's layout."""

    job: str
    layout: Layout
    query: str | None = None
    """The query's id, which its checkpoint keeps; None in a file of an older version."""
    checkpoint: str | None = None
    """Where that was at the last start that changed this file."""
    after_batch: int = -1
    """The table's newest batch when `layout` was written: it holds from the next one on."""
    before: Layout | None = None
    """The layout up to that batch; None if there was none."""

    def layout_at(self, newest_batch: int) -> Layout | None:
        """The layout of what the table has; None if it has nothing."""
        return self.layout if newest_batch > self.after_batch else self.before


def read_owner(path: str) -> Owner | None:
    """Whose table is in the folder; None if no job has written there."""
    from unskew.jobs.checkpoint.files import read_bytes

    try:
        data = read_bytes(f"{path}/{OWNER_FILE}")
    except NotADirectoryError:  # what cannot be written there is said before the start
        return None
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"table: {path}: cannot be read: {reason}") from error
    if data is None:
        return None
    try:
        known = json.loads(data)
        known.pop("version")
        before = known.pop("before", None)
        layout = Layout(**known.pop("layout"))
        return Owner(layout=layout, before=before and Layout(**before), **known)
    except (ValueError, KeyError, TypeError) as error:
        raise ExternalError(f"table: {path}/{OWNER_FILE}: cannot be read; restore it") from error


def take_table(path: str, rows: Layout, job: "Job", *, merges_columns: bool) -> Layout | None:
    """Note that the job writes a table of Parquet files; the layout of what is there.

    An ExternalError if such rows cannot be added to it.
    """
    from unskew.jobs.checkpoint.spark_log import make_query_id
    from unskew.jobs.sinks.tables.log import find_newest_batch

    newest, owner = find_newest_batch(path), read_owner(path)
    if owner is not None and owner.job != job.name:
        raise ExternalError(f"table: {path}: {say_whose(owner)}")
    table = None if owner is None else owner.layout_at(newest)
    if table is None:
        layout = rows
    else:
        check_layout(path, table, rows, merges_columns=merges_columns)
        layout = table.add_new_columns(rows)
    query = make_query_id(job)
    if owner is None or (owner.job, owner.query, owner.layout) != (job.name, query, layout):
        named = Owner(job.name, layout, query, job.checkpoint, newest, table)
        if not _write_owner(path, named, replaces=owner is not None):
            # Another start has made its first step since.
            return take_table(path, rows, job, merges_columns=merges_columns)
    return table


ELSEWHERE = "name another folder, or write format: delta"
"""What to do where Parquet files are not the job's."""


def say_whose(owner: Owner) -> str:
    """Say that a table of Parquet files is another job's."""
    return (
        f'belongs to the job "{owner.job}", and Parquet files take the batches of one job only;'
        f" {ELSEWHERE}"
    )


def _write_owner(path: str, owner: Owner, *, replaces: bool) -> bool:
    from unskew.jobs.checkpoint.files import write_bytes, write_new_bytes

    text = json.dumps({"version": _VERSION, **asdict(owner)}, indent=1)
    file, data = f"{path}/{OWNER_FILE}", f"{text}\n".encode()
    try:
        if not replaces:
            return write_new_bytes(file, data)
        write_bytes(file, data)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExternalError(f"table: {path}: cannot be written: {reason}") from error
    return True


def check_layout(path: str, table: Layout, rows: Layout, *, merges_columns: bool) -> None:
    """An ExternalError if rows of one layout cannot be added to a table of another."""
    problems = [f"table: {path}: {each}" for each in _list_differences(table, rows, merges_columns)]
    if problems:
        raise ExternalError(*problems)


def _list_differences(table: Layout, rows: Layout, merges_columns: bool) -> Iterator[str]:
    if _lower(table.partition_by) != _lower(rows.partition_by):
        yield (
            f"is partitioned by {_list_names(table.partition_by)}, and partition_by says"
            f" {_list_names(rows.partition_by)}; change it back, or name another folder"
        )
    if table.zone and rows.zone and table.zone != rows.zone:
        yield (
            f"has timestamps in its folders' names, in the time zone {table.zone}, and the job's is"
            f" {rows.zone}; write spark: {{spark.sql.session.timeZone: {table.zone}}}, or name"
            " another folder"
        )
    there = {name.lower(): kind for name, kind in table.columns.items()}
    for name, kind in rows.columns.items():
        known = there.get(name.lower())
        if known is not None and known != kind:
            yield (
                f"column {name} is {known.upper()} there and {kind.upper()} in the rows; cast it,"
                " or name another folder"
            )
    new = [name for name in rows.columns if name.lower() not in there]
    gone = [name for name in table.columns if name.lower() not in _lower(rows.columns)]
    if new and not merges_columns:
        yield f"has no column {', '.join(new)}; write schema_changes: merge to add it"
    if gone and not merges_columns:
        yield (
            f"has a column {', '.join(gone)} that the rows lack; write schema_changes: merge to"
            " leave it null"
        )


def _lower(names: Iterable[str]) -> list[str]:
    return [name.lower() for name in names]


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names) or "nothing"
