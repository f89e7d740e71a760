"""The keys of a batch that went to several partitions, those with most records, for displays."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.parts.level.levelled import Levelled, Share


def note_split_keys(state: dict[str, NDArray[Any]], levelled: Levelled, share: Share) -> None:
    """Add those of a piece to those of the share; as many stay as there is room for."""
    counts = share.counts
    split = levelled.givers[levelled.codes[levelled.givers] < 0]
    known = int(state["split_known"][0])
    both = np.concatenate([state["split_keys"][:known], counts.keys[split]])
    keys, which = np.unique(both, return_inverse=True)
    records = np.zeros(keys.size, np.int64)
    np.add.at(records, which[:known], state["split_records"][:known])
    np.add.at(records, which[known:], counts.counts[split].astype(np.int64))
    first = np.lexsort((keys, -records))[: state["split_keys"].size]
    state["split_known"][0] = first.size
    state["split_keys"][: first.size] = keys[first]
    state["split_records"][: first.size] = records[first]
