"""Checks of a snapshot's content, before a grouping goes on from it.

A right checksum says that a file is as it was written, not that it makes sense. Kernels check no
bounds, so an index, a length or a hash table that contradicts the rest would read other memory or
search for ever. Types and shapes come first, then numbers by their arrays' names and types, then
what must hold among arrays: that is each sketch's own, and checked beside it.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from unskew.grouping.errors import SnapshotError
from unskew.grouping.snapshot import Arrays

Bounds = Mapping[str, tuple[int, int]]
COUNT_MAX = 2**50
"""Above every count of records; sums over thousands of partitions fit in 64 bits."""
ANY_TIME = (-(2**63), 2**63 - 1)
"""Bounds of times in microseconds, and of what stands for none."""
_OF_PARTITIONS = "partitions"
_FLAGS = (0, 1)


def require(holds: object, name: str, rule: str) -> None:
    """Raise a SnapshotError unless the rule about this array holds."""
    if not holds:
        raise SnapshotError(f"snapshot: {name}: {rule}")


def check_options(params: BaseModel, given: Mapping[str, object]) -> None:
    """Are the options the same? Arrays of the same shapes may stand for something else.

    An option that was not there when the snapshot was made had its default.
    """
    expected = params.model_dump(mode="json")
    given = {**type(params)().model_dump(mode="json"), **given}
    for name in sorted(given):
        if given[name] != expected.get(name):
            raise SnapshotError(
                f"snapshot: options: {name}: expected {expected.get(name)!r} (got {given[name]!r})"
            )


def check_array(name: str, given: NDArray[Any], like: NDArray[Any], *, growing: bool) -> None:
    """Has an array the type of another, and its shape, but for a first length that grows?"""
    if given.dtype != like.dtype:
        raise SnapshotError(f"snapshot: {name}: type {like.dtype} (got {given.dtype})")
    if given.shape[growing:] != like.shape[growing:] or given.ndim != like.ndim:
        raise SnapshotError(f"snapshot: {name}: shape {like.shape} (got {given.shape})")


def check_numbers(arrays: Arrays, partitions: int, bounds: Bounds) -> None:
    """Are floats finite, bytes flags, `...partitions` partitions, and other numbers in bounds?

    Unsigned numbers of more than a byte are hashes and bits, of which any is possible.
    """
    for name, array in arrays.items():
        if array.dtype.kind == "f":
            require(np.isfinite(array).all(), name, "finite numbers only")
            continue
        if array.dtype == np.uint8:
            low, high = _FLAGS
        elif array.dtype.kind == "u":
            continue
        elif name.endswith(_OF_PARTITIONS):
            low, high = 0, partitions - 1
        else:
            low, high = bounds.get(name, (0, COUNT_MAX))
        if array.size and not low <= int(array.min()) <= int(array.max()) <= high:
            wrong = array[(array < low) | (array > high)].flat[0]
            raise SnapshotError(f"snapshot: {name}: from {low} to {high} (got {wrong})")


def check_table(name: str, slots: NDArray[Any], homes: NDArray[Any]) -> None:
    """Does an open-addressing table lead to each slot, by linear probing from its home?

    `slots` is by entry, -1 where it is empty; `homes` is by slot, the entry where a search begins.
    """
    entries, empty = np.flatnonzero(slots >= 0), np.flatnonzero(slots < 0)
    held = slots[entries]
    complete = np.array_equal(np.sort(held), np.arange(homes.size))
    require(complete and empty.size, name, "each key in use once, and an empty entry")
    home = homes[held]
    end = empty[np.searchsorted(empty, home) % empty.size]
    reached = (entries - home) % slots.size < (end - home) % slots.size
    require(reached.all(), name, "no empty entry before a key's own")


def check_distinct(name: str, keys: NDArray[Any]) -> None:
    """Is each key there once?"""
    require(np.unique(keys).size == keys.size, name, "each key once")
