"""Avro schemas, checked by fastavro: a file's record and its field names."""

import json
from pathlib import Path
from typing import Any

from unskew.config.files import read_regular_file
from unskew.config.types.avro_rules import RECORDS, find_problems
from unskew.grouping.options.broken_rules import make_rule_error
from unskew.grouping.options.printed import escape_line

SCHEMA_BYTES_MAX = 1024 * 1024
_SHOWN_MAX = 5
_SHOWN_LENGTH_MAX = 1000


def read_avro_columns(path: Path) -> tuple[str, ...]:
    """The names of the fields of the record that the schema in `path` describes."""
    schema = load_avro_schema(path)
    _check(schema)
    return tuple(field["name"] for field in schema["fields"])


def load_avro_schema(path: Path) -> Any:
    """Load the schema in `path`, which is not checked; an error says why it cannot be read."""
    try:
        raw = read_regular_file(path, SCHEMA_BYTES_MAX)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise make_rule_error(
            f"an Avro schema that can be read: {reason}", "check the path"
        ) from None
    if len(raw) > SCHEMA_BYTES_MAX:
        raise make_rule_error("an Avro schema of at most 1 MiB", "check the path")
    try:
        return json.loads(raw.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        at = f" at line {error.lineno}" if isinstance(error, json.JSONDecodeError) else ""
        raise make_rule_error(
            f"an Avro schema is JSON in UTF-8: it is not{at}", "check the file"
        ) from None


def _check(schema: object) -> None:
    # Costs 80 ms, and most jobs have no Avro.
    from fastavro import parse_schema  # noqa: PLC0415
    from fastavro.schema import UnknownType  # noqa: PLC0415

    if not isinstance(schema, dict):
        raise make_rule_error("the schema must be a record", "an object with type, name and fields")
    if not isinstance(schema.get("type"), str) or schema["type"] not in RECORDS:
        raise make_rule_error("the schema must be a record", "wrap it into one")
    if problems := find_problems(schema):
        more = f" and {len(problems) - _SHOWN_MAX} more" if len(problems) > _SHOWN_MAX else ""
        raise _make_error("; ".join(problems[:_SHOWN_MAX])[:_SHOWN_LENGTH_MAX] + more)
    try:
        parse_schema(schema)
    except UnknownType as error:
        raise _make_error(f'no type "{error.name}"') from None
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its walk runs into
        raise _make_error(str(error)[:200] or type(error).__name__) from None


def _make_error(problem: str) -> Exception:
    # A name may hold what is no character at all, which no message could be made of.
    rule = f"an Avro schema: {escape_line(' '.join(problem.split()))}"
    return make_rule_error(rule, "check the file")
