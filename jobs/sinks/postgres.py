"""Totals in a table of PostgreSQL: inserted, or updated where window and key are there already.

Each partition of a result is one transaction: its rows are copied into a temporary table and from
there put in order into the real one, so that a replay leaves what the first attempt left. Where the
table rejects a row, halves are tried until that row is alone; the others are written.
"""

import io
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field

from unskew.config.models.base import IDENTIFIER
from unskew.config.models.sink import Identity
from unskew.config.models.window import Merge
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.config.types.postgres_address import check_address, is_verified, make_libpq_address
from unskew.config.types.secrets import Secret
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.jobs.sinks.base import Batch, RejectedTotal, Sink

if TYPE_CHECKING:
    import psycopg
    import pyarrow as pa
    from psycopg import sql
    from pyspark.sql import DataFrame

    from unskew.config.models.job import Job

CONNECT_SECONDS = 5
_INCOMING = "unskew_incoming"
_IDLE_LIMIT = "SET idle_in_transaction_session_timeout = '60s'"
# Rows of a partition that are set apart before the table itself is taken for the mistake.
_REJECTED_MAX = 1000
# No text of PostgreSQL can hold it. Beside the key another character stands for it; within, that
# could be another key's.
_NUL = "\0"
_INSTEAD_OF_NUL = "\N{SYMBOL FOR NULL}".encode()
_TABLE = "SELECT to_regclass(%s)::oid"
_UNIQUE = """
SELECT array_agg(a.attname::text ORDER BY a.attname)
FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey)
WHERE i.indrelid = %s AND i.indisunique AND i.indpred IS NULL AND i.indexprs IS NULL
GROUP BY i.indexrelid
"""
# What the statements below need. A right on some columns may do: those that the results have.
_RIGHTS = """
SELECT has_database_privilege(current_database(), 'TEMP'),
 has_any_column_privilege(%(oid)s, 'SELECT'),
 has_any_column_privilege(%(oid)s, 'INSERT'),
 has_any_column_privilege(%(oid)s, 'UPDATE')
"""
_STATEMENTS = {
    "make": "CREATE TEMPORARY TABLE {incoming} ON COMMIT DROP AS"
    " SELECT {columns} FROM {table} WITH NO DATA",
    "empty": "TRUNCATE {incoming}",
    "copy": "COPY {incoming} ({columns}) FROM STDIN (FORMAT csv)",
    # In order, so that an attempt that came late waits for the other one instead of for itself.
    "upsert": "INSERT INTO {table} ({columns}) SELECT {columns} FROM {incoming} ORDER BY {key}"
    " ON CONFLICT ({key}) DO UPDATE SET {update}",
}


def _check_table(text: str) -> str:
    parts = text.split(".")
    if len(parts) > 2 or not all(IDENTIFIER.fullmatch(part) for part in parts):
        raise make_rule_error(
            "a table's name, table or schema.table", "letters, digits, underscores"
        )
    return text


class PostgresSink(Sink):
    """Inserts or updates rows of a table.

    Results as rows of a PostgreSQL table, inserted or updated by window and key.
    """

    url: Annotated[str, AfterValidator(check_address)] = Field(
        examples=["jdbc:postgresql://127.0.0.1:5432/unskew"]
    )
    """The database as a JDBC address, without user and password."""
    table: Annotated[str, AfterValidator(_check_table)] = Field(examples=["public.word_counts"])
    """The table, which must have a unique key over window and key."""
    user: Annotated[str, Field(min_length=1, max_length=63, examples=["unskew"])]
    """The database user."""
    password: Secret | None = Field(default=None, examples=["${env:PGPASSWORD}"])
    """The user's password, as a reference: ${env:NAME} or ${file:/path}."""
    verify_server: bool = True
    """Whether a server beyond this machine must prove that it is the one named: the address then
    has `sslmode=verify-full`, and `sslrootcert` for an authority of one's own."""

    @agrees_with("operator")
    def holds_single_values(self, operator: Any) -> Iterator[Contradiction]:
        """A column of the table is one value: rows are copied as CSV, which has no lists."""
        for column in operator.nested_columns(self.result):
            if not self.names or column in self.names.values():
                yield Contradiction(
                    ("columns",),
                    f"{column} is a list, and rows are copied to PostgreSQL as CSV, which has none",
                    "leave it out by columns: [...], or write it to Kafka or files",
                )

    @agrees_with()
    def asks_whose_the_server_is(self) -> Iterator[Contradiction]:
        """A server beyond this machine is verified, unless `verify_server` is false."""
        if self.verify_server and not is_verified(self.url):
            yield Contradiction(
                ("url",),
                "a server beyond this machine is not verified: whoever is on the way to it can read"
                " the password and change results",
                "add ?sslmode=verify-full&sslrootcert=/path/to/ca.pem, or write"
                " verify_server: false",
            )

    def identity(self) -> Identity:
        return Identity("table", (self.url, self.table))

    def replaces_results(self, merge: Merge) -> bool:
        return True

    def problems(self, job: "Job") -> Iterator[str]:
        import psycopg

        key = self.result_key(job)
        wanted = ", ".join(key)
        try:
            with self._make_destination(job).connect() as connection:
                (oid,) = connection.execute(_TABLE, [_quote(self.table)]).fetchall()[0]
                keys = [] if oid is None else [row[0] for row in connection.execute(_UNIQUE, [oid])]
                missing = [] if oid is None else _find_missing_rights(connection, oid)
        except psycopg.Error as error:
            reason = _read_first_line(error)
            yield f"postgres: {self.table}: {reason}; check url, user and password"
            return
        if "TEMP" in missing:
            yield (
                f"postgres: {self.table}: {self.user} may not make temporary tables, through which"
                " rows are written; GRANT TEMP ON DATABASE"
            )
        if rights := ", ".join(right for right in missing if right != "TEMP"):
            yield f"postgres: {self.table}: {self.user} lacks {rights} on it; GRANT {rights}"
        if oid is None:
            yield f"postgres: {self.table}: no such table; make it, with PRIMARY KEY ({wanted})"
        elif sorted(key) not in keys:
            yield f"postgres: {self.table}: has no unique key over ({wanted}) alone; add one"

    def write(self, results: "DataFrame", batch: Batch) -> None:
        import pyarrow as pa

        destination, check_owner = self._make_destination(batch.job), batch.check_owner

        def upsert(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            rejected = destination.upsert(rows, check_owner)
            columns = {name: [each[name] for each in rejected] for name in ("key", "reason")}
            yield pa.RecordBatch.from_pydict(columns, _make_rejected_schema())

        for row in results.mapInArrow(upsert, "key STRING, reason STRING").collect():
            batch.rejected_totals.append(
                RejectedTotal(f"postgres {self.table}", row["key"], row["reason"])
            )

    def _make_destination(self, job: "Job") -> "Destination":
        password = self.password.get_secret_value() if self.password else None
        table = tuple(self.table.split("."))
        return Destination(
            make_libpq_address(self.url), self.user, password, table, self.result_key(job)
        )


@dataclass(frozen=True)
class Destination:
    """A table, and how to reach it; sent to the tasks as it is."""

    url: str
    user: str
    password: str | None = field(repr=False)
    table: tuple[str, ...]
    key: tuple[str, ...]
    """The columns of a result that identify it."""

    def connect(self) -> "psycopg.Connection[Any]":
        """A connection, whose `with` is one transaction."""
        import psycopg

        return psycopg.connect(
            self.url, user=self.user, password=self.password, connect_timeout=CONNECT_SECONDS
        )

    def upsert(
        self, batches: "Iterable[pa.RecordBatch]", check_owner: Callable[[], None] = lambda: None
    ) -> list[dict[str, str]]:
        """Insert or update the rows; those that the table rejects, each with the reason.

        check_owner: raises if the rows may not be committed.
        """
        import pyarrow as pa

        held = [batch for batch in batches if batch.num_rows]
        if not held:
            return []
        rows, rejected = self._take_nul_out(pa.Table.from_batches(held))
        with self.connect() as connection:
            # A process that is frozen in here would hold its locks for ever.
            connection.execute(_IDLE_LIMIT)
            connection.execute(self._write_statement("make", rows.column_names))
            rejected += self._upsert(connection, rows, _REJECTED_MAX)
            check_owner()
            return rejected

    def _take_nul_out(self, rows: "pa.Table") -> "tuple[pa.Table, list[dict[str, str]]]":
        """The rows without those whose key has a NUL, and what is to be said of those."""
        import pyarrow as pa
        import pyarrow.compute as pc

        texts = [
            rows[name] for name in self.key if pa.types.is_string(rows.schema.field(name).type)
        ]
        has_nul = pa.chunked_array([pa.repeat(False, rows.num_rows)])
        for text in texts:
            has_nul = pc.or_(has_nul, pc.fill_null(pc.match_substring(text, _NUL), False))
        if not pc.any(has_nul).as_py():
            return rows, []
        apart = rows.filter(has_nul)
        why = "its key has the character NUL, which no text of PostgreSQL can hold"
        rejected = [
            {"key": self._describe_key(apart.slice(row, 1)), "reason": why}
            for row in range(apart.num_rows)
        ]
        return rows.filter(pc.invert(has_nul)), rejected

    def _upsert(
        self, connection: "psycopg.Connection[Any]", rows: "pa.Table", most: int
    ) -> list[dict[str, str]]:
        """The rows in a part of the transaction; if one is refused, their halves, each alone."""
        import psycopg

        try:
            with connection.transaction():
                self._copy(connection, rows)
        except (psycopg.DataError, psycopg.IntegrityError, _get_too_large_error()) as error:
            if most == 0:
                # So many rejected totals mean that the table does not fit the job: it fails.
                raise
            if rows.num_rows == 1:
                return [{"key": self._describe_key(rows), "reason": _read_first_line(error)}]
        else:
            return []
        half = rows.num_rows // 2
        rejected = self._upsert(connection, rows.slice(0, half), most)
        return rejected + self._upsert(connection, rows.slice(half), most - len(rejected))

    def _describe_key(self, row: "pa.Table") -> str:
        """Write window and key of a table's only row as JSON."""
        key = row.select(list(self.key)).to_pylist()[0]
        return json.dumps(key, default=str, ensure_ascii=False)

    def _copy(self, connection: "psycopg.Connection[Any]", rows: "pa.Table") -> None:
        with connection.cursor() as cursor:
            cursor.execute(self._write_statement("empty", rows.column_names))
            with cursor.copy(self._write_statement("copy", rows.column_names)) as copy:
                for batch in rows.to_batches():
                    copy.write(_write_csv(batch))
            cursor.execute(self._write_statement("upsert", rows.column_names))

    def _write_statement(self, kind: str, columns: list[str]) -> "sql.Composed":
        from psycopg import sql

        update = [
            sql.SQL("{0} = EXCLUDED.{0}").format(sql.Identifier(name))
            for name in columns
            if name not in self.key
        ]
        parts = {
            "table": sql.Identifier(*self.table),
            "incoming": sql.Identifier(_INCOMING),
            "columns": sql.SQL(", ").join(map(sql.Identifier, columns)),
            "key": sql.SQL(", ").join(map(sql.Identifier, self.key)),
            "update": sql.SQL(", ").join(update),
        }
        return sql.SQL(_STATEMENTS[kind]).format(**parts)


def _find_missing_rights(connection: "psycopg.Connection[Any]", oid: int) -> list[str]:
    """Which rights on the table and its database the user lacks."""
    (held,) = connection.execute(_RIGHTS, {"oid": oid}).fetchall()
    rights = ("TEMP", "SELECT", "INSERT", "UPDATE")
    return [right for right, has in zip(rights, held, strict=True) if not has]


def _make_rejected_schema() -> "pa.Schema":
    import pyarrow as pa

    return pa.schema({"key": pa.string(), "reason": pa.string()})


def _get_too_large_error() -> type[Exception]:
    """Get what PostgreSQL raises for a row that is larger than an index can take."""
    from psycopg.errors import ProgramLimitExceeded

    return ProgramLimitExceeded


def _write_csv(batch: "pa.RecordBatch") -> bytes:
    """Write texts in quotes and NULL as nothing: what `COPY ... (FORMAT csv)` expects."""
    from pyarrow import csv

    buffer = io.BytesIO()
    csv.write_csv(batch, buffer, csv.WriteOptions(include_header=False))
    return buffer.getvalue().replace(_NUL.encode(), _INSTEAD_OF_NUL)


def _quote(table: str) -> str:
    return ".".join(f'"{part}"' for part in table.split("."))


def _read_first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
