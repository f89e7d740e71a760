"""What a key costs beside its records, as bytes of the first of them."""

from collections.abc import Iterable, Iterator

import numpy as np

from unskew.grouping.base import Chunk, UInt64s

_KEYS_MAX = 2**20
"""Of a share, at most these many keys are known to have been met; of more, some count twice."""


def add_key_size(chunks: Iterable[Chunk], size: int, sources: int) -> Iterator[Chunk]:
    """Pass a source's chunks on, with its part of `size` more for the first record of each key.

    A table's file has a footer, and is begun and ended, however few rows it has. Records without a
    size are no rows, and bring no file about.
    """
    part = -(-size // sources)
    seen: UInt64s = np.empty(0, np.uint64)
    for keys, sizes in chunks:
        if sizes is None or not part:
            yield keys, sizes
            continue
        rows = np.flatnonzero(sizes > 0)
        own, first = np.unique(keys[rows], return_index=True)
        is_new = np.isin(own, seen, assume_unique=True, invert=True)
        more = sizes.copy()
        more[rows[first[is_new]]] += part
        seen = np.union1d(seen, own) if seen.size + own.size <= _KEYS_MAX else own
        yield keys, more
