"""What a table is partitioned by: columns of its rows, or SQL expressions over them with a name."""

import re
from typing import NamedTuple

_NAME = r"[A-Za-z_][A-Za-z0-9_]{0,62}"
_COLUMN = re.compile(rf"\s*(?:`({_NAME})`|({_NAME}))\s*")
_NAMED = re.compile(rf"(.*\S)\s+[Aa][Ss]\s+(?:`({_NAME})`|({_NAME}))\s*", re.DOTALL)
_SEPARATORS = re.compile(r"[^A-Za-z0-9]+")


class PartitionColumn(NamedTuple):
    """A column that a table is partitioned by."""

    name: str
    """The column, which is also the name of the table's folders."""
    expression: str | None
    """How it is computed from the row's columns; None if it is one of them."""


def partition_column(text: str) -> PartitionColumn:
    """Read an entry of `partition_by`.

    >>> partition_column("country")
    PartitionColumn(name='country', expression=None)
    >>> partition_column("date(ts) AS day")
    PartitionColumn(name='day', expression='date(ts)')
    >>> partition_column("date(ts)")
    PartitionColumn(name='date_ts', expression='date(ts)')
    """
    column = _COLUMN.fullmatch(text)
    if column:
        return PartitionColumn(column.group(1) or column.group(2), None)
    named = _NAMED.fullmatch(text)
    if named:
        return PartitionColumn(named.group(2) or named.group(3), named.group(1).strip())
    return PartitionColumn(_SEPARATORS.sub("_", text).strip("_").lower(), text.strip())
