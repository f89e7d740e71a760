"""Avro schemas, checked by fastavro: a file's record and its field names."""

import json
from pathlib import Path
from typing import Any

from unskew.config.files import read_regular_file
from unskew.grouping.options.broken_rules import make_rule_error

SCHEMA_BYTES_MAX = 1024 * 1024


def read_avro_columns(path: Path) -> tuple[str, ...]:
    """The names of the fields of the record that the schema in `path` describes."""
    parsed = _parse(_load(path))
    if parsed.get("type") not in {"record", "error"}:
        raise make_rule_error("the schema must be a record", "wrap it into one")
    return tuple(field["name"] for field in parsed["fields"])


def _load(path: Path) -> object:
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


def _parse(schema: object) -> dict[str, Any]:
    # Costs 80 ms, and most jobs have no Avro.
    from fastavro import parse_schema  # noqa: PLC0415
    from fastavro.schema import UnknownType  # noqa: PLC0415

    if not isinstance(schema, dict):
        raise make_rule_error("the schema must be a record", "an object with type, name and fields")
    try:
        parsed: Any = parse_schema(schema)
    except UnknownType as error:
        raise make_rule_error(f'an Avro schema: no type "{error.name}"', "check the file") from None
    except Exception as error:  # noqa: BLE001 - fastavro raises whatever its walk runs into
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        raise make_rule_error(f"an Avro schema: {reason}", "check the file") from None
    return dict(parsed)
