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
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from unskew.config.models.base import Expression
from unskew.config.models.operator import OperatorOptions
from unskew.config.rules.registry import Contradiction, agrees_with
from unskew.jobs.operators.aggregates.sketches import (
    REGISTERS_LOG2,
    make_hll_sketch,
    make_hll_sketches,
)
from unskew.jobs.operators.base import EVENT_TIME, NUMBER, RECORDS, Operator, aggregate

if TYPE_CHECKING:
    import pyarrow as pa

_USER = "user_hash"


class HashtagsOptions(OperatorOptions):
    """Posts and distinct users of each hashtag."""

    hashtags: Expression = "hashtags"
    """The hashtags of a post, as an SQL expression of type ARRAY<STRING>: each is a key. A
    post counts once for a hashtag that it names twice; null and '' are no hashtags."""
    user: Expression = "user"
    """Who posted, as an SQL expression."""
    top: Annotated[int, Field(ge=1, le=10_000)] | None = Field(default=None, examples=[10])
    """Keep this many hashtags a window, those with the most posts and of equal ones the first by
    name; without it, all. Needs `merge.output: append`, where a window's results come together."""

    @agrees_with("window")
    def top_needs_a_window(self, window: Any) -> Iterator[Contradiction]:
        """`top` needs a window."""
        if self.top and window.type == "none":
            yield Contradiction(
                ("top",),
                "top contradicts window.type none: the top is that of a window",
                "remove top, or add a window",
            )

    @agrees_with("window", "merge")
    def top_needs_append(self, window: Any, merge: Any) -> Iterator[Contradiction]:
        """`top` needs `append`: an update has changed results only, not all of the window's."""
        if self.top and window.type != "none" and merge.output != "append":
            yield Contradiction(
                ("top",),
                f"top contradicts merge.output {merge.output}: only a complete window has a top",
                "write merge.output: append, or remove top",
            )


class Hashtags(Operator):
    """Counts posts and distinct users of each hashtag."""

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
    def reject_rules(self) -> Mapping[str, str]:
        return {"user_null": f"({self.options.user}) is null"}

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {"users": "BINARY", "first_seen": "TIMESTAMP"}

    def partial(self, rows: "pa.Table") -> "pa.Table":
        """Counts by Arrow; then each distinct user of a group goes into the group's sketch."""
        import pyarrow.compute as pc

        from unskew.jobs.operators.arrow import number_groups, read_numbers

        rows = number_groups(rows)
        partials = aggregate(
            rows, [(EVENT_TIME, "min", "first_seen"), (NUMBER, "min", NUMBER)]
        ).sort_by(NUMBER)
        pairs = rows.group_by([NUMBER, _USER], use_threads=False).aggregate([])
        pairs = pairs.take(pc.sort_indices(pairs[NUMBER]))
        sketches = make_hll_sketches(
            read_numbers(pairs), pairs[_USER].to_numpy(), partials.num_rows
        )
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
            "users": f"hll_sketch_agg({_USER}, {REGISTERS_LOG2})",
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
    """The operator's estimate of the number of users with these hashes."""
    from datasketches import hll_union, tgt_hll_type

    sketch = make_hll_sketch(users)
    union = hll_union(REGISTERS_LOG2)
    for _ in range(2):  # as in `final`: one of a single sketch would keep its running estimate
        union.update(sketch)
    estimated: float = union.get_result(tgt_hll_type.HLL_8).get_estimate()
    return math.floor(estimated + 0.5)
