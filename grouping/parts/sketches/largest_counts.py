"""The keys with most work among those that were counted in parts, and how far off each may be.

A part is a piece of a share that was counted exactly, or what another source kept of its own. Of
the parts together the `room` keys with most work stay; of those that do not, the most work that
any of them may have is remembered. So a key that a part does not list may have had that much there,
and this is its error: `records <= true count <= records + error`, and work is ranked by the upper
bound. With one work for all records no key's count is too low by more than m / room of m records,
however they were cut into parts: what a part leaves out is less than each of the `room` keys that
it keeps.

A record's work is a whole number of ticks, its key's; parts must agree on it.

State: 24 bytes for each of `room` keys and two numbers. Costs: a sort of the parts' keys.

Departures: Agarwal et al. subtract what is cut off from the counts that stay. Here counts stay true
lower bounds and the cut is an error beside them, as SpaceSaving has it.

>>> import numpy as np
>>> def counted(*keys: int) -> LargestCounts:
...     return of_piece(*np.unique(np.array(keys, np.uint64), return_counts=True))
>>> def ticks(keys):
...     return np.ones(keys.size, np.int64)
>>> kept = joined([counted(1, 1, 1, 2, 2, 3)], 2, ticks)
>>> kept.keys.tolist(), kept.records.tolist(), kept.unlisted
([1, 2], [3, 2], 1)
>>> both = joined([kept, counted(3, 3)], 2, ticks)
>>> both.keys.tolist(), both.records.tolist(), both.errors.tolist()
([1, 3], [3, 2], [0, 1])

Reference: P. K. Agarwal et al., "Mergeable summaries", PODS 2012.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Int64s, UInt64s
from unskew.grouping.contents import require
from unskew.grouping.snapshot import Arrays

TicksOf = Callable[[UInt64s], Int64s]
"""The work of a record of each of these keys."""


class LargestCounts(NamedTuple):
    """Keys, most work first, with their counts."""

    keys: UInt64s
    records: Int64s
    """A lower bound of the key's records."""
    errors: Int64s
    """The key has at most this many records more."""
    unlisted: int
    """The most work that a key may have which is not listed."""


def arrays(room: int, prefix: str = "counted_") -> dict[str, NDArray[Any]]:
    """No key counted, as named arrays for a grouping's state."""
    made = {
        "keys": np.zeros(room, np.uint64),
        "records": np.zeros(room, np.int64),
        "errors": np.zeros(room, np.int64),
        "known": np.zeros(1, np.int64),
        "unlisted": np.zeros(1, np.int64),
    }
    return {prefix + name: array for name, array in made.items()}


NOTHING = LargestCounts(
    np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int64), unlisted=0
)


def read(state: Mapping[str, NDArray[Any]], prefix: str = "counted_") -> LargestCounts:
    """The counts in a state that has the arrays of `arrays`."""
    known = int(state[prefix + "known"][0])
    keys, records, errors = (state[prefix + name][:known] for name in ("keys", "records", "errors"))
    return LargestCounts(keys, records, errors, int(state[prefix + "unlisted"][0]))


def check(state: Arrays, prefix: str = "counted_") -> None:
    """Raise a SnapshotError if more counts are known than there is room for."""
    room = state[prefix + "keys"].size
    require(state[prefix + "known"][0] <= room, f"{prefix}known", f"at most {room}")


def write(
    state: Mapping[str, NDArray[Any]], counts: LargestCounts, prefix: str = "counted_"
) -> None:
    """Put the counts in place of those in the state."""
    known = counts.keys.size
    for name in ("keys", "records", "errors"):
        state[prefix + name][:known] = getattr(counts, name)
        state[prefix + name][known:] = 0
    state[prefix + "known"][0] = known
    state[prefix + "unlisted"][0] = counts.unlisted


def of_piece(keys: UInt64s, records: Int64s) -> LargestCounts:
    """Take exact counts: all distinct keys of a piece."""
    return LargestCounts(keys, records.astype(np.int64), np.zeros(keys.size, np.int64), 0)


def joined(parts: Sequence[LargestCounts], room: int, ticks_of: TicksOf) -> LargestCounts:
    """The `room` keys with most work of all parts together."""
    keys, which = np.unique(np.concatenate([part.keys for part in parts]), return_inverse=True)
    records, errors, listed = (np.zeros(keys.size, np.int64) for _ in range(3))
    np.add.at(records, which, np.concatenate([part.records for part in parts]))
    np.add.at(errors, which, np.concatenate([part.errors for part in parts]))
    np.add.at(listed, which, np.repeat(*_unlisted_by_key(parts)))
    ticks = ticks_of(keys)
    unlisted = sum(part.unlisted for part in parts)
    # Work that the parts without the key may have of it, as records, rounded up.
    errors += -((listed - unlisted) // ticks)
    bounds = (records + errors) * ticks
    order = np.lexsort((keys, -bounds))
    if order.size > room:
        unlisted = max(unlisted, int(bounds[order[room]]))
    kept = order[:room]
    return LargestCounts(keys[kept], records[kept], errors[kept], unlisted)


def _unlisted_by_key(parts: Sequence[LargestCounts]) -> tuple[Int64s, Int64s]:
    unlisted = np.array([part.unlisted for part in parts], np.int64)
    return unlisted, np.array([part.keys.size for part in parts], np.int64)
