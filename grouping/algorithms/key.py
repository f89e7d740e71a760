"""Key grouping: a hash of the key decides. The baseline that skew breaks.

All records of a key go to one partition, so a key with the share p of the stream gives its
partition at least p of the load, however many partitions there are. Costs one hash a record, keeps
no state.

Departures: when a partition is away, its keys (and no others) are hashed again over those that
stay.

>>> import numpy as np
>>> from unskew.grouping.registry import create
>>> create("key", partitions=4, seed=1).route(np.array([7, 7, 8, 9], np.uint64)).tolist()
[2, 2, 2, 3]

Reference: the "fields grouping" of Storm, the default of every stream engine.
"""

from unskew.grouping.base import Grouping, GroupingParams, Int32s, Int64s, Setting, UInt64s
from unskew.grouping.hashing import pick_active_each, pick_each, salts


class KeyParams(GroupingParams):
    """Key grouping has no options."""


class Key(Grouping):
    """Field grouping: the partition is a hash of the key."""

    name = "key"
    Params = KeyParams
    splits = False

    def __init__(self, setting: Setting, params: KeyParams) -> None:
        super().__init__(setting, params)
        self._salt = salts(setting.seed, 1)[0]

    def _route(self, keys: UInt64s, timestamps: Int64s | None, out: Int32s) -> None:
        if self.active.size == self.setting.partitions:
            pick_each(keys, self._salt, self.setting.partitions, out)
        else:
            pick_active_each(keys, self._salt, self.state["active"], self.active, out)
