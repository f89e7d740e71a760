"""Keys that stay whole, as they are below a target of bytes: homes that are level for them alone.

With `target_file_bytes`, a key that has no more than that in a batch goes whole to one partition.
Such keys are not cut to make loads even, but their homes can be chosen: whole keys move from
partitions above the mean to the emptiest, the largest first, which costs no pair. Larger keys are
then cut to fill up what is left uneven.

A lone source levels homes for its own share, with its first piece. Several sources do so for what
all of them counted in the batch before: so a key goes to the same partition in each, and whether it
is above the target is judged by all of its bytes. Where being exact with the larger keys would cost
too many pairs, they agree on a plan for those as they do without a target
(`grouping.parts.level.agreement`), if it splits none that is to stay whole.

Without such a plan no source departs from agreed homes: as long as all have the same, a key has one
partition, however its bytes have changed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unskew.grouping.base import Float64s, Setting
from unskew.grouping.parts.level import agreement
from unskew.grouping.parts.level.agreed_homes import (
    Counted,
    Where,
    add_counts,
    level_whole_keys,
)
from unskew.grouping.parts.level.expected import predict_records
from unskew.grouping.parts.level.levelled import Partitions, Share, assign_known
from unskew.grouping.parts.level.size_sums import find_unit, name_unit, unit_of
from unskew.grouping.snapshot import Arrays

_CHANCE = 3.0
"""Standard deviations that a source's part of a key may be above its part of the target."""


def agree_with_target(
    states: Sequence[Arrays], where: Where, slack: float | None, target: int
) -> dict[str, NDArray[Any]]:
    """What the sources agree on for the batch after the one that left these states."""
    agreed = agreement.agree(states, where, slack)
    shares = [state for state in states if state["counted_keys"].size]
    if len(shares) < 2:
        return agreed
    counted, unit = add_counts(shares), find_unit(shares)
    large = counted.keys[counted.records > target]
    if "shared_keys" in agreed and np.isin(agreed["shared_keys"], large).all():
        return agreed
    expected = predict_records(-(-counted.records // unit))
    expected[counted.records > target] = 0.0
    waits = {name: agreed[name] for name in ("plan_waits",) if name in agreed}
    homes = _plan_homes(counted, expected, shares[0], where)
    return {**waits, **homes, **_list_large(counted, target), **name_unit(shares[0], unit)}


def _plan_homes(
    counted: Counted, whole: Float64s, before: Arrays, where: Where
) -> dict[str, NDArray[Any]]:
    homes, moved, _ = level_whole_keys(counted, whole, before, where)
    moved &= whole > 0.0
    return {"home_keys": counted.keys[moved], "home_partitions": homes[moved]}


def _list_large(counted: Counted, target: int) -> dict[str, NDArray[Any]]:
    """List keys above the target, of many the largest, as shared ones of a plan without loads."""
    ranks = np.argsort(-counted.records, kind="stable")[: agreement.KEYS_MAX]
    large = np.sort(ranks[counted.records[ranks] > target])
    return {
        "shared_keys": counted.keys[large],
        "shared_records": counted.records[large],
        "shared_first": np.arange(large.size + 1),
        "shared_partitions": np.zeros(large.size, np.int32),
    }


def keep_whole(
    state: dict[str, NDArray[Any]], share: Share, where: Partitions, setting: Setting, target: int
) -> Share:
    """Say which keys of a piece stay whole, and put all at the homes of the plan."""
    part = target // setting.sources
    if setting.sources == 1 and not share.base.any():
        state.update(_plan_own_homes(share, where, state, target))
    homes = share.homes.copy()
    if where.mask[state["home_partitions"]].all():
        assign_known(share.counts, state["home_keys"], state["home_partitions"], homes)
    # A plan lists those of the larger keys only that it splits.
    judged = setting.sources == 1 or agreement.plan_of(state) is not None
    chance = 0.0 if judged else _CHANCE * (part * unit_of(state)) ** 0.5
    whole = share.records <= part + chance
    large = share.counts.find(state["shared_keys"])
    whole[large[large >= 0]] = False
    loads = np.bincount(homes, share.records, share.base.size).astype(np.int64)
    return share._replace(homes=homes, loads=share.base + loads, whole=whole)


def _plan_own_homes(
    share: Share, where: Partitions, state: Arrays, target: int
) -> dict[str, NDArray[Any]]:
    """Plan the batch of a lone source by its first piece."""
    home, start, order = where.salts
    ascending = np.argsort(share.counts.keys)
    counted = Counted(share.counts.keys[ascending], share.records[ascending])
    salts = np.array([home, order, start], np.uint64)
    whole = np.where(counted.records > target, 0.0, counted.records)
    return _plan_homes(counted, whole, state, Where(where.active, where.mask, salts))
