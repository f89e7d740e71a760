"""What operators need that work on groups themselves: groups by number, decimals as integers."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from unskew.grouping.base import Int64s
from unskew.jobs.operators.base import KEY, NUMBER, PANE


def number_groups(rows: pa.Table, keys: Sequence[str] = (KEY,)) -> pa.Table:
    """Add `number` to `rows`: 0 for the pane and key of the first row, then 1, and so on."""
    numbers = _join_chunks(rows[PANE]).dictionary_encode().indices
    for name in keys:
        column = _join_chunks(rows[name]).dictionary_encode()
        both = numbers.to_numpy().astype(np.int64) * len(column.dictionary)
        both += column.indices.to_numpy()
        numbers = pa.array(both).dictionary_encode().indices
    return rows.append_column(NUMBER, numbers)


def read_numbers(rows: pa.Table) -> Int64s:
    """Read the column `number`."""
    numbers: Int64s = rows[NUMBER].to_numpy().astype(np.int64)
    return numbers


def unscale(column: pa.ChunkedArray) -> Int64s:
    """Turn decimals of up to 18 digits without nulls into whole numbers of their last digit."""
    array = _join_chunks(column)
    if not len(array):
        return np.empty(0, np.int64)
    # Little-endian pairs of words; of a number that fits into one, the lower word is all.
    words = np.frombuffer(array.buffers()[1], np.int64)
    low: Int64s = words[2 * array.offset : 2 * (array.offset + len(array)) : 2]
    return low


def _join_chunks(column: pa.ChunkedArray) -> pa.Array:
    array = column.combine_chunks()
    return array.chunk(0) if isinstance(array, pa.ChunkedArray) else array
