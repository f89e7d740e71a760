"""`distinct_values: x, k: 100`: the k smallest distinct values, and whether there are more.

The k + 1 smallest values of a union are among the k + 1 smallest of its parts, so partials of
sorted arrays of that length merge exactly. Spark has no aggregate that keeps so few: the merge's
state holds each different array that the partials of a window brought, plain Spark's all values.
That is why a window is needed, with which the state ends.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from unskew.jobs.operators.aggregates.function import drop_sign_of_zero
from unskew.jobs.operators.aggregates.functions import Compared
from unskew.jobs.operators.base import NUMBER

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class DistinctValues(Compared):
    """The k smallest distinct values that are not null, and a flag for more."""

    k: int = 100
    grouped = True

    @property
    def inputs(self) -> Mapping[str, str]:
        return {self.name: drop_sign_of_zero(f"({self.argument})", self.kind)}

    @property
    def partial_columns(self) -> Mapping[str, str]:
        return {self.name: f"array<{self.kind}>"}

    def add(self, rows: "pa.Table", partials: "pa.Table") -> "pa.Table":
        import pyarrow as pa
        import pyarrow.compute as pc

        valid = rows.select([NUMBER, self.name]).filter(pc.is_valid(rows[self.name]))
        pairs = valid.group_by([NUMBER, self.name], use_threads=False).aggregate([])
        pairs = pairs.sort_by([(NUMBER, "ascending"), (self.name, "ascending")])
        numbers = pairs[NUMBER].to_numpy().astype(np.int64)
        bounds = np.searchsorted(numbers, np.arange(partials.num_rows + 1))
        ranks = np.arange(numbers.size) - bounds[numbers]
        kept = pairs[self.name].filter(pa.array(ranks <= self.k))
        sizes = np.minimum(np.diff(bounds), self.k + 1)
        offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32))
        arrays = pa.ListArray.from_arrays(offsets, kept.combine_chunks())
        return partials.append_column(self.name, arrays)

    def _keep_smallest(self, values: str) -> str:
        return f"slice(array_sort({values}), 1, {self.k + 1})"

    @property
    def merge(self) -> Mapping[str, str]:
        values = f"array_distinct(flatten(collect_set({self.name})))"
        return {self.name: self._keep_smallest(values)}

    @property
    def direct(self) -> Mapping[str, str]:
        return {self.name: self._keep_smallest(f"collect_set({self.name})")}

    @property
    def final(self) -> str:
        values, more = f"slice({self.name}, 1, {self.k})", f"size({self.name}) > {self.k}"
        return f"named_struct('values', {values}, 'more', {more})"
