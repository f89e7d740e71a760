"""Totals in a table of PostgreSQL: inserted, or updated where window and key are there already.

Each partition of a result is one transaction: its rows are copied into a temporary table and from
there put in order into the real one, so that a replay leaves what the first attempt left.
"""

import io
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pyarrow as pa
from psycopg import sql
from pyarrow import csv
from pyspark.sql import DataFrame

from unskew.config.models.sink import PostgresSink
from unskew.jobs.operators.base import RESULT_KEY

CONNECT_SECONDS = 5
_INCOMING = "unskew_incoming"
# No text of PostgreSQL can hold it, and one such key must not stop all others.
_NUL = "\N{SYMBOL FOR NULL}".encode()
_TABLE = "SELECT to_regclass(%s)::oid"
_UNIQUE = """
SELECT array_agg(a.attname::text ORDER BY a.attname)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""


@dataclass(frozen=True)
class Target:
    """A table, and how to reach it; sent to the tasks as it is."""

    url: str
    user: str
    password: str | None = field(repr=False)
    table: tuple[str, ...]

    @classmethod
    def of(cls, sink: PostgresSink) -> "Target":
        """Where a sink writes to."""
        secret = sink.password.get_secret_value() if sink.password else None
        return cls(_libpq(sink.url), sink.user, secret, tuple(sink.table.split(".")))

    def connect(self) -> psycopg.Connection[Any]:
        """A connection, whose `with` is one transaction."""
        return psycopg.connect(
            self.url, user=self.user, password=self.password, connect_timeout=CONNECT_SECONDS
        )

    def write(self, batches: Iterable[pa.RecordBatch]) -> int:
        """Insert or update the rows; how many there were."""
        rows = 0
        with self.connect() as connection, connection.cursor() as cursor:
            for batch in batches:
                if batch.num_rows == 0:
                    continue
                if rows == 0:
                    cursor.execute(self._statement("empty", batch.schema.names))
                with cursor.copy(self._statement("copy", batch.schema.names)) as copy:
                    copy.write(_csv(batch))
                rows += batch.num_rows
            if rows:
                cursor.execute(self._statement("upsert", batch.schema.names))
        return rows

    def _statement(self, kind: str, columns: list[str]) -> sql.Composed:
        place = [name for name in RESULT_KEY if name in columns]
        update = [
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name))
            for name in columns
            if name not in place
        ]
        parts = {
            "table": sql.Identifier(*self.table),
            "incoming": sql.Identifier(_INCOMING),
            "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
            "place": sql.SQL(", ").join(map(sql.Identifier, place)),
            "update": sql.SQL(", ").join(update),
        }
        return sql.SQL(_STATEMENTS[kind]).format(**parts)


_STATEMENTS = {
    "empty": "CREATE TEMPORARY TABLE {incoming} ON COMMIT DROP AS"
    " SELECT {columns} FROM {table} WITH NO DATA",
    "copy": "COPY {incoming} ({columns}) FROM STDIN (FORMAT csv)",
    # In order, so that an attempt that came late waits for the other one instead of for itself.
    "upsert": "INSERT INTO {table} ({columns}) SELECT {columns} FROM {incoming} ORDER BY {place}"
    " ON CONFLICT ({place}) DO UPDATE SET {update}",
}


def upsert(results: DataFrame, sink: PostgresSink) -> None:
    """Write one batch's results, each partition by its own task."""
    target = Target.of(sink)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield pa.RecordBatch.from_pydict({"written": pa.array([target.write(batches)], pa.int64())})

    results.mapInArrow(write, "written LONG").collect()


def problems(sink: PostgresSink, windowed: bool) -> Iterator[str]:
    """What keeps the sink from being written to, as far as it can be known before a start."""
    place = list(RESULT_KEY if windowed else RESULT_KEY[-1:])
    name = sink.table
    try:
        with Target.of(sink).connect() as connection:
            (oid,) = connection.execute(_TABLE, [_quoted(name)]).fetchall()[0]
            keys = [] if oid is None else [row[0] for row in connection.execute(_UNIQUE, [oid])]
    except psycopg.Error as error:
        yield f"postgres: {name}: {_first_line(error)}; check url, user and password"
        return
    wanted = ", ".join(place)
    if oid is None:
        yield f"postgres: {name}: no such table; make it, with PRIMARY KEY ({wanted})"
    elif sorted(place) not in keys:
        yield f"postgres: {name}: has no unique key over ({wanted}) alone; add one"


def _libpq(url: str) -> str:
    """The address as PostgreSQL's own clients write it."""
    rest = re.sub(r"^jdbc:postgresql:", "", url)
    return f"postgresql:{rest}" if rest.startswith("//") else f"postgresql:///{rest}"


def _csv(batch: pa.RecordBatch) -> bytes:
    """Texts in quotes, NULL as nothing: what `COPY ... (FORMAT csv)` expects."""
    buffer = io.BytesIO()
    csv.write_csv(batch, buffer, csv.WriteOptions(include_header=False))
    return buffer.getvalue().replace(b"\0", _NUL)


def _quoted(table: str) -> str:
    return ".".join(f'"{part}"' for part in table.split("."))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
