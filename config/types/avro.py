"""Avro schemas, checked by fastavro: a file's record and its field names."""

import json
from pathlib import Path
from typing import Any

from unskew.config.files import read_regular_file
from unskew.config.types.avro_rules import RECORDS, find_problems
from unskew.grouping.options.broken_rules import make_rule_error

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
        listed = " ".join("; ".join(problems[:_SHOWN_MAX]).split())[:_SHOWN_LENGTH_MAX]
        raise make_rule_error(f"an Avro schema: {listed}{more}", "check the file")
    try:
        parse_schema(schema)
    except UnknownType as error:
        raise make_rule_error(f'an Avro schema: no type "{error.name}"', "check the file") from None
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its walk runs into
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise make_rule_error(f"an Avro schema: {reason}", "check the file") from None
