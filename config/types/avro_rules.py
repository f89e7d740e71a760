"""What Spark asks of an Avro schema beyond what fastavro does; each problem with its path.

Names are Java's, Spark's decimals have 38 digits, a record may not hold itself, and a value that is
of one size in all records has a bound.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

DEPTH_MAX = 100
FIXED_BYTES_MAX = 64 << 20
"""As of a record's texts."""
PRECISION_MAX = 38
RECORDS = frozenset({"record", "error"})
_NAMED = RECORDS | {"enum", "fixed"}
# Letters of any script: Java asks whether a character is a letter.
_NAME = re.compile(r"[^\W\d]\w*")
_ORDERS = frozenset({"ascending", "descending", "ignore"})
_Problems = Iterator[str]


@dataclass(frozen=True)
class _TypePath:
    """Where in the schema a type is, and what it is inside of."""

    path: str = ""
    records: Sequence[str] = ()
    """The names of the records around it, in full."""
    namespace: str = ""
    depth: int = 0

    def __str__(self) -> str:
        return self.path or "the schema"

    def inside(self, part: str) -> "_TypePath":
        path = f"{self.path}.{part}" if self.path else part
        return replace(self, path=path, depth=self.depth + 1)

    def full_name(self, name: str) -> str:
        return f"{self.namespace}.{name}" if self.namespace and "." not in name else name


def find_problems(schema: object) -> list[str]:
    """Find what Spark would refuse, or read as something else than it says."""
    return list(_check(schema, _TypePath()))


def _check(schema: object, path: _TypePath) -> _Problems:
    if path.depth > DEPTH_MAX:
        yield f"nested deeper than {DEPTH_MAX} levels"
    elif isinstance(schema, str):
        if path.full_name(schema) in path.records:
            yield f"{path}: the record {schema} in itself"
    elif isinstance(schema, list):
        yield from _check_union(schema, path)
    elif not isinstance(schema, dict) or not isinstance(schema.get("type"), str):
        yield f'{path}: neither a name, nor a list, nor an object with a name as its "type"'
    elif schema["type"] in _NAMED:
        yield from _check_named(schema, path)
    else:
        yield from _check(schema["type"], path)
        yield from _check_decimal(schema, path)
        for name in ("items", "values"):
            if name in schema:
                yield from _check(schema[name], path.inside(name))


def _check_union(branches: list[Any], path: _TypePath) -> _Problems:
    kinds = [each if isinstance(each, str) else _name_branch(each) for each in branches]
    if any(isinstance(each, list) for each in branches):
        yield f"{path}: a union in a union"
    elif len({*kinds}) < len(kinds):
        yield f"{path}: a union with a type twice"
    else:
        for each in branches:
            yield from _check(each, path)


def _name_branch(branch: Any) -> str:
    kind = str(branch.get("type")) if isinstance(branch, dict) else ""
    return f"{branch.get('namespace', '')}.{branch.get('name')}" if kind in _NAMED else kind


def _check_named(schema: dict[str, Any], path: _TypePath) -> _Problems:
    name, space = str(schema.get("name")), schema.get("namespace", path.namespace)
    full = replace(path, namespace=str(space)).full_name(name)
    if "name" not in schema or not all(map(_NAME.fullmatch, full.split("."))):
        yield f"{path}: no name that Java takes ({full})"
    if not _are_names(schema.get("aliases", [])):
        yield f"{path}: aliases that are no list of names"
    if not isinstance(schema.get("symbols", []), list):
        yield f"{path}: symbols that are no list"
    if schema["type"] == "fixed":
        size = schema.get("size")
        if not isinstance(size, int) or not 1 <= size <= FIXED_BYTES_MAX:
            yield f"{path}: the size of a fixed is from 1 to {FIXED_BYTES_MAX}"
        yield from _check_decimal(schema, path)
    elif schema["type"] in RECORDS:
        space = full.rpartition(".")[0]
        inner = replace(path, records=(*path.records, full), namespace=space)
        yield from _check_fields(schema.get("fields"), inner)


def _check_fields(fields: object, path: _TypePath) -> _Problems:
    if not isinstance(fields, list) or not all(isinstance(each, dict) for each in fields):
        yield f'{path}: "fields" is a list of objects'
        return
    seen = set[str]()
    for each in fields:
        name = each.get("name")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            yield f"{path}: no name of a field that Java takes ({name})"
            continue
        at = path.inside(name)
        # Spark tells the columns of a record apart without their case.
        if name.lower() in seen:
            yield f"{at}: a field twice"
        seen.add(name.lower())
        order = each.get("order", "ascending")
        if not isinstance(order, str) or order.lower() not in _ORDERS:
            yield f"{at}: an order is one of {', '.join(sorted(_ORDERS))}"
        if not _are_names(each.get("aliases", [])):
            yield f"{at}: aliases that are no list of names"
        yield from _check(each.get("type"), at)


def _are_names(aliases: object) -> bool:
    return isinstance(aliases, list) and all(
        isinstance(each, str) and all(map(_NAME.fullmatch, each.split("."))) for each in aliases
    )


def _check_decimal(schema: dict[str, Any], path: _TypePath) -> _Problems:
    if schema.get("logicalType") != "decimal":
        return
    precision = schema.get("precision")
    if schema["type"] not in {"bytes", "fixed"}:
        yield f"{path}: a decimal is of bytes or fixed"
    elif not isinstance(precision, int) or not 1 <= precision <= PRECISION_MAX:
        yield f"{path}: a decimal's precision is from 1 to {PRECISION_MAX}"
