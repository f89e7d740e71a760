"""Bytes in place of records: the sizes of a share's records, added up by key and filled in order.

With sizes, the entry of a key has its bytes, and partitions, gifts and segments are counted in
bytes. A record is not cut: it goes where its first byte falls when the records of its key are laid
one behind the other over the key's segments. So a segment gets less than one record more than it
was given, and one that no record begins in gets none.
"""

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.arguments import validate_array
from unskew.grouping.base import Int32s, Int64s
from unskew.grouping.errors import GroupingError
from unskew.grouping.kernels import kernel

SIZE_MAX = 2**31
"""A row in Spark is smaller; more would only let sums overflow."""
_NO_SIZES = np.empty(0, np.int64)


def read_sizes(given: Int64s | None, records: int) -> Int64s:
    """The size of each record, at least a byte; empty where none are given: all are alike."""
    if given is None:
        return _NO_SIZES
    sizes: Int64s = np.clip(validate_array("sizes", given, np.int64), 1, SIZE_MAX)
    if sizes.size != records:
        raise GroupingError(f"sizes: as many as keys, {records} (got {sizes.size})")
    return sizes


@kernel
def count_bytes(numbers: Int32s, sizes: Int64s, known: int, entries: NDArray[np.uint64]) -> None:
    """Put the bytes of each key in the place of its records."""
    for i in range(known):
        entries[i, 1] = 0
    for r in range(numbers.size):
        entries[numbers[r], 1] += np.uint64(sizes[r])


@kernel
def assign_bytes(
    numbers: Int32s,
    sizes: Int64s,
    codes: Int32s,
    cursors: Int64s,
    segment_partitions: Int32s,
    segment_bytes: Int64s,
    out: Int32s,
    loads: Int64s,
) -> None:
    """Each record's partition by its key's code, and the bytes of each added to `loads`."""
    for r in range(numbers.size):
        code = codes[numbers[r]]
        if code < 0:
            j = -1 - code
            segment = cursors[j]
            code = segment_partitions[segment]
            left = segment_bytes[segment] - sizes[r]
            # A key's segments have its bytes: nothing is left, or lacking, behind its last record.
            while left <= 0 and segment + 1 < segment_bytes.size:
                segment += 1
                left += segment_bytes[segment]
            segment_bytes[segment] = left
            cursors[j] = segment
        out[r] = code
        loads[code] += sizes[r]
