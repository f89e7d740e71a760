"""`hashtags`: posts, distinct users, first and last post of each hashtag.

Distinct users are estimated with an Apache DataSketches HLL of 2^12 registers (standard error
1.6 %, below some 380 users all but exact): made here by its Python package, merged by Spark's own
`hll_union_agg`. What is sketched is the 64-bit hash of the user, so no user's name leaves Spark.

A sketch is the same for any split and order of the rows, but its *estimate* is not: one that was
updated row by row keeps a running estimate (HIP) that depends on the order, one that came out of a
union does not. So the result is always that of a union, of the sketch with itself, which changes
nothing else; then routed and plain Spark agree to the last bit.
"""

import math
from collections import deque
from collections.abc import Iterable, Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from datasketches import hll_sketch, hll_union, tgt_hll_type

from unskew.config.models.operator import Hashtags as HashtagsOptions
from unskew.grouping.base import Int64s
from unskew.jobs.operators.base import (
    EVENT_TIME,
    NUMBER,
    RECORDS,
    Operator,
    aggregate,
    numbered,
    numbers_of,
)

_REGISTERS_LOG2 = 12
_USER = "user_hash"


class Hashtags(Operator):
    """Posts, users, first and last seen."""

    Options = HashtagsOptions
    options: HashtagsOptions
    explodes = True

    @property
    def key(self) -> str:
        tags = f"cast({self.options.hashtags} as array<string>)"
        return f"array_distinct(filter({tags}, tag -> tag is not null and tag != ''))"

    @property
    def inputs(self) -> Mapping[str, str]:
        return {_USER: f"xxhash64(cast({self.options.user} as string))"}

    @property
    def rules(self) -> Mapping[str, str]:
        return {"user_null": f"({self.options.user}) is null"}

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {"users": "BINARY", "first_seen": "TIMESTAMP"}

    def partial(self, rows: pa.Table) -> pa.Table:
        """Counts by Arrow; then each distinct user of a group goes into the group's sketch."""
        rows = numbered(rows)
        partials = aggregate(
            rows, [(EVENT_TIME, "min", "first_seen"), (NUMBER, "min", NUMBER)]
        ).sort_by(NUMBER)
        pairs = rows.group_by([NUMBER, _USER], use_threads=False).aggregate([])
        pairs = pairs.take(pc.sort_indices(pairs[NUMBER]))
        sketches = _sketches(numbers_of(pairs), pairs[_USER].to_numpy(), partials.num_rows)
        return partials.append_column("users", sketches)

    @property
    def merge(self) -> Mapping[str, str]:
        return {
            "posts": f"sum({RECORDS})",
            "users": "hll_union_agg(users)",
            "first_seen": "min(first_seen)",
            "last_seen": f"max({EVENT_TIME})",
        }

    @property
    def direct(self) -> Mapping[str, str]:
        return {
            "posts": "count(1)",
            "users": f"hll_sketch_agg({_USER}, {_REGISTERS_LOG2})",
            "first_seen": f"min({EVENT_TIME})",
            "last_seen": f"max({EVENT_TIME})",
        }

    @property
    def final(self) -> Mapping[str, str]:
        users = "hll_sketch_estimate(hll_union(users, users))"
        return {**super().final, "users": users}

    @property
    def top(self) -> tuple[str, int] | None:
        return None if self.options.top is None else ("posts", self.options.top)


def estimate(users: Iterable[int]) -> int:
    """What the operator says of users with these hashes."""
    sketch = hll_sketch(_REGISTERS_LOG2, tgt_hll_type.HLL_8)
    deque(map(sketch.update, users), maxlen=0)
    union = hll_union(_REGISTERS_LOG2)
    for _ in range(2):  # as in `final`: one of a single sketch would keep its running estimate
        union.update(sketch)
    found: float = union.get_result(tgt_hll_type.HLL_8).get_estimate()
    return math.floor(found + 0.5)


def _sketches(numbers: Int64s, users: Int64s, groups: int) -> pa.Array:
    """The sketch of each group, from pairs in the order of `numbers`."""
    ends = np.searchsorted(numbers, np.arange(groups + 1))
    found = []
    for begin, end in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        sketch = hll_sketch(_REGISTERS_LOG2, tgt_hll_type.HLL_8)
        deque(map(sketch.update, users[begin:end].tolist()), maxlen=0)
        found.append(sketch.serialize_compact())
    return pa.array(found, pa.binary())
