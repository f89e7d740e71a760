"""What partials are made with: Arrow tables of rows, grouped by pane and key."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from unskew.grouping.base import Int64s
from unskew.jobs.operators.base import (
    EVENT_TIME,
    KEY,
    KEY_HASH,
    NUMBER,
    PANE,
    RECORDS,
    Aggregation,
)


def aggregate(rows: pa.Table, aggregations: Sequence[Aggregation]) -> pa.Table:
    """Group `rows` by pane and key: their hash, latest time and number, and `aggregations`."""
    asked = [
        (KEY_HASH, "min", KEY_HASH),
        (EVENT_TIME, "max", EVENT_TIME),
        (KEY_HASH, "count", RECORDS),
        *aggregations,
    ]
    grouped = rows.group_by([PANE, KEY], use_threads=False).aggregate(
        [(column, function) for column, function, _ in asked]
    )
    made = {f"{column}_{function}": name for column, function, name in asked}
    return grouped.rename_columns([made.get(name, name) for name in grouped.column_names])


def numbered(rows: pa.Table) -> pa.Table:
    """`rows` with `number`: 0 for the pane and key of the first row, then 1, and so on."""
    keys = _chunk(rows[KEY]).dictionary_encode()
    panes = _chunk(rows[PANE]).dictionary_encode()
    both = panes.indices.to_numpy().astype(np.int64) * len(keys.dictionary)
    both += keys.indices.to_numpy()
    return rows.append_column(NUMBER, pa.array(both).dictionary_encode().indices)


def numbers_of(rows: pa.Table) -> Int64s:
    """The column `number`."""
    numbers: Int64s = rows[NUMBER].to_numpy().astype(np.int64)
    return numbers


def unscaled(column: pa.ChunkedArray) -> Int64s:
    """Decimals of up to 18 digits without nulls as whole numbers of their last digit."""
    array = _chunk(column)
    if not len(array):
        return np.empty(0, np.int64)
    # Little-endian pairs of words; of a number that fits into one, the lower word is all.
    words = np.frombuffer(array.buffers()[1], np.int64)
    low: Int64s = words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    return low


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
